// SPDX-License-Identifier: MIT
// Fuzzes runs whose files are good one by one, but wrong together: the files come from different runs, families, steps
// and seeds, and have other numbers, names and sizes. Everything that loads a run must report what is wrong, or work in
// finite time. Three quarters of the runs have no ties (engine/io/checkpoint.h), like old runs and files that were
// edited by hand. Otherwise, the check of the ties would refuse the runs, and the checks behind it would never be
// reached.
//
// Format of an input, in bytes: [run, other run, ties, use, argument of the use], followed by three bytes for every
// change.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/io/file.h"
#include "models/runs/classify_run.h"
#include "models/runs/flow_run.h"
#include "models/runs/insertion_run.h"
#include "models/runs/start.h"
#include "models/runs/univae_run.h"
#include "models/runs/writer.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/run_library.h"
#include "tests/fuzz/run_samples.h"
#include "tests/fuzz/target.h"
#include "tests/models/runs/tiny_family.h"
#include "models/runs/origin.h"

namespace masquerade::fuzz {
namespace fs = std::filesystem;
namespace {

using Names = std::vector<std::string>;
Counts counts;

void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// Returns the paths inside a folder that end with `end`, in sorted order. If `end` is "/", returns the folders.
Names paths_in(const std::string& folder, const std::string& end) {
    Names all;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.is_symlink()) continue;
        const std::string path = fs::relative(entry.path(), folder).string() + (entry.is_directory() ? "/" : "");
        if (path.size() >= end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0 &&
            (end == "/" || path.back() != '/'))
            all.push_back(path);
    }
    std::sort(all.begin(), all.end());
    return all;
}

// Returns the item that a byte chooses, or "" if there are no items.
std::string chosen(const Names& names, std::size_t byte) { return names.empty() ? "" : names[byte % names.size()]; }

// ---- files in place ----

// Replaces every occurrence of `from` by `to`, which has the same length.
void replace_all(std::string& bytes, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = bytes.find(from, at)) != bytes.npos; at += to.size())
        bytes.replace(at, from.size(), to);
}

// A safetensors file in memory: its header, and the offset of its data.
struct Place {
    std::string bytes;
    nlohmann::ordered_json header;
    std::size_t data = 0;
    explicit Place(const std::string& path) : bytes(read_file(path)) {
        std::uint64_t length = 0;
        std::memcpy(&length, bytes.data(), 8);
        header = nlohmann::ordered_json::parse(bytes.substr(8, length));
        data = 8 + std::size_t(length);
        header["__metadata__"].erase("masquerade.checksum");
    }
    std::string whole() const {
        std::string json = header.dump();
        json.append((8 - json.size() % 8) % 8, ' ');
        const std::uint64_t length = json.size();
        return std::string(reinterpret_cast<const char*>(&length), 8) + json + bytes.substr(data);
    }
};

// Appends pointers to all leaves of a JSON value, at any depth.
void leaves_of(nlohmann::json& value, std::vector<nlohmann::json*>& all) {
    if (!value.is_structured()) return all.push_back(&value);
    for (auto& child : value) leaves_of(child, all);
}

const nlohmann::json& number_or_word(std::size_t byte) {
    static const nlohmann::json all = {0,
                                       1,
                                       2,
                                       3,
                                       4,
                                       5,
                                       6,
                                       7,
                                       8,
                                       12,
                                       16,
                                       64,
                                       1000,
                                       65536,
                                       1000000,
                                       2147483647,
                                       4294967296,
                                       9223372036854775807,
                                       18446744073709551615u,
                                       -1,
                                       0.5,
                                       -0.25,
                                       1e300,
                                       "",
                                       "x",
                                       "lm",
                                       "mlm",
                                       "unilm",
                                       "vq",
                                       "fsq",
                                       "softmax",
                                       "luna",
                                       "linformer",
                                       "lsh",
                                       "A causal",
                                       "8,6",
                                       "16",
                                       "1",
                                       "bf16",
                                       true,
                                       false,
                                       nullptr};
    return all[byte % all.size()];
}

// ---- changes ----

struct Change {
    const char* what;
    void (*make)(const std::string& run, const std::string& other, std::size_t x, std::size_t y);
};

