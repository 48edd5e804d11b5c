// SPDX-License-Identifier: MIT
// Tests that training on the fake device has the same bits as training on the CPU. The host cannot access the memory of
// the fake device.
#include <cmath>
#include <map>

#include "engine/tape/rehearsal.h"
#include "engine/tape/trace.h"
#include "engine/tensor/copy.h"
#include "engine/train/adamw.h"
#include "tests/cuda/fake_device.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

struct Variant {
    const char* name;
    LatentKind kind;
    DType storage;
    bool pre_norm, rotary;
    const char* attention = "softmax";
    bool source_prior = false;
    UniVaeOptions::Decoder decoder = UniVaeOptions::Decoder::causal;
};
const Variant variants[] = {{"vmf, post-LN, rotary, f32", LatentKind::vmf, DType::f32, false, true},
                            {"vmf, post-LN, rotary, bf16", LatentKind::vmf, DType::bf16, false, true},
                            {"gaussian, pre-LN, table, f32", LatentKind::gaussian, DType::f32, true, false},
                            {"gaussian, pre-LN, table, bf16", LatentKind::gaussian, DType::bf16, true, false},
                            {"vmf, patterns by head, bf16", LatentKind::vmf, DType::bf16, false, true, "by_head"},
                            {"gaussian, prior of the source, bf16", LatentKind::gaussian, DType::bf16, false, true,
                             "softmax", true},
                            {"gaussian, insertion, bf16", LatentKind::gaussian, DType::bf16, true, true, "softmax",
                             false, UniVaeOptions::Decoder::insertion},
                            {"gaussian, diffusion, bf16", LatentKind::gaussian, DType::bf16, true, true, "softmax",
                             false, UniVaeOptions::Decoder::diffusion}};

struct Training {
    Parameters parameters;
    UniVae model;
    AdamW optimiser;
    Arena arena;
    Tape tape;
    std::vector<Sentence> text = random_sentences(24);

    Training(const Variant& v, Device device)
        : parameters(v.storage, device),
          model(parameters, options(v)),
          optimiser(allocated(parameters), {0.9, 0.98, 1e-8, 0.01, 1}),
          arena(device),
          tape(arena, v.storage) {
        arena.set_poison(true);
        if (v.source_prior)
            for (std::size_t i = 0; i < text.size(); i++)
                text[i].target.assign(1 + i % 9, 7), text[i].target.back() = 3;
    }
    // Adds a parameter that the model does not use, so that no backward reaches it.
    static Parameters& allocated(Parameters& p) {
        p.add("unused", {3, 5}, {Init::normal, 1});
        p.allocate(1);
        return p;
    }
    static UniVaeOptions options(const Variant& v) {
        UniVaeOptions o = tiny_model(v.kind, v.pre_norm);
        o.backbone.rotary = v.rotary;
        o.backbone.attention = v.attention;
        o.conditional = o.latent.source_prior = v.source_prior;
        o.decoder = v.decoder;
        return o;
    }
    bool captured = true;

    // Runs a step, and returns the bits of the loss, the gradient norm, the gradients, the weights, their rounded
    // copies, and the moments after the step.
    std::vector<char> step(std::uint32_t number) {
        std::vector<const Sentence*> some;  // 3 sentences or all of them, by turns: two buckets
        for (std::size_t i = 0; i < (number % 2 ? text.size() : 3); i++) some.push_back(&text[i]);
        ObjectiveOptions o = halves_options(model);
        o.mask = 4;
        const Batch batch = halves_batch(model, some, 0, o, 16);
        const LatentNoise noise = model.space.noise(batch.names(), 1, number);
        Tensor* loss = nullptr;
        auto work = [&] {
            loss = model.loss(tape, batch, &noise, 0.1).total;
            parameters.start_gradients();
            tape.backward(loss);
            parameters.finish_gradients();
            optimiser.update(number + 1, 1e-2);
        };
        run_step(tape, batch.bucket, 1, number, captured, work);
        std::vector<char> all = bits_of(loss->view());
        const double norm = optimiser.norm();
        all.insert(all.end(), reinterpret_cast<const char*>(&norm), reinterpret_cast<const char*>(&norm + 1));
        for (const View& v : {parameters.gradients(), parameters.values(), parameters.rounded(), optimiser.state(0),
                              optimiser.state(1)}) {
            if (!v.data) continue;
            const std::vector<char> bits = bits_of(v);
            all.insert(all.end(), bits.begin(), bits.end());
        }
        tape.end();
        return all;
    }
};

