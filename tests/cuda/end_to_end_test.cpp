// SPDX-License-Identifier: MIT
// Rung 5 on a device: whole models train, resume and write as they do on the CPU. The cases named "gpu: ..." run if a
// GPU answers. The other cases always run, on the fake device, whose ops are the CPU's, and with kernels as fibers.
#include "engine/ops/cuda/multiply.h"
#include "models/writing/univae_decoder.h"
#include "tests/cuda/end_to_end.h"
#include "tests/cuda/gpu.h"
#include "tests/emulator/emulator.h"
#include "tests/emulator/planted.h"

using namespace masquerade;
using namespace masquerade::end_to_end;

namespace {

void tell(const Faults& faults) {
    for (const std::string& fault : faults.all) FAIL_CHECK(fault);
}

template <class Check>
void for_each_family(Check check) {
    for (const Family& kind : families())
        for (DType precision : {DType::f32, DType::bf16}) tell(check(kind, precision));
}

Faults check_steps(const Family& kind, DType precision) { return check_training(kind, precision); }

// Runs the check for the first family on the fake device, after `replace` has changed the device's table of ops.
Faults with_broken_op(void (*replace)(OpTable&), Faults (*check)(const Family&, DType)) {
    FakeDevice fake;
    OpTable table = op_table(Device::cpu);
    replace(table);
    fake.control->backing = &table;
    return check(families().front(), DType::f32);
}

}  // namespace

#define GPU_CASE(name) TEST_CASE("gpu: " name* doctest::description("runs where a GPU answers") * doctest::skip(!gpu()))

GPU_CASE("training captured == op by op, and near the CPU") {
    Gpu used;
    for_each_family(check_steps);
}

// The host requests one or two steps before the device has run them. The stand-in of tests/ptx does all work as late as
// CUDA allows. If the host overwrites memory too early, the device therefore reads changed numbers.
GPU_CASE("a step is sent in one copy, and the next one does not wait for it") {
    Gpu used;
    const ptx::StreamCounts* const counts = stand_in_counts();
    for (const Family& kind : families()) {
        INFO(std::string(kind.name));
        end_to_end::Training there(kind, DType::f32, Device::cuda), here(kind, DType::f32, Device::cpu);
        std::vector<ReadLater> losses;
        std::vector<double> expected;
        int graphs = 0;
        for (std::uint32_t i = 0; i < 6; i++) {
            const ptx::StreamCounts before = counts ? *counts : ptx::StreamCounts();
            losses.emplace_back(there.request(i, true)->view());
            there.tape.end();
            if (i % 2 == 1) CHECK(std::isfinite(losses[i - 1][0]));
            here.step(i, false);
            expected.push_back(here.last_loss);
            if (!counts || counts->graphs == before.graphs) continue;  // the first step of a bucket runs op by op
            graphs++;
            CHECK(counts->uploads == before.uploads + 1);
            CHECK(counts->idle == before.idle);
        }
        for (std::size_t i = 0; i < losses.size(); i++) {
            INFO("step ", i);
            CHECK(losses[i][0] == doctest::Approx(expected[i]).epsilon(1e-3));
        }
        if (counts) CHECK(graphs >= 3);
    }
}

namespace {

using Counts = ptx::StreamCounts;

// Calls f, and returns the counts of what f has requested.
template <class F>
Counts counted(const Counts& counts, F f) {
    const Counts before = counts;
    f();
    return {counts.uploads - before.uploads,      counts.reads - before.reads,   counts.moves - before.moves,
            counts.launches - before.launches,    counts.graphs - before.graphs, counts.idle - before.idle,
            counts.read_bytes - before.read_bytes};
}

}  // namespace