void change_json(const std::string& run, const std::string&, std::size_t x, std::size_t y) {
    const std::string path = run + "/" + chosen(paths_in(run, ".json"), x);
    nlohmann::json value = read_json(path);
    std::vector<nlohmann::json*> leaves;
    leaves_of(value, leaves);
    if (leaves.empty()) return;
    *leaves[(x / 7 + y * 13) % leaves.size()] = number_or_word(y);
    put(path, value.dump());
}

void change_vocabulary(const std::string& run, const std::string&, std::size_t x, std::size_t y) {
    const std::string path = run + "/" + chosen(paths_in(run, "vocab.txt"), y);
    std::string lines = read_file(path);
    const std::size_t last = lines.rfind('\n', lines.size() - 2) + 1;
    switch (x % 5) {
        case 0: lines.resize(last); break;
        case 1: lines += "another\n"; break;
        case 2: lines += lines.substr(last); break;
        case 3: lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"; break;
        default: lines.insert(lines.find('\n') + 1, "first\n");
    }
    put(path, lines);
}

void change_tensor(const std::string& run, const std::string&, std::size_t x, std::size_t y) {
    const std::string path = run + "/" + chosen(paths_in(run, ".safetensors"), x);
    Place file(path);
    Names names;
    for (auto& [name, entry] : file.header.items())
        if (name != "__metadata__") names.push_back(name);
    nlohmann::ordered_json& entry = file.header[chosen(names, y / 5 + x)];
    const std::size_t begin = file.data + entry["data_offsets"][0].get<std::size_t>(),
                      end = file.data + entry["data_offsets"][1].get<std::size_t>();
    const std::size_t wide = entry["dtype"] == "F32" ? 4 : 8;
    if (begin == end || entry["shape"].empty()) return;
    const float floats[] = {INFINITY, NAN, 3e38f, -3e38f, 1e-30f, 0};
    const double doubles[] = {INFINITY, NAN, 1e300, -1, 5e-324, 0};
    const std::uint64_t counts_of[] = {UINT64_MAX, 1ull << 62, 1ull << 32, 3, 1, 0};
    const void* values[] = {&floats[x % 6], &doubles[x % 6], &counts_of[x % 6]};
    const char* value = static_cast<const char*>(values[wide == 4 ? 0 : entry["dtype"] == "F64" ? 1 : 2]);
    if (y % 3 == 0) {  // changes one number
        std::copy_n(value, wide, &file.bytes[begin + (x * 31 + y) % ((end - begin) / wide) * wide]);
    } else if (y % 3 == 1) {  // changes all numbers
        for (std::size_t at = begin; at < end; at += wide) std::copy_n(value, wide, &file.bytes[at]);
    } else {  // removes the last row, if the tensor is the last one in the file
        const std::size_t row = (end - begin) / entry["shape"][0].get<std::size_t>();
        if (end != file.bytes.size()) return;
        file.bytes.resize(end - row);
        entry["shape"][0] = entry["shape"][0].get<std::size_t>() - 1;
        entry["data_offsets"][1] = entry["data_offsets"][1].get<std::size_t>() - row;
    }
    put(path, file.whole());
}

void change_metadata(const std::string& run, const std::string&, std::size_t x, std::size_t y) {
    const std::string path = run + "/" + chosen(paths_in(run, ".safetensors"), x);
    Place file(path);
    nlohmann::ordered_json& metadata = file.header["__metadata__"];
    const Names values = {"",
                          "0",
                          "1",
                          "2,3",
                          "9",
                          "4294967295 4294967295",
                          "0 0 0 0 7",
                          "99999999999999999999",
                          "-1",
                          "x",
                          "0000000000000000"};
    if (!metadata.empty())
        std::next(metadata.begin(), std::ptrdiff_t(x / 3 % metadata.size())).value() = chosen(values, y);
    put(path, file.whole());
}

constexpr auto everything =
    fs::copy_options::recursive | fs::copy_options::copy_symlinks | fs::copy_options::overwrite_existing;

