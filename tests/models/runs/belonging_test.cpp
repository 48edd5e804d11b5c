// SPDX-License-Identifier: MIT
// Tests files that are good one by one, but do not belong together. In a run of every family, each file is replaced by
// the same file of another run, another step or another seed. The run must then be refused, and the message must name
// the file. Runs without ties, as older versions wrote them, load as before.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "engine/io/file.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "models/runs/start.h"
#include "tests/folder.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/tiny_run.h"
#include "models/runs/training.h"

using namespace masquerade;
namespace fs = std::filesystem;

namespace {

// Trains two steps, and saves a checkpoint after each.
void train(const Family& kind, std::uint64_t seed, const std::string& path,
           std::optional<WordPiece::Options> tokenizer = {}, const std::string& objective = "") {
    const std::unique_ptr<RunSettings> settings = tiny(kind);
    Config keys;
    settings->declare(keys);
    if (!objective.empty()) keys.set("objective", objective);
    settings->train.seed = seed;
    settings->train.save_every = 1;
    const TrainingText text = text_for(settings->wants(kind.reads));
    const auto run = kind.fresh(*settings, learn_vocabulary(*settings, text), settings->precision, Device::cpu);
    if (tokenizer) run->tokenizer = WordPiece(run->tokenizer.vocabulary(), *tokenizer);
    RunFolder folder = RunFolder::create(path);
    const std::unique_ptr<Task> task = run->task(text);
    run->start(folder, {{"model", kind.name}, {"seed", seed}});
    TrainOptions options = settings->train;
    options.steps = 2, options.minutes = 0;
    Trainer trainer(run->parameters, *task, folder, options);
    trainer.quiet = true;
    trainer.run(never);
}

// Loads the run, averages its checkpoints and resumes it. Returns the message of the first refusal, or "" if everything
// succeeds.
std::string refusal(const Family& kind, const std::string& path) {
    return message_of<BadInput>([&] {
        const auto run = kind.load(path, true, Device::cpu);
        run->average_checkpoints(2);
        RunFolder folder = RunFolder::resume(path);
        const auto again = kind.load(path, true, Device::cpu);
        const std::unique_ptr<Task> task = again->task(text_for(again->common().wants(kind.reads)));
        Trainer trainer(again->parameters, *task, folder, again->common().train);
        trainer.quiet = true;
        trainer.resume();
    });
}

void replace_text(const std::string& path, const std::string& from, const std::string& to) {
    std::string bytes = read_file(path);
    REQUIRE(bytes.find(from) != bytes.npos);
    write_file(path, bytes.replace(bytes.find(from), from.size(), to));
}

// Changes the run to what an older version would have written.
void untie(const std::string& run) {
    nlohmann::json record = read_json(run + "/run.json");
    for (const char* key : {"salt", "vocabulary_hash"}) record.erase(key);
    write_file(run + "/run.json", record.dump());
    for (const char* step : {"/step-000001", "/step-000002"}) {
        nlohmann::json config = read_json(run + step + "/config.json");
        config.erase("salt");
        write_file(run + step + "/config.json", config.dump());
        for (const char* name : {"/model.safetensors", "/state.safetensors"}) {
            const TensorFile file(run + step + name);
            write_safetensors(run + step + name, file.tensors(), {{"format", "pt"}});
        }
    }
}

// Replaces the numbers of a tensor in a file.
void fill(const std::string& path, const std::string& tensor, Element element, const void* numbers) {
    const TensorFile file(path);
    std::vector<StoredTensor> all = file.tensors();
    for (StoredTensor& t : all)
        if (t.name == tensor) t.element = element, t.data = numbers;
    write_safetensors(path, all, file.metadata());
}

}  // namespace