std::map<std::string, std::string> files_in(const std::string& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        files[entry.path().filename().string()] = read_bytes(entry.path().string());
    return files;
}

// Removes the clock times from a log.
std::string without_seconds(std::string log) {
    for (const char* key : {"\"seconds\":", "\"tokens_per_second\":", "\"memory\":"})
        for (std::size_t at; (at = log.find(key)) != std::string::npos;)
            log.erase(at, log.find_first_of(",}", at) - at);
    return log;
}

// Compares what two runs leave behind: their last checkpoints, logs and samples.
void check_same_run(const RunFolder& a, const RunFolder& b) {
    const std::int64_t step = a.latest_step();
    CHECK(b.latest_step() == step);
    const auto files = files_in(a.step_folder(step)), others = files_in(b.step_folder(step));
    CHECK(files.size() >= 3);
    CHECK(files.size() == others.size());
    for (const auto& [file, bytes] : files) {
        const std::string& name = file;
        INFO(name);
        REQUIRE(others.count(name) == 1);
        CHECK((bytes == others.at(name)));
    }
    CHECK(read_bytes(a.file("samples.txt")) == read_bytes(b.file("samples.txt")));
    CHECK(without_seconds(read_bytes(a.file("log.jsonl"))) == without_seconds(read_bytes(b.file("log.jsonl"))));
}

}  // namespace

TEST_CASE("cuda training: losses, gradients, weights and moments have the CPU's bits") {
    for (const Variant& v : variants) {
        INFO(v.name);
        FakeDevice fake;
        Training here(v, Device::cpu), there(v, Device::cuda);
        int allocations = 0;
        for (std::uint32_t i = 0; i < 6; i++) {
            INFO("step ", i);
            CHECK((here.step(i) == there.step(i)));
            if (i == 3) allocations = fake.control->allocations;
        }
        CHECK(fake.control->late > 0);
        CHECK(there.arena.planned());
        CHECK(fake.control->allocations == allocations);  // both buckets have a plan after step 3
        CHECK(fake.control->graphs == 4);                 // the first step of each bucket ran op by op
    }
}

TEST_CASE("cuda training: op by op the bits are those of a captured step") {
    FakeDevice fake;
    Training captured(variants[1], Device::cuda), plain(variants[1], Device::cuda);
    plain.captured = false;
    for (std::uint32_t i = 0; i < 4; i++) CHECK((captured.step(i) == plain.step(i)));
    CHECK(fake.control->graphs == 2);
    CHECK(fake.control->kept > 200);
}

TEST_CASE("cuda training: a captured step that needs more memory runs op by op") {
    FakeDevice fake;
    Training there(variants[1], Device::cuda), other(variants[1], Device::cuda);
    other.captured = false;
    for (std::uint32_t i = 0; i < 6; i++) {
        if (i == 3) fake.control->outgrown = 1;
        CHECK((there.step(i) == other.step(i)));
    }
    CHECK(fake.control->outgrown == 0);
    CHECK(fake.control->graphs == 3);  // of steps 2, 4 and 5
}

TEST_CASE("cuda training: a gradient is not NaN because the sums of a failed backward were left") {
    FakeDevice fake;
    Training there(variants[1], Device::cuda), other(variants[1], Device::cuda);
    there.captured = other.captured = false;
    struct Fails : Observer {
        int left = 5;
        void before(const Record& r, bool backward) override {
            if (backward && --left == 0) throw Error(r.path, " fails");
        }
    } fails;
    there.tape.observe(&fails);
    CHECK_THROWS_AS(there.step(0), Error);
    there.tape.ignore(&fails);
    CHECK((there.step(0) == other.step(0)));
}