const Change changes[] = {
    {"a file of another run",
     [](const std::string& run, const std::string& other, std::size_t x, std::size_t) {
         const std::string file = chosen(paths_in(other, ""), x);
         fs::create_directories(fs::path(run + "/" + file).parent_path());
         fs::copy_file(other + "/" + file, run + "/" + file, fs::copy_options::overwrite_existing);
     }},
    {"a folder of another run",
     [](const std::string& run, const std::string& other, std::size_t x, std::size_t y) {
         const std::string from = chosen(paths_in(other, "/"), x), to = y % 2 ? from : chosen(paths_in(run, "/"), y);
         fs::remove_all(run + "/" + to);
         fs::create_directories(run + "/" + to);
         fs::copy(other + "/" + from, run + "/" + to, everything);
     }},
    {"a file of another step",
     [](const std::string& run, const std::string&, std::size_t x, std::size_t) {
         const std::string file = chosen(paths_in(run + "/step-000001", ""), x);
         fs::copy_file(run + "/step-000001/" + file, run + "/step-000002/" + file,
                       fs::copy_options::overwrite_existing);
     }},
    {"a file less", [](const std::string& run, const std::string&, std::size_t x,
                       std::size_t) { fs::remove(run + "/" + chosen(paths_in(run, ""), x)); }},
    {"another step",
     [](const std::string& run, const std::string&, std::size_t x, std::size_t) {
         const char* names[] = {"step-000003", "step-000001", "step-000000", "step-4294967296",
                                "step-999999999999999999"};
         const std::string to = names[x % 5];
         fs::remove_all(run + "/" + to);
         fs::rename(run + "/step-000002", run + "/" + to);
         fs::remove(run + "/latest");
         fs::create_symlink(to, run + "/latest");
     }},
    {"another value", change_json},
    {"another value", change_json},
    {"another vocabulary", change_vocabulary},
    {"other numbers", change_tensor},
    {"other metadata", change_metadata},
    {"other labelled files",
     [](const std::string&, const std::string&, std::size_t x, std::size_t y) {
         const std::string classes = run_folder() + "/classes",
                           file = classes + (y % 2 ? "/near/" : "/far/") + std::to_string(x % 20);
         if (y % 4 < 2)
             put(file, "other words");
         else if (y % 4 == 2)
             fs::remove(file);
         else
             fs::create_directories(classes + "/third"), put(classes + "/third/0", "of a third kind");
     }},
};

// Removes the ties. Parts of a run that must name its step or the checksum of its weights get the actual step and
// checksum.
void untie(const std::string& run) {
    const auto change = [&](const std::string& path, std::initializer_list<std::pair<const char*, const char*>> keys) {
        std::string bytes = read_file(path);
        for (const auto& [from, to] : keys) replace_all(bytes, from, to);
        put(path, bytes);
    };
    for (const std::string& path : paths_in(run, ".json"))
        change(run + "/" + path, {{"\"salt\"", "\"Salt\""}, {"\"vocabulary_hash\"", "\"Vocabulary_hash\""}});
    for (const std::string& path : paths_in(run, ".safetensors")) {
        Place file(run + "/" + path);
        nlohmann::ordered_json& metadata = file.header["__metadata__"];
        metadata.erase("step"), metadata.erase("config");
        if (path.find("prior.") == path.npos) metadata.erase("model");
        const std::string step = fs::path(path).parent_path().filename().string();
        if (file.header.contains("numbers") && step.rfind("step-", 0) == 0) {
            const std::uint64_t n = std::stoull(step.substr(5));
            std::memcpy(&file.bytes[file.data + file.header["numbers"]["data_offsets"][0].get<std::size_t>()], &n, 8);
        }
        put(run + "/" + path, file.whole());
    }
    std::uint64_t weights = 0;
    try {
        weights = checksum_of(family_of_run(run).load(run, false, Device::cpu)->parameters);
    } catch (const std::exception&) {  // the run cannot be loaded, so its priors cannot be loaded, either
        return;
    }
    const std::string latest = fs::canonical(run + "/latest").string();
    if (fs::exists(latest + "/prior.safetensors")) {
        Place file(latest + "/prior.safetensors");
        char digits[17];
        std::snprintf(digits, sizeof digits, "%016llx", (unsigned long long)weights);
        file.header["__metadata__"]["model"] = digits;
        put(latest + "/prior.safetensors", file.whole());
    }
}