GPU_CASE("a token is one graph, which is sent in one copy and has the bits of op by op") {
    Gpu used;
    Parameters parameters(DType::f32, Device::cuda);
    const UniVae model(parameters, tiny_model(LatentKind::vmf, false));
    parameters.allocate(1);
    std::vector<DecodeRequest> requests;
    for (std::uint32_t i = 0; i < 6; i++)
        requests.push_back({model.space.prior(1, i, 0), i, 0, model.start_position(9)});
    SearchOptions greedy, beams, sampling;
    beams.beams = 3;
    sampling.samples = 2, sampling.top_k = 5;
    for (SearchOptions how : {greedy, sampling, beams}) {
        INFO(how.beams, " beams, ", how.samples, " samples");
        const UniVaeDecoder::Special special{2, 3, {0, 2, 3}};  // a text ends only at its maximum length
        UniVaeDecoder decoder(model, special), plain(model, special, false);
        std::vector<Hypotheses> found, expected;
        const auto write = [&](int tokens) {
            how.maximum = tokens;
            found = decoder.search(requests, how, 1);
        };
        write(10);  // runs op by op, and allocates the memory of the tensors
        write(10);
        expected = plain.search(requests, how, 1);
        for (std::size_t i = 0; i < requests.size(); i++)
            for (std::size_t k = 0; k < expected[i].size(); k++) {
                CHECK(found[i].at(k).tokens.size() == 10);
                CHECK(found[i][k].tokens == expected[i][k].tokens);
                CHECK(found[i][k].score == expected[i][k].score);
            }
        if (!stand_in_counts()) continue;
        const Counts ten = counted(*stand_in_counts(), [&] { write(10); });
        const Counts six = counted(*stand_in_counts(), [&] { write(6); });
        CHECK(ten.launches == six.launches);  // only the ops that read the latents run outside of graphs
        CHECK(ten.graphs - six.graphs == 4);
        CHECK(ten.uploads - six.uploads == 4);
        CHECK(ten.moves - six.moves == 4);  // the rotary table, once for each token
        // Shortlists, once for each token. A list has 16 tokens more than the search needs, and one sum of exp.
        CHECK(ten.reads - six.reads == 4);
        const int rows = 6 * std::max(how.beams, how.samples);
        const int width = 16 + (how.samples > 0 ? how.top_k : how.beams > 1 ? how.beams + 1 : 1);
        CHECK(ten.read_bytes - six.read_bytes == 4 * rows * (2 * width + 1) * long(sizeof(float)));
        CHECK(ten.idle - six.idle == 4);
    }
}

namespace {

// A decoder of which the search sees all logits.
class AllLogits : public NextToken {
  public:
    explicit AllLogits(NextToken& decoder) : decoder_(decoder) {}
    int vocabulary() const override { return decoder_.vocabulary(); }
    const float* step(const std::vector<Row>& rows) override { return decoder_.step(rows); }

  private:
    NextToken& decoder_;
};

}  // namespace

// With the last options, most tokens are forbidden, so that some shortlists are too short.
GPU_CASE("shortlists write what all logits write") {
    Gpu used;
    Parameters parameters(DType::f32, Device::cuda);
    const UniLm model(parameters, tiny_model(LatentKind::none, false).backbone);
    parameters.allocate(1);
    const std::vector<Sentence> text = random_sentences(4);
    std::vector<SearchSource> about(text.size());
    for (std::size_t i = 0; i < about.size(); i++) about[i].line = std::uint32_t(i), about[i].begin = 3;
    SearchOptions greedy, sampling, beams;
    greedy.maximum = sampling.maximum = beams.maximum = 6;
    sampling.samples = 2, sampling.top_k = 5, sampling.repetition_penalty = 1.5;
    beams.beams = beams.n_best = 2;
    for (int token = 4; token < 60; token++) beams.forbidden.push_back(token);
    for (int mask : {-1, 4})
        for (const SearchOptions& how : {greedy, sampling, beams}) {
            INFO("mask ", mask, ", ", how.beams, " beams, ", how.samples, " samples");
            ReadingOptions reading;
            reading.longest = how.maximum;
            reading.mask = mask;
            UniLmDecoder decoder(model, reading);
            AllLogits all(decoder);
            const auto write = [&](NextToken& by) {
                decoder.read(pointers_to(text), int(text.size()) * std::max(how.beams, how.samples));
                return search(by, about, how, 1);
            };
            const long none = stand_in_counts() ? stand_in_counts()->read_bytes : 0;
            const std::vector<Hypotheses> found = write(decoder);
            const long listed = stand_in_counts() ? stand_in_counts()->read_bytes - none : 0;
            const std::vector<Hypotheses> expected = write(all);
            for (std::size_t i = 0; i < text.size(); i++) {
                REQUIRE(found[i].size() == expected[i].size());
                for (std::size_t k = 0; k < expected[i].size(); k++) {
                    CHECK(found[i][k].tokens == expected[i][k].tokens);
                    CHECK(found[i][k].score == expected[i][k].score);
                }
            }
            if (!stand_in_counts()) continue;
            const long of_all = stand_in_counts()->read_bytes - none - listed;
            if (how.forbidden.empty())
                CHECK(listed < of_all);
            else if (mask < 0)
                CHECK(listed > of_all);
        }
}