TEST_CASE("cuda training: an op that reads a parameter twice") {
    FakeDevice fake;
    std::vector<char> found[2];
    for (Device device : {Device::cpu, Device::cuda}) {
        Parameters parameters(DType::f32, device);
        Tensor* w = parameters.add("w", {4}, {Init::normal, 1});
        parameters.allocate(1);
        Arena arena(device);
        Tape tape(arena, DType::f32);
        tape.begin("one");
        const float numbers[] = {1, -2, 3, 5, 2, 0, -1, 4}, weights[] = {1, 2, 3, 4, -1, 6, 2, 3};
        Tensor* y = layernorm(tape, tape.constant("x", {2, 4}, DType::f32, numbers), w, w, 1e-5, "y");
        Tensor* loss = weighted_sum(tape, y, tape.constant("weights", {2, 4}, DType::f32, weights), "loss");
        parameters.start_gradients();
        tape.backward(loss);
        parameters.finish_gradients();
        found[int(device)] = bits_of(w->grad_view());
        tape.end();
    }
    CHECK(found[0] == found[1]);
}

TEST_CASE("cuda training: while a step is captured nothing can be read, and one that throws is forgotten") {
    FakeDevice fake;
    Training there(variants[0], Device::cuda), other(variants[0], Device::cuda);
    for (std::uint32_t i = 0; i < 2; i++) CHECK((there.step(i) == other.step(i)));
    {
        const std::vector<const Sentence*> few = {&there.text[0], &there.text[1], &there.text[2]};
        const Batch batch = halves_batch(there.model, few, 16);
        there.tape.begin(batch.bucket, 1, 2, true);
        CapturedStep capture(there.tape, true);
        there.parameters.start_gradients();
        CHECK_THROWS_WITH_AS(OnHost(there.parameters.gradients()),
                             "the fake device: a copy to the host while a step is captured", Error);
        CHECK_THROWS_AS(wait_for(Device::cuda), Error);
        CHECK_THROWS_AS(CapturedStep(there.tape, true), Error);
    }
    CHECK(fake.control->graphs == 0);
    CHECK((there.step(2) == other.step(2)));
    CHECK(fake.control->graphs == 2);
}

TEST_CASE("cuda training: the first step of a bucket needs no more memory than later ones") {
    std::size_t enough = 0;
    {
        FakeDevice fake;
        Training there(variants[0], Device::cuda);
        for (std::uint32_t i = 0; i < 4; i++) there.step(i);
        enough = fake.control->taken;
    }
    FakeDevice fake;
    fake.control->limit = enough + 4096;
    {
        Training there(variants[0], Device::cuda);
        for (std::uint32_t i = 0; i < 4; i++) CHECK_NOTHROW(there.step(i));
    }
    Training there(variants[0], Device::cuda);
    there.captured = false;  // the first step then takes loose blocks, which need more memory
    CHECK_THROWS_AS(there.step(0), BadInput);
}

TEST_CASE("cuda training: a rehearsed step computes nothing, and refuses to be read") {
    FakeDevice fake;
    Training there(variants[0], Device::cuda), other(variants[0], Device::cuda);
    const DeviceRuntime* const before = &cuda_runtime();
    const std::vector<char> weights = bits_of(there.parameters.values());
    const int copies = fake.control->ways[0];
    int asked = 0;
    rehearse(there.tape, "bucket", 1, 0, true, [&] {
        asked++;
        Tensor* x = there.tape.constant("x", {2, 3}, DType::f32, std::vector<float>(6, 1.0f).data());
        CHECK(x->view().device == Device::cuda);
        there.optimiser.update(1, 1);
        CHECK_SAYS(message_of<Error>([&] { OnHost(there.parameters.values()); }),
                   "reads numbers from the device before the whole step is requested");
    });
    CHECK(asked == 1);
    CHECK(fake.control->ways[0] == copies);
    CHECK(&cuda_runtime() == before);
    CHECK((bits_of(there.parameters.values()) == weights));
    rehearse(there.tape, "bucket", 1, 1, true, [&] { asked++; });  // does nothing, because the bucket has a plan now
    CHECK(asked == 1);
    CHECK_THROWS_AS(rehearse(there.tape, "another", 1, 1, true, [] { throw Error("given up"); }), Error);
    CHECK(&cuda_runtime() == before);
    for (std::uint32_t i = 0; i < 2; i++) CHECK((there.step(i) == other.step(i)));
}