// ---- what loads a run ----

const Names lines = {"who are you?", "", "where do you live?\twhat is it", "[CLS] x y z \xc3\xa9"};

std::unique_ptr<Run> loaded(const std::string& path, bool to_train = false) {
    std::unique_ptr<Run> run = family_of_run(path).load(path, to_train, Device::cpu);
    const View all = run->parameters.values();
    for (std::int64_t i = 0; i < all.count(); i++) require(std::isfinite(all.as<float>()[i]), "weights are finite");
    return run;
}

void write_latents(UniVaeRun& run, std::size_t byte) {
    if (run.settings.model.conditional) {
        Writing how;
        how.count = byte % 2 ? 2 : 0;
        how.search.maximum = 12;
        run.writer(how).write(lines, 0);
        return;
    }
    const char* words[] = {"", "fitted", "uniform"};
    run.choose_prior(words[byte % 3], {});
    UniVaeDecoder decoder(run.model, run.special());
    SearchOptions options;
    options.maximum = 12;
    std::vector<DecodeRequest> requests;
    for (std::uint32_t i = 0; i < 3; i++)
        requests.push_back({run.draw(7, i, 0), i, 0, run.model.start_position(run.draw_length(7, i))});
    const int all = run.model.space.numbers();
    for (const int from : {0, all / 2})
        if (run.prior && from < all)
            requests.push_back(
                {run.prior->draw_rest(requests[0].latent, from, all, {7, 0, 1}), 4, 0, run.model.start_position(5)});
    for (const auto& hypotheses : decoder.search(requests, options, 7, 1)) run.decode(hypotheses.at(0).tokens);
    run.features(lines);
}

void write_targets(const TargetRun& run, std::size_t byte) {
    SearchOptions options;
    options.maximum = 8;
    if (byte % 2) options.beams = options.n_best = 3;
    const std::vector<Sentence> sources = run.sentences(lines, lines), begun = run.beginnings(lines),
                                ends = run.endings(lines);
    std::vector<const Sentence*> some = pointers_to(sources);
    run.losses(some, true);
    if (const auto* inserts = dynamic_cast<const InsertionRun*>(&run)) {
        inserts->insert(some, SearchOptions(), {});
        return;
    }
    if (run.writes_backward()) run.write_before(pointers_to(ends), options, 1);
    if (run.continues()) some = pointers_to(begun);
    if (!run.writes()) options.beams = options.n_best = 1;  // masked diffusion has no beams
    if (run.writes() || run.unmasks())
        for (const auto& hypotheses : run.write(some, options, 1)) run.decode(hypotheses.at(0).tokens);
    run.features(lines);
}

void generate(const std::string& path, std::size_t byte) {
    const std::unique_ptr<Run> run = loaded(path);
    if (byte & 64) run->average_checkpoints(2);
    if (auto* latents = dynamic_cast<UniVaeRun*>(run.get()))
        write_latents(*latents, byte);
    else if (const auto* targets = dynamic_cast<const TargetRun*>(run.get()))
        write_targets(*targets, byte);
    else if (auto* flow = dynamic_cast<FlowRun*>(run.get()))
        flow->measures(2), flow->draw(1, std::uint32_t(byte));
    else
        dynamic_cast<ClassifyRun&>(*run).measures(2);
}

void go_on(const std::string& path, std::size_t) {
    RunFolder folder = RunFolder::resume(path);
    const std::unique_ptr<Run> run = loaded(folder.path(), true);
    const TrainingText text = read_again(origin_of(run->run_json, folder.file("run.json")));
    const std::unique_ptr<Task> task = run->task(text);
    TrainOptions options = run->common().train;
    options.minutes = 0;
    options.steps = folder.latest_step() + 1;
    Trainer trainer(run->parameters, *task, folder, options);
    trainer.quiet = true;
    trainer.resume();
    trainer.run([] { return false; });
}