TEST_CASE("belonging: of every family, a file of another run, step or seed is refused by name") {
    struct Case {
        const char *from, *to, *said;  // from: a path in the other run if it begins with "/", otherwise in the same run
    };
    const Case cases[] = {
        {"/step-000002/state.safetensors", "step-000002/state.safetensors",
         "state.safetensors belongs to other weights"},
        {"step-000001/state.safetensors", "step-000002/state.safetensors",
         "state.safetensors belongs to other weights"},
        {"/step-000002/model.safetensors", "step-000002/model.safetensors",
         "config.json is not the file that was saved with the weights"},
        {"step-000001/model.safetensors", "step-000002/model.safetensors",
         "holds the weights of step 1; expected those of step 2"},
        {"/step-000001/model.safetensors", "step-000001/model.safetensors", "step-000001/config.json is not the file"},
        {"/step-000002/config.json", "step-000002/config.json",
         "config.json is not the file that was saved with the weights"},
        {"/step-000002", "step-000002", "config.json was saved in the run "},
        {"/step-000001", "step-000001", "step-000001/config.json was saved in the run "},
        {"step-000001", "step-000002", "holds the weights of step 1"},
        {"/run.json", "run.json", "config.json was saved in the run "},
    };
    for (const Family& kind : families()) {
        const TemporaryFolder folder;
        const std::string run = folder.file("run"), other = folder.file("other"), mixed = folder.file("mixed");
        train(kind, 1, run);
        train(kind, 2, other);
        CHECK(refusal(kind, run) == "");
        for (const Case& c : cases) {
            CAPTURE(text(kind.name, ": ", c.from, " as ", c.to));
            fs::remove_all(mixed);
            fs::copy(run, mixed, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
            fs::remove_all(mixed + "/" + c.to);
            fs::copy(c.from[0] == '/' ? other + c.from : run + "/" + c.from, mixed + "/" + c.to,
                     fs::copy_options::recursive);
            CHECK_SAYS(refusal(kind, mixed), c.said);
        }
    }
}

TEST_CASE(
    "belonging: runs of older versions, which have no ties, load and go on; their sizes are still those of the file") {
    for (const Family& kind : families()) {
        CAPTURE(std::string(kind.name));
        const TemporaryFolder folder;
        const std::string run = folder.file("run"), step = run + "/step-000002";
        train(kind, 1, run);
        const auto before = kind.load(run, true, Device::cpu);
        untie(run);
        CHECK(refusal(kind, run) == "");
        CHECK(bits_of(kind.load(run, true, Device::cpu)->parameters.values()) == bits_of(before->parameters.values()));
        nlohmann::json config = read_json(step + "/config.json");
        if (before->stacks().none()) continue;
        for (const auto& [key, value] : {std::pair{"width", 65536}, {"inner", 262144}, {"layers", 1024}})
            config[kind.name][key] = value;
        write_file(step + "/config.json", config.dump());
        // Such tensors would have terabytes, which the file does not contain.
        CHECK_SAYS(refusal(kind, run), "65536) is expected. Was it made with other settings?");
    }
}

TEST_CASE("belonging: the vocabulary's hash covers tokenizer.json; older runs hashed vocab.txt alone") {
    for (const Family& kind : families()) {
        if (kind.reads == TextKind::none) continue;  // the vocabulary comes from the task
        CAPTURE(std::string(kind.name));
        const TemporaryFolder folder;
        const std::string run = folder.file("run"), json = run + "/tokenizer.json";
        WordPiece::Options options;
        options.rules = Rules::hugging_face;
        train(kind, 1, run, options);
        CHECK(refusal(kind, run) == "");
        const std::string good = read_file(json), record = read_file(run + "/run.json");
        replace_text(json, "\"lowercase\": true", "\"lowercase\": false");
        CHECK_SAYS(refusal(kind, run), "tokenizer.json beside it has changed since the run was started");
        fs::remove(json);
        CHECK_SAYS(refusal(kind, run),
                   " has changed since the run was started, or tokenizer.json beside it was removed; ");
        write_file(json, good);
        nlohmann::json old = nlohmann::json::parse(record);
        old["vocabulary_hash"] = hash_text(read_file(run + "/vocab.txt"));
        write_file(run + "/run.json", old.dump());
        // The hash of an older run does not cover tokenizer.json, so this file seems to be new.
        CHECK_SAYS(refusal(kind, run), "tokenizer.json has changed since the run was started");
        old.erase("salt");
        write_file(run + "/run.json", old.dump());
        CHECK(refusal(kind, run) == "");
        replace_text(json, "\"who\"", "\"whoo\"");
        CHECK_SAYS(refusal(kind, run), "tokenizer.json has whoo as token ");
    }
}

TEST_CASE("belonging: lengths.txt of another text is refused") {
    const Family& kind = find_family("unilm");
    const TemporaryFolder folder;
    const std::string run = folder.file("run"), lengths = run + "/lengths.txt";
    train(kind, 1, run, {}, "any-order");
    CHECK(refusal(kind, run) == "");
    const std::string good = read_file(lengths);
    write_file(lengths, good + "23\t24\t1000\n");
    CHECK_SAYS(refusal(kind, run), "lengths.txt has changed since the run was started; ");
    fs::remove(lengths);  // what needs no lengths still works
    CHECK(refusal(kind, run) == "");
    write_file(lengths, good + "23\t24\t1000\n");
    untie(run);
    nlohmann::json record = read_json(run + "/run.json");
    record.erase("lengths_hash");  // as older versions wrote it
    write_file(run + "/run.json", record.dump());
    CHECK(refusal(kind, run) == "");
}

TEST_CASE("belonging: weights that are not finite are refused wherever a file becomes parameters") {
    const std::vector<float> nan(1 << 16, std::numeric_limits<float>::quiet_NaN());
    const std::vector<double> huge(1 << 16, 1e300);
    for (const Family& kind : families()) {
        CAPTURE(std::string(kind.name));
        const TemporaryFolder folder;
        const std::string run = folder.file("run"), first = run + "/step-000001/model.safetensors",
                          bias = kind.options == Family::of_vectors ? "flow.0.st.bias" : "head.bias";
        train(kind, 1, run);
        fill(first, bias, Element::f32, nan.data());  // only the mean of both checkpoints reads this file
        CHECK_SAYS(refusal(kind, run), "step-000001/model.safetensors: tensor " + bias);
        CHECK_SAYS(refusal(kind, run), "weights are finite");
        const auto model = kind.load(run + "/step-000002", true, Device::cpu);
        if (model->bert()) {
            save_hugging_face(folder.path, *model->bert(), model->parameters, model->tokenizer.vocabulary());
            CHECK(message_of<BadInput>([&] { Start::open(folder.path); }) == "");
            fill(folder.file("model.safetensors"), "bert.encoder.layer.0.output.dense.bias", Element::f64, huge.data());
            fill(folder.file("model.safetensors"), "roformer.encoder.layer.0.output.dense.bias", Element::f64,
                 huge.data());
            CHECK_SAYS(message_of<BadInput>([&] { Start::open(folder.path); }),
                       "holds 1e+300 as number 0 of 0 to 15; weights are finite, and at most 3.4e38 in float");
        }
        RunFolder resumed = RunFolder::open(run + "/step-000001");
        const std::unique_ptr<Task> task = model->task(text_for(model->common().wants(kind.reads)));
        Trainer trainer(model->parameters, *task, resumed, model->common().train);
        CHECK_SAYS(message_of<BadInput>([&] { trainer.resume(); }), "weights are finite");
    }
}

TEST_CASE("belonging: a two-row head of slots does not go to a model of words") {
    for (const Family& from : families()) {
        if (from.reads == TextKind::none) continue;
        const TemporaryFolder folder;
        train(from, 1, folder.file("run"));
        const bool two_stacks = from.load(folder.file("run"), false, Device::cpu)->stacks().decoder.has_value();
        for (const Family& to : families()) {
            if (to.reads == TextKind::none) continue;
            CAPTURE(text(from.name, " to ", to.name));
            const auto start = Start::open(folder.file("run"));
            const std::unique_ptr<RunSettings> settings = tiny(to);
            start->adopt(*settings);
            const std::unique_ptr<Run> run =
                to.fresh(*settings, start->tokenizer().vocabulary(), DType::f32, Device::cpu);
            if (two_stacks && !run->stacks().decoder) continue;
            start->give_weights(*run);
            const std::unique_ptr<Task> task = run->task(text_for(settings->wants(to.reads)));
            task->next_batch(0);
            Arena arena(Device::cpu, Blocks::loose);
            Tape tape(arena, DType::f32);
            tape.begin("train", 1, 0, true);
            CHECK(std::isfinite(number_at(task->loss(tape, 0, 0)->view(), 0)));
        }
    }
}
