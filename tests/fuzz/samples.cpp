// SPDX-License-Identifier: MIT
#include "tests/fuzz/samples.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/io/file.h"
#include "engine/io/run_folder.h"
#include "engine/io/safetensors.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "tokenizer/hugging_face/hugging_face.h"

namespace masquerade::fuzz {
namespace fs = std::filesystem;
namespace {

const char* const settings_text =
    "# what a small run is trained with\nwidth = 64\nheads=2\nlearning_rate = 2e-3  # the "
    "peak\nrotary=false\n"
    "gelu = tanh\nseed=18446744073709551615\nrecompute=layer.*\n";

const Vocabulary& vocabulary() {
    static const Vocabulary all({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "sun", "##s", "rise"});
    return all;
}

void make_bert(const std::string& folder) {
    BackboneOptions o;
    o.vocabulary = vocabulary().size();
    o.width = 4, o.heads = 2, o.inner = 6, o.layers = 1, o.positions = 5, o.rotary = false;
    Parameters parameters;
    const Backbone backbone(parameters, o);
    parameters.allocate(1);
    save_hugging_face(folder, backbone, parameters, vocabulary());
    write_file(folder + "/model.safetensors", without_checksum(read_file(folder + "/model.safetensors")));
}

// Writes the tensors of a model folder into two files with an index.
void make_shards(const std::string& folder, const std::string& whole) {
    fs::create_directory(folder);
    for (const char* name : {"config.json", "vocab.txt"}) fs::copy(whole + "/" + name, folder + "/" + name);
    const TensorFile file(whole + "/model.safetensors");
    std::vector<StoredTensor> parts[2];
    nlohmann::json map;
    for (const StoredTensor& tensor : file.tensors()) {
        const bool second = parts[0].size() > parts[1].size();
        parts[second].push_back(tensor);
        map[tensor.name] = second ? "b.safetensors" : "a.safetensors";
    }
    write_safetensors(folder + "/a.safetensors", parts[0]);
    write_safetensors(folder + "/b.safetensors", parts[1]);
    write_file(folder + "/model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
}

void make_run(const std::string& folder) {
    RunFolder run = RunFolder::create(folder);
    run.write("run.json", R"({"model":"unilm","seed":1,"data":{"name":"a","file":"","held_out_file":"","lines":3,)"
                          R"("hash":"00000000000000ff","pairs":true},"resumed":[{"step":2,"device":"cpu"}]})");
    run.write("vocab.txt", vocabulary().lines());
    for (std::int64_t step : {1, 2, 3}) {
        run.append_log(text("{\"step\":", step, ",\"loss\":1.5}"));
        run.append_samples(step, "sun\nrise");
        run.save_step(step, [&](const std::string& to) {
            write_file(to + "/config.json", R"({"model_type":"unilm","unilm":{"width":64,"gelu":"erf"}})");
            const std::vector<double> numbers = {1, 2, double(step)};
            for (const char* name : {"/model.safetensors", "/state.safetensors"}) {
                write_safetensors(to + name, {stored("w", numbers)});
                write_file(to + name, without_checksum(read_file(to + name)));
            }
        });
    }
}

std::string make_all() {
    std::string path = (fs::temp_directory_path() / "masquerade-fuzz-XXXXXX").string();
    if (!mkdtemp(path.data())) fail_to("make", path);
    make_bert(path + "/bert");
    make_shards(path + "/shards", path + "/bert");
    make_run(path + "/run");
    WordPiece::Options options;
    options.rules = Rules::hugging_face;
    options.max_word = 100;
    write_file(path + "/tokenizer.json", tokenizer_json({vocabulary(), options}));
    write_file(path + "/settings.txt", settings_text);
    return path;
}

}  // namespace

std::string without_checksum(std::string bytes) {
    const std::string key = "masquerade.checksum";
    if (const std::size_t at = bytes.find(key); at != bytes.npos) bytes[at] = 'M';
    return bytes;
}

const std::string& samples() {
    struct Folder {
        std::string path = make_all();
        ~Folder() {
            std::error_code ignored;
            fs::remove_all(path, ignored);
        }
    };
    static const Folder folder;
    return folder.path;
}

}  // namespace masquerade::fuzz