TEST_CASE("cuda training: the upload of a step's numbers, and nothing else, goes to the device") {
    FakeDevice fake;
    Training there(variants[0], Device::cuda);
    for (std::uint32_t i = 0; i < 4; i++) there.step(i);
    const int before = fake.control->ways[0];
    there.step(4);
    // Uploads of a step. 13 lists: ids, types, positions and documents of both halves; the targets; rows, documents and
    // positions of [CLS]; the rows that are replaced. 2 rotary tables, one for each half. 4 tensors of noise: w and e
    // of two latent layers. One upload each for the weights, the gradient of the loss, and the numbers of the
    // optimiser.
    CHECK(fake.control->ways[0] - before == 13 + 2 + 4 + 1 + 1 + 1);
}

TEST_CASE("cuda training: a run leaves the files that it leaves on the CPU, byte for byte") {
    struct Case {
        DType precision;
        LatentKind latent;
        int parts, batch_tokens;
    };
    // With 25 tokens, some batches have only one document, and therefore one part.
    for (auto [precision, latent, part_count, batch_tokens] : {Case{DType::f32, LatentKind::gaussian, 1, 80},
                                                               {DType::bf16, LatentKind::vmf, 1, 80},
                                                               {DType::f32, LatentKind::gaussian, 3, 80},
                                                               {DType::bf16, LatentKind::vq, 3, 80},
                                                               {DType::bf16, LatentKind::vq, 3, 25}}) {
        const int parts = part_count;
        INFO(parts, " parts");
        FakeDevice fake;
        UniVaeSettings s = tiny_settings(latent);
        s.train.parts = parts;
        s.batch_tokens = batch_tokens;
        s.precision = precision;
        s.prior_sentences = 100;
        s.train.graph = precision == DType::bf16;
        s.train.tf32 = precision == DType::f32;
        s.train.deterministic = precision == DType::bf16;
        s.train.optimiser = precision == DType::bf16 ? "apollo" : "adamw";
        TemporaryFolder folder;
        TinyRun here(s, RunFolder::create(folder.file("here")), 25);
        TinyRun there(s, RunFolder::create(folder.file("there")), 25, Device::cuda);
        here.trainer.run(never);
        there.trainer.run(never);
        CHECK((here.bits() == there.bits()));
        check_same_run(here.folder, there.folder);
        CHECK((fake.control->graphs > 0) == s.train.graph);
        CHECK(fake.control->products.tf32 == s.train.tf32);
        CHECK(fake.control->products.deterministic == s.train.deterministic);
    }
}

TEST_CASE("cuda training: no step waits for the step under way") {
    for (bool graph : {true, false}) {
        FakeDevice fake;
        UniVaeSettings s = tiny_settings(LatentKind::gaussian);
        s.prior_sentences = 0;
        s.train.graph = graph;
        TemporaryFolder folder;
        TinyRun run(s, RunFolder::create(folder.file("run")), 20, Device::cuda);
        std::vector<int> idle;  // FakeControl::idle before each step
        run.trainer.run([&] { return idle.push_back(fake.control->idle), false; });
        REQUIRE(idle.size() == 20);
        CHECK(idle[1] > idle[0]);  // waits once: the first step must succeed before a file is written
        CHECK(idle[19] == idle[1]);
        CHECK(read_bytes(run.folder.file("log.jsonl")).find("{\"step\":20,\"tokens\":") == 0);
    }
}

TEST_CASE("cuda training: a loss that is not finite ends the run before anything is saved") {
    for (std::int64_t poisoned : {4, 5}) {
        FakeDevice fake;
        UniVaeSettings s = tiny_settings(LatentKind::vmf);
        s.train.save_every = 3;
        TemporaryFolder folder;
        TinyRun run(s, RunFolder::create(folder.file("run")), 9, Device::cuda);
        auto poison = [&] {
            if (run.trainer.step() != poisoned) return false;
            const OnHost bias(run.model.parameters.find("layer.0.ffn.up.bias")->view());
            bias.view().as<float>()[3] = std::nanf("");
            bias.store();
            return false;
        };
        const std::string said = message_of<Error>([&] { run.trainer.run(poison); });
        CHECK_SAYS(said, text("step ", poisoned, ": the loss is nan"));
        CHECK(run.folder.latest_step() == 3);
        CHECK(run.trainer.step() <= 6);
    }
}

