// SPDX-License-Identifier: MIT
// Fuzzes everything that reads files, with broken files. A reader must read a file, or refuse it with one of this
// project's errors and a short message in its own words. The first byte of an input chooses a file of the samples; the
// rest of the input replaces the contents of this file.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/base/log.h"
#include "engine/io/config.h"
#include "engine/io/file.h"
#include "engine/io/run_folder.h"
#include "engine/io/safetensors.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/mutation.h"
#include "tests/fuzz/samples.h"
#include "tests/fuzz/target.h"
#include "tokenizer/hugging_face/hugging_face.h"

namespace masquerade::fuzz {
namespace fs = std::filesystem;
namespace {

Counts counts;

// Writes a file without waiting for the disk.
void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// Replaces a file of the samples by `bytes`, calls read(), and restores the file. Returns the problem that was found,
// or "".
template <class Read>
std::string broken(const std::string& file, const std::string& bytes, Read read) {
    const std::string path = samples() + "/" + file, good = read_file(path);
    put(path, bytes);
    const std::string problem = problem_of(counts, read);
    put(path, good);
    return problem;
}

template <std::size_t n>
const char* choose(const char* const (&names)[n], const std::string& input) {
    return names[std::uint8_t(input.empty() ? 0 : input[0]) % n];
}
std::string rest(const std::string& input) { return input.substr(std::min<std::size_t>(1, input.size())); }

// Makes an input: one of these files, damaged. In most cases, the length of a safetensors header is corrected
// afterwards.
template <std::size_t n>
std::string made(Grammar& random, const char* const (&names)[n]) {
    const std::size_t which = random.below(n);
    const std::string good = read_file(samples() + "/" + names[which]),
                      other = read_file(samples() + "/" + names[random.below(n)]);
    const bool tensors = good.size() > 8 && good[8] == '{' && random.below(8) > 0;
    if (!tensors) return char(which) + damaged(random, good, other);
    std::size_t length = std::uint8_t(good[0]) + 256 * std::size_t(std::uint8_t(good[1]));
    const std::string header = damaged(random, good.substr(8, length), other);
    std::string bytes(8, '\0');
    for (int i = 0; i < 4; i++) bytes[std::size_t(i)] = char(header.size() >> (8 * i));
    return char(which) + bytes + header + good.substr(8 + length);
}

// ---- what is read ----

const char* const tensor_files[] = {"bert/model.safetensors", "run/step-000003/state.safetensors"};
void read_tensors(const std::string& path) {
    std::string checked;
    try {
        check_safetensors(path);
    } catch (const BadInput& e) {
        checked = e.what();
    }
    const TensorFile file(path);
    require(checked.empty(), "what is checked is what is read");
    volatile int sum = 0;
    for (const StoredTensor& tensor : file.tensors()) {
        require(file.find(tensor.name) != nullptr, "every tensor is found");
        const char* data = static_cast<const char*>(tensor.data);
        // Reads every byte, so that a sanitizer reports accesses outside of the memory.
        for (std::size_t i = 0; i < tensor.bytes(); i++) sum = sum + data[i];
    }
    write_safetensors(samples() + "/again.safetensors", file.tensors(), file.metadata());
    const TensorFile again(samples() + "/again.safetensors");
    require(again.tensors().size() == file.tensors().size(), "what was read can be written and read again");
}

const char* const bert_files[] = {"bert/config.json", "bert/config.json", "bert/model.safetensors", "bert/vocab.txt"};
const char* const shard_files[] = {"shards/model.safetensors.index.json", "shards/a.safetensors"};
void load_bert(const std::string& folder) {
    const HuggingFaceConfig config = read_hugging_face_config(folder);
    read_tokenizer(folder);
    Parameters parameters;
    const Backbone backbone(parameters, config.backbone);
    load_hugging_face(folder, backbone, parameters);
    const View all = parameters.values();
    for (std::int64_t i = 0; i < all.count(); i++)
        require(std::abs(all.as<float>()[i]) < INFINITY, "weights are finite");
}

struct Settings {
    int width = 128, heads = 4;
    std::uint64_t seed = 1;
    double learning_rate = 2e-3;
    bool rotary = true;
    std::string recompute;
    GeluKind gelu = GeluKind::erf;
    Config config;
    Settings() {
        config.add("width", &width, "C", 2, 65536);
        config.add("heads", &heads, "H", 1, 1024);
        config.add("seed", &seed, "of random numbers");
        config.add("learning_rate", &learning_rate, "the peak", 0, 1);
        config.add("rotary", &rotary, "positions");
        config.add("recompute", &recompute, "scopes");
        config.add("gelu", &gelu, "form", {{"erf", GeluKind::erf}, {"tanh", GeluKind::tanh}});
    }
};
const char* const settings_files[] = {"settings.txt", "run/step-000003/config.json"};
void load_settings(const std::string& path) {
    Settings read, again;
    read.config.load(path);
    require(read.width >= 2 && read.heads >= 1 && read.learning_rate >= 0 && read.learning_rate <= 1,
            "values are within bounds");
    again.config.from_json(read.config.to_json(), path);
    for (const std::string& key : read.config.keys())
        require(read.config.value(key) == again.config.value(key), "settings come back from JSON");
}

const char* const run_files[] = {"run/run.json",
                                 "run/log.jsonl",
                                 "run/samples.txt",
                                 "run/step-000003/config.json",
                                 "run/step-000003/model.safetensors",
                                 "run/step-000003/state.safetensors"};
void open_run(const std::string& path) {
    const RunFolder run = RunFolder::resume(path);
    const std::int64_t step = run.latest_step();
    require(step == 3, "a damaged checkpoint is not passed over");
    const nlohmann::json config = read_json(run.step_folder(step) + "/config.json"),
                         record = read_json(run.file("run.json"));
    Settings settings;
    if (config.contains("unilm")) settings.config.from_json(config["unilm"], path);
    TensorFile(run.step_folder(step) + "/model.safetensors");
    TensorFile(run.step_folder(step) + "/state.safetensors");
    run.rewind(step);
}

const char* const tokenizer_files[] = {"tokenizer.json"};
void load_tokenizer(const std::string& path) {
    const HuggingFace read = read_tokenizer(path);
    const WordPiece tokenizer(read.vocabulary, read.options, read.added);
    for (int id : tokenizer.encode("[CLS] sunrise suns \xff"))
        require(id >= 0 && id < read.vocabulary.size(), "ids lie in the vocabulary");
}

// ---- the links of a run, whose text is the input ----

std::string broken_link(const std::string& input) {
    const std::string link = samples() + "/run/" + (!input.empty() && input[0] & 1 ? "best" : "latest");
    const std::string to = rest(input);
    std::error_code error;
    fs::remove(link, error);
    fs::create_symlink(to, link, error);
    std::string problem = broken("run/run.json", read_file(samples() + "/run/run.json"), [&] {
        const RunFolder run = RunFolder::open(input.size() % 2 ? samples() + "/run" : link);
        const std::int64_t step = run.latest_step();
        require(step >= 1 && step <= 3, "a step that is there is found");
    });
    fs::remove(link, error);
    fs::create_symlink("step-000003", link, error);
    return problem;
}
std::string made_link(Grammar& random) {
    const char* const good[] = {"step-000003", "step-000002", "latest", "best",        ".",
                                "..",          "run.json",    "/",      "step-999999", "../run/step-000001"};
    return char(random.below(2)) +
           damaged(random, good[random.below(std::size(good))], "step-00000000000000000000/../");
}

template <const auto& files, auto read>
Target target(const char* name, bool of_folder) {
    // If of_folder is true, read() gets the path of the folder, otherwise that of the file.
    static bool whole;
    whole = of_folder;
    return {name,
            "readers",
            1,
            [](Grammar& random) { return made(random, files); },
            [](const std::string& input) {
                const std::string file = choose(files, input);
                const std::string path = samples() + "/" + (whole ? file.substr(0, file.find('/')) : file);
                return broken(file, rest(input), [&] { read(path); });
            },
            [] {  // nesting that once overflowed the stack in parsing, copying or printing; and keys that occur twice
                std::vector<std::string> all;
                for (const char* open : {"[", "{\"a\":", "{\"__metadata__\":[", "{\"hidden_size\":["}) {
                    std::string nested;
                    for (int i = 0; i < 100000; i++) nested += open;
                    std::string length(8, '\0');
                    for (int i = 0; i < 4; i++) length[std::size_t(i)] = char(nested.size() >> (8 * i));
                    for (char which = 0; which < char(std::size(files)); which++) {
                        all.push_back(which + nested);
                        all.push_back(which + length + nested);
                    }
                }
                for (char which = 0; which < char(std::size(files)); which++)
                    for (const char* text : {"", "{\"a\":1,\"a\":2}", "{\"data\":7,\"resumed\":3}",
                                             "{\"model_type\":7}", "1e999", "\x1b[31m"})
                        all.push_back(which + std::string(text));
                return all;
            },
            [] { return counts.told(); }};
}

}  // namespace

std::vector<Target> reader_targets() {
    Target links = target<run_files, open_run>("links", true);
    links.make = made_link;
    links.broken = broken_link;
    links.known = [] {
        return std::vector<std::string>{std::string("\0latest", 7), "\1best", std::string("\0\xff\n", 3)};
    };
    return {target<tensor_files, read_tensors>("safetensors", false),
            target<bert_files, load_bert>("config.json", true),
            target<shard_files, load_bert>("index.json", true),
            target<run_files, open_run>("run", true),
            links,
            target<settings_files, load_settings>("settings", false),
            target<tokenizer_files, load_tokenizer>("tokenizer.json", false)};
}

}  // namespace masquerade::fuzz
