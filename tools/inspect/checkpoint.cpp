// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/base/log.h"
#include "engine/io/file.h"
#include "engine/io/run_folder.h"
#include "engine/io/safetensors.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "models/runs/run.h"
#include "tools/inspect/inspect.h"
#include "tools/say.h"

namespace masquerade {
namespace fs = std::filesystem;
namespace {

bool is_real(Element e) { return e == Element::f16 || e == Element::bf16 || e == Element::f32 || e == Element::f64; }

void list_tensors(const std::string& path) {
    TensorFile file(path);
    std::size_t width = 10;
    for (const StoredTensor& t : file.tensors()) width = std::max(width, printable(t.name).size() + 2);
    say("{}\n{:{}}{:6}{:16}{:>12}{:>12}{:>12}{:>12}\n", path, "tensor", width, "type", "shape", "mean", "deviation",
        "least", "largest");
    std::int64_t numbers = 0;
    for (const StoredTensor& t : file.tensors()) {
        const std::int64_t n = t.shape.count();
        numbers += n;
        say("{:{}}{:22}", t.name, width, type_and_shape(t));
        if (t.unreadable.empty() && is_real(t.element) && n > 0) {
            std::vector<double> x(static_cast<std::size_t>(n));
            file.convert_to(t.name, View{x.data(), DType::f64, Device::cpu, t.shape, t.name.c_str()});
            double mean = 0, square = 0;
            for (double v : x) mean += v / double(n);
            for (double v : x) square += (v - mean) * (v - mean) / double(n);
            auto [low, high] = std::minmax_element(x.begin(), x.end());
            say("{:12.4g}{:12.4g}{:12.4g}{:12.4g}", mean, std::sqrt(square), *low, *high);
        }
        say("\n");
    }
    say("{} tensors, {} numbers\n", file.tensors().size(), numbers);
}

// Lists the tensors of a safetensors file, of a step folder, or of the latest step in a run folder.
void list_checkpoint(const std::string& path) {
    if (!fs::is_directory(path)) return list_tensors(path);
    std::string folder = path;
    if (!fs::exists(path + "/model.safetensors")) {
        RunFolder run = RunFolder::open(path);
        folder = run.step_folder(run.latest_step());
    }
    for (const char* name : {"model.safetensors", "state.safetensors"})
        if (fs::exists(folder + "/" + name)) list_tensors(folder + "/" + name);
}

// Saves the model of a unilm or univae run, which is a single stack of layers, as a Hugging Face BERT, RoFormer or
// NomicBERT.
void save_run(const Run& run, const std::string& folder) {
    if (fs::exists(folder)) throw BadInput(text(folder, " is there already; choose another folder"));
    save_whole(folder, *run.bert(), run.parameters, run.tokenizer);
    say("{}: {} tokens, {} numbers\n", folder, run.tokenizer.vocabulary().size(), run.parameters.count());
}

}  // namespace

void save_whole(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                const WordPiece& tokenizer) {
    fill_folder(folder, [&](const std::string& place) { save_hugging_face(place, backbone, parameters, tokenizer); });
}

void inspect_checkpoint(const CheckpointSettings& s, std::uint64_t seed) {
    if (is_hugging_face(s.path)) return inspect_hugging_face(s, seed);
    const bool plain_save = !s.save.empty() && s.tokens.empty() && s.logits.empty();
    if (plain_save && fs::is_directory(s.path))
        if (const auto run = family_of_run(s.path).load(s.path, false, Device::cpu); run->bert())
            return save_run(*run, s.save);
    for (const auto& [option, value] : {std::pair{"--save", s.save}, {"--tokens", s.tokens}, {"--logits", s.logits}})
        if (!value.empty())
            throw BadUsage(
                text(option,
                     " needs the folder of a Hugging Face BERT, RoFormer or NomicBERT (--save without --tokens and "
                     "--logits also takes a run of unilm or univae), which ",
                     s.path, " is not; leave it out to list the tensors"));
    list_checkpoint(s.path);
}

}  // namespace masquerade