TEST_CASE("cuda training: resumed on another device it continues to the same bits") {
    for (DType precision : {DType::f32, DType::bf16}) {
        FakeDevice fake;
        UniVaeSettings s = tiny_settings(LatentKind::vmf);
        s.precision = precision;
        s.prior_sentences = 0;
        TemporaryFolder folder;
        TinyRun straight(s, RunFolder::create(folder.file("straight")), 24);
        straight.trainer.run(never);
        for (Device first : {Device::cpu, Device::cuda}) {
            const std::string where = folder.file(name_of(first));
            { TinyRun(s, RunFolder::create(where), 12, first).trainer.run(never); }
            TinyRun rest(s, RunFolder::resume(where), 24, first == Device::cpu ? Device::cuda : Device::cpu);
            rest.trainer.resume();
            CHECK(rest.trainer.step() == 12);
            rest.trainer.run(never);
            CHECK((straight.bits() == rest.bits()));
            for (const char* file : {"model.safetensors", "state.safetensors"})
                CHECK((read_bytes(straight.folder.step_folder(24) + "/" + file) ==
                       read_bytes(rest.folder.step_folder(24) + "/" + file)));
        }
    }
}

TEST_CASE("cuda training: the NaN trace names the tensor") {
    FakeDevice fake;
    std::string said[2];
    for (Device device : {Device::cpu, Device::cuda}) {
        UniVaeSettings s = tiny_settings(LatentKind::vmf);
        TemporaryFolder folder;
        TinyRun run(s, RunFolder::create(folder.file("run")), 5, device);
        NanTrace trace;
        run.trainer.observe(&trace);
        auto poison = [&] {
            if (run.trainer.step() != 2) return false;
            const OnHost bias(run.model.parameters.find("layer.0.ffn.up.bias")->view());
            bias.view().as<float>()[3] = std::nanf("");
            bias.store();
            return false;
        };
        said[int(device)] = message_of<Error>([&] { run.trainer.run(poison); });
    }
    CHECK_SAYS(said[1], "first number that is not finite: value of encoder.layer.0.ffn.up[0,3] = nan, written by");
    CHECK(said[1] == said[0]);
}

TEST_CASE("cuda training: a dump holds what it holds on the CPU") {
    FakeDevice fake;
    TemporaryFolder folder;
    for (Device device : {Device::cpu, Device::cuda}) {
        Training training(variants[1], device);
        Dump dump(folder.file(name_of(device)));
        training.tape.observe(&dump);
        training.step(0);
        dump.write_program(training.tape);
    }
    const auto here = files_in(folder.file("cpu")), there = files_in(folder.file("cuda"));
    CHECK(here.size() > 100);
    CHECK((here == there));
}

TEST_CASE("cuda training: where memory ends, one line says how much was wanted, what is free, and what to change") {
    std::string said;
    for (std::size_t limit : {std::size_t(8) << 10, std::size_t(1) << 20, std::size_t(3) << 20}) {
        FakeDevice fake;
        fake.control->limit = limit;
        UniVaeSettings s = tiny_settings(LatentKind::vmf);
        s.batch_tokens = 4000;
        TemporaryFolder folder;
        said = message_of<BadInput>([&] {
            TinyRun run(s, RunFolder::create(folder.file("run")), 3, Device::cuda);
            run.trainer.run(never);
        });
        INFO(limit, " bytes");
        CHECK_SAYS(said, "the GPU is out of memory: ");
        CHECK_SAYS(said, " MiB wanted in one piece, ");
        CHECK_SAYS(said, text(" of ", limit >> 20,
                              " MiB free; more parts, or a smaller batch_tokens, width or vocabulary, need less"));
        CHECK(fake.control->blocks == 0);
    }
}
