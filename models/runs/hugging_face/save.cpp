// SPDX-License-Identifier: MIT
#include <algorithm>
#include <deque>
#include <filesystem>
#include <set>

#include "engine/tensor/numbers.h"
#include "engine/io/file.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "models/runs/hugging_face/names.h"
#include "tokenizer/hugging_face/hugging_face.h"

namespace masquerade {
namespace {

// Returns the table of position embeddings that RoFormer's files contain, (P,D), for P positions and heads of D
// numbers: each row has the sines of the rotary table, then the cosines.
std::vector<float> sines_and_cosines(int P, int D) {
    const Numbers rotary_table = make_rotary_table(P, D);
    std::vector<float> table(rotary_table.size());
    for (std::size_t row = 0; row < table.size(); row += D)
        for (std::size_t i = 0, half = D / 2; i < half; i++) {
            table[row + i] = float(rotary_table[row + 2 * i + 1]);
            table[row + half + i] = float(rotary_table[row + 2 * i]);
        }
    return table;
}

}  // namespace

void save_hugging_face(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                       const Vocabulary& vocabulary) {
    const BackboneOptions& o = backbone.options;
    const std::string config = hugging_face_config(o, parameters.dtype(), std::max(vocabulary.pad(), 0));
    if (vocabulary.size() > o.vocabulary)
        throw BadInput("the vocabulary has ", vocabulary.size(), " tokens, the model ", o.vocabulary,
                       "; a row for every token is expected");
    const HuggingFaceFamily& family = *family_of(o);
    const std::string prefix = text(family.type, ".");
    const int D = o.width / o.heads;
    std::deque<OnHost> here;               // the parameters in host memory, copied if they are on a GPU
    std::deque<std::vector<char>> others;  // data that no parameter has: reordered rows, and zeros for missing biases
    std::vector<StoredTensor> tensors;
    std::set<std::string> named;
    for (const HuggingFaceName& name : hugging_face_names(o)) {
        named.insert(name.path);
        const Tensor* parameter = parameters.find(name.path);
        if (!parameter && name.zeros == 0)
            throw Error("the parameters lack ", name.path, "; those of the backbone are expected");
        const std::string full = (name.of_head() ? "" : prefix) + name.name;
        if (!parameter) {
            tensors.push_back({full, element_of(parameters.dtype()), {name.zeros}});
            tensors.back().data = others.emplace_back(tensors.back().bytes()).data();
            continue;
        }
        const View rows = here.emplace_back(name.rows.of(parameters.master(*parameter))).view();
        tensors.push_back(stored(full, rows));
        if (!name.half_split) continue;
        tensors.back().data = others.emplace_back(rows.bytes()).data();
        reorder_heads(rows, others.back().data(), D, true);
    }
    for (const Tensor& t : parameters.all()) {  // parameters outside the stack
        if (named.count(t.path)) continue;
        here.emplace_back(parameters.master(t));
        tensors.push_back(stored(t.path, here.back().view()));
    }
    std::vector<float> positions;
    if (family.own_width) {
        positions = sines_and_cosines(o.positions, D);
        tensors.push_back(
            {prefix + "encoder.embed_positions.weight", Element::f32, {o.positions, D}, positions.data()});
    }
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) throw BadInput("cannot make the folder ", folder, ": ", failed.message());
    write_safetensors(folder + "/model.safetensors", std::move(tensors), {{"format", "pt"}});
    replace_file(folder + "/vocab.txt", vocabulary.lines());
    replace_file(folder + "/config.json", config);
}

void save_hugging_face(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                       const WordPiece& tokenizer) {
    save_hugging_face(folder, backbone, parameters, tokenizer.vocabulary());
    for (const auto& [name, bytes] : tokenizer_files(tokenizer)) replace_file(folder + "/" + name, bytes);
}

}  // namespace masquerade