GPU_CASE("memory that cannot be released is reported by the next wait, and no tensor is allocated during a capture") {
    Gpu used;
    if (std::string(cuda_runtime().facts().name) == "fake GPU") return;
    Buffer memory(64, Device::cuda);
    int on_host = 0;
    cuda_runtime().release(&on_host);
    CHECK_SAYS(message_of<Error>([] { wait_for(Device::cuda); }), "CUDA: releasing memory failed");
    wait_for(Device::cuda);
    cuda_runtime().begin_graph();
    CHECK_SAYS(message_of<Error>([] { Buffer(64, Device::cuda); }),
               "a tensor of 64 bytes is allocated while a step is captured");
    cuda_runtime().abandon_graph();
    wait_for(Device::cuda);
}

GPU_CASE("no working memory grows during a capture, but the next capture has it") {
    Gpu used;
    if (std::string(cuda_runtime().facts().name) == "fake GPU") return;
    const std::vector<char> bytes(std::size_t(5) << 20);
    const auto send = [&](int parts) {
        cuda_runtime().begin_graph();
        for (int i = 0; i < parts; i++) cuda_runtime().send_with_graph(bytes.data(), bytes.size() / parts);
        cuda_runtime().abandon_graph();
    };
    for (int parts : {1, 5, 50}) {
        int tries = 1;
        for (; tries < 9; tries++) {
            try {
                send(parts);
                break;
            } catch (const OutgrownInCapture& e) {
                cuda_runtime().abandon_graph();
                CHECK_SAYS(std::string(e.what()),
                           "more bytes of working memory are needed while a step is captured as a graph");
            }
        }
        CHECK(tries < 9);
        if (parts > 1) CHECK(tries == 1);
    }
}

GPU_CASE("training resumed on any device") {
    Gpu used;
    for_each_family(check_resume);
}

GPU_CASE("writing and held-out losses as on the CPU") {
    Gpu used;
    for (const Family& kind : families()) tell(check_writing(kind));
}

TEST_CASE("fake device: training, resuming and writing of every family") {
    FakeDevice fake;
    for_each_family(check_steps);
    for_each_family(check_resume);
    for (const Family& kind : families()) tell(check_writing(kind));
}

TEST_CASE("kernels: training of every family is near the CPU's, whoever makes the products") {
    for (bool deterministic : {false, true}) {
        FakeDevice fake;
        fake.control->backing = &emulator::ops();
        fake.control->add_late_sums = fibers::add_sums_left;
        fake.control->forget_late_sums = fibers::forget_sums_left;
        fibers::product_rule().deterministic = deterministic;
        for_each_family([](const Family& kind, DType precision) { return check_training(kind, precision, 2); });
    }
    fibers::product_rule() = {};
}

TEST_CASE("fake device: a gradient that is a tenth off, an update that forgets, and bits that change are seen") {
    auto wrong_gradient = [](OpTable& table) {
        table.gelu_linear_backward = [](View dy, View u, View a, View w, GeluKind kind, Grad du, Grad dw, Grad db) {
            cpu::gelu_linear_backward(dy, u, a, w, kind, du, dw, db);
            for (std::int64_t i = 0; db && i < db.view.count(); i++) db.view.as<float>()[i] *= 1.1f;
        };
    };
    auto other_bits = [](OpTable& table) {  // another sum in every call
        table.add_forward = [](View a, View b, View y) {
            static int calls = 0;
            cpu::add_forward(a, b, y);
            if (y.count() > 0) y.as<float>()[0] += 1e-3f * float(calls++);
        };
    };
    auto no_update = [](OpTable& table) {
        table.adamw = [](View, View, View, View, View, View, OptimiserRule, View) {};
    };
    CHECK(with_broken_op([](OpTable&) {}, check_steps).all.empty());
    CHECK_FALSE(with_broken_op(wrong_gradient, check_steps).all.empty());
    CHECK_FALSE(with_broken_op(other_bits, check_steps).all.empty());
    CHECK_FALSE(with_broken_op(no_update, check_steps).all.empty());
    CHECK_FALSE(with_broken_op(other_bits, check_resume).all.empty());
    auto wrong_writing = [](const Family& kind, DType) { return check_writing(kind); };
    auto shifted = [](OpTable& table) {
        table.embedding_forward = [](Ints ids, View w, View y) {
            cpu::embedding_forward(ids, w, y);
            if (y.count() > 0) y.as<float>()[0] += 5;
        };
    };
    CHECK_FALSE(with_broken_op(shifted, wrong_writing).all.empty());
}