void begin_with(const std::string& path, std::size_t byte) {
    const std::unique_ptr<Start> start = Start::open(path);
    const Family& kind = families()[byte % families().size()];
    const std::unique_ptr<RunSettings> settings = tiny(kind);
    start->adopt(*settings);
    const TrainingText text = find_training_text(run_folder() + "/text.tsv", "", settings->wants(kind.reads));
    if (!settings->words().empty())
        start->extend(*settings, kind.name);
    else if (byte & 64)
        start->keep(text);
    const std::unique_ptr<Run> run = kind.fresh(*settings, start->tokenizer().vocabulary(), DType::f32, Device::cpu);
    run->tokenizer = start->tokenizer();
    start->give_weights(*run);
    const std::unique_ptr<Task> task = run->task(text);
    task->next_batch(0);
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f32);
    tape.begin("train", 1, 0, true);
    task->loss(tape, 0, 0);
}

void fit(const std::string& path, std::size_t) {
    const std::unique_ptr<Run> run = loaded(path, true);
    run->fit_prior(read_again(origin_of(run->run_json, path + "/run.json")));
}

void (*const uses[])(const std::string&, std::size_t) = {generate, generate, generate, go_on, go_on, begin_with, fit};

// Calls use(). A refusal must be a BadInput or a BadUsage, which names the file or the setting. An Error of the engine
// itself is a failure, because the wrong input must be detected earlier. Exception: errors about numbers that overflow.
template <class Use>
void refusing(Use use) {
    try {
        use();
    } catch (const BadInput&) {
        throw;
    } catch (const BadUsage&) {
        throw;
    } catch (const Error& e) {
        const std::string what = e.what();
        if (what.rfind("step ", 0) != 0 && what.find(" NaN") == what.npos)
            throw Broken{"a refusal comes before the engine: " + what};
        throw;
    }
}

constexpr std::size_t header = 5;

std::string broken_run(const std::string& input) {
    const auto byte = [&](std::size_t i) { return i < input.size() ? std::size_t(std::uint8_t(input[i])) : 0; };
    const std::string work = run_folder() + "/work";
    fs::remove_all(work);
    std::string problem;
    try {
        const std::string first = run_sample(byte(0)), other = run_sample(byte(1));
        fs::copy(first, work, everything);
        for (std::size_t at = header; at + 2 < input.size(); at += 3) {
            try {
                changes[byte(at) % std::size(changes)].make(work, other, byte(at + 1), byte(at + 2));
            } catch (const std::exception&) {  // the file to change does not exist any more, or was changed before
            }
        }
        try {
            if (byte(2) % 4 > 0) untie(work);
        } catch (const std::exception&) {
        }
        problem = problem_of(counts, [&] { refusing([&] { uses[byte(3) % std::size(uses)](work, byte(4)); }); });
        if (!problem.empty()) {
            problem += "; " + name_of_run(byte(0)) + " with parts of " + name_of_run(byte(1));
            for (std::size_t at = header; at + 2 < input.size(); at += 3)
                problem += std::string(", ") + changes[byte(at) % std::size(changes)].what;
        }
    } catch (const Broken& e) {
        problem = e.property;
    }
    make_classes();
    return problem;
}

std::string make_run(Grammar& random) {
    std::string input;
    for (std::size_t n = header + 3 * random.below(4); n > 0; n--) input += char(random.below(256));
    if (random.below(2)) {  // runs of the same family have neighbouring numbers
        const std::size_t first = random.below(run_count());
        input[0] = char(first);
        input[1] = char(std::min(run_count() - 1, first + random.below(6)));
    }
    return input;
}

// Returns every run without changes, for every way of loading a run, and inputs that once broke a property.
std::vector<std::string> known_runs() {
    std::vector<std::string> all;
    for (std::size_t number = 0; number < run_count(); number++)
        for (std::size_t use : {0, 3, 5}) all.push_back({char(number), 0, 0, char(use), char(number)});
    return all;
}

}  // namespace

const std::vector<Target>& targets() {
    static const std::vector<Target> all = {
        {"runs", "runs", header, make_run, broken_run, known_runs, [] { return counts.told(); }}, library_target()};
    return all;
}

}  // namespace masquerade::fuzz
