// SPDX-License-Identifier: MIT
// Tests memory, copies, ops and errors of Device::cuda on the fake device, whose memory the host cannot access.
#include <numeric>
#include <thread>
#include <vector>

#include "engine/tape/plan.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/copy.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/gpu.h"

using namespace masquerade;

namespace {

struct Numbers {
    Numbers(std::int64_t n, Device device)
        : memory(std::size_t(n) * sizeof(float), device), view{memory.data(), DType::f32, device, {n}, "numbers"} {}
    Buffer memory;
    View view;
};

View view_of(std::vector<float>& x) { return {x.data(), DType::f32, Device::cpu, {std::int64_t(x.size())}, "host"}; }

}  // namespace

TEST_CASE("cuda device: numbers go there, within and back unchanged") {
    FakeDevice fake;
    std::vector<float> x(1000), y(1000, -1);
    std::iota(x.begin(), x.end(), 0.5f);
    Numbers a(1000, Device::cuda), b(1000, Device::cuda);
    copy(view_of(x), a.view);
    copy(a.view, b.view);
    copy(b.view, view_of(y));
    CHECK(x == y);
    for (int way : {0, 1, 2}) CHECK(fake.control->ways[way] == 1);
    fill_bytes(b.view, 0);
    copy(b.view, view_of(y));
    CHECK(y == std::vector<float>(1000, 0));
    copy(view_of(x), view_of(y));  // a copy from host to host does not use the device
    CHECK(x == y);
    CHECK(fake.control->ways[0] + fake.control->ways[1] + fake.control->ways[2] == 4);
}

// CUDA keeps the GPU in use for each thread, and a new thread begins with GPU 0. The stand-in of tests/ptx complains if
// a thread uses GPU 0 although the stream belongs to GPU 1, as it does with PTX_DEVICES=2 and a local rank of 1.
TEST_CASE("gpu: every thread uses the GPU of the process" * doctest::description("runs where a GPU answers") *
          doctest::skip(!gpu())) {
    Gpu used;
    std::vector<float> twos(40, 2), sums(40);
    const auto add = [&] {
        Numbers x(40, Device::cuda), y(40, Device::cuda);
        copy(view_of(twos), x.view);
        op_table(Device::cuda).add_forward(x.view, x.view, y.view);
        copy(y.view, view_of(sums));
    };
    add();
    sums.assign(40, 0);
    std::thread(add).join();
    CHECK(sums == std::vector<float>(40, 4));
}

TEST_CASE("cuda device: views that differ are not copied") {
    std::vector<float> x(6), y(5);
    View a = view_of(x), b = view_of(y);
    CHECK_THROWS_WITH_AS(copy(a, b), "copy: host is (6) f32 but host is (5) f32; they must be alike", Error);
    b.shape = a.shape;
    b.dtype = DType::bf16;
    CHECK_THROWS_WITH_AS(copy(a, b), "copy: host is (6) f32 but host is (6) bf16; they must be alike", Error);
    View none{nullptr, DType::f32, Device::cpu, {0}, "none"};
    copy(none, none);
}

TEST_CASE("cuda device: memory is moved, released, and refused where there is not enough") {
    FakeDevice fake;
    {
        Buffer a(100, Device::cuda);
        CHECK(a.device() == Device::cuda);
        void* data = a.data();
        Buffer b(std::move(a)), none(0, Device::cuda);
        CHECK(b.data() == data);
        CHECK(none.data() != nullptr);
        CHECK(fake.control->blocks == 2);
        a = Buffer(64, Device::cpu);
        b = std::move(a);
    }
    CHECK(fake.control->blocks == 0);
    fake.control->limit = std::size_t(4) << 20;
    Buffer taken(std::size_t(1) << 20, Device::cuda);  // the fake device takes one page more
    CHECK_THROWS_WITH_AS(
        Buffer(std::size_t(3) << 20, Device::cuda),
        "the GPU is out of memory: 3 MiB wanted in one piece, 2 of 4 MiB free; more parts, or a smaller "
        "batch_tokens, width or vocabulary, need less",
        BadInput);
}

TEST_CASE("cuda device: an op runs where its first tensor lies") {
    FakeDevice fake("partial_cuda.so");
    const std::vector<float> here = gelu_by(Device::cpu);
    CHECK(here[299] > 2.9f);
    CHECK(gelu_by(Device::cuda) == here);
    Numbers a(3, Device::cuda), b(3, Device::cuda);
    a.view.shape = b.view.shape = {1, 3};
    const int row = 0;
    CHECK_THROWS_WITH_AS(store_rows(a.view, Ints{&row, 1}, b.view), "op store_rows has no CUDA form yet", Error);
}

TEST_CASE("cuda device: what is thrown in the library is caught here as what it is") {
    FakeDevice fake;
    auto caught = [&](int fault) -> std::string {
        fake.control->fault = fault;
        try {
            cuda_runtime().synchronise();
        } catch (const BadUsage&) {
            return "usage";
        } catch (const BadInput& e) {
            return text("input: ", e.what());
        } catch (const Error& e) {
            return text("error: ", e.what());
        } catch (const std::exception& e) {
            return dynamic_cast<const std::bad_alloc*>(&e) ? "memory" : "other";
        }
        return "nothing";
    };
    CHECK(caught(0) == "nothing");
    CHECK(caught(1) == "error: the fake device: an error");
    CHECK(caught(2) == "input: the fake device: bad input");
    CHECK(caught(3) == "memory");
    Numbers a(3, Device::cuda), b(4, Device::cuda);  // for the check of shapes before an op runs
    CHECK_THROWS_WITH_AS(gelu_forward(a.view, GeluKind::erf, b.view),
                         "gelu_forward: y does not fit: x numbers is (3) f32, y numbers is (4) f32; expected x y(*)",
                         Error);
}

TEST_CASE("cuda device: time between two moments") {
    FakeDevice fake;
    const DeviceRuntime& runtime = cuda_runtime();
    DeviceEvent *from = runtime.note_moment(), *to = runtime.note_moment();
    CHECK(runtime.seconds_between(from, to) == 1);
    runtime.forget_moment(from);
    runtime.forget_moment(to);
}

TEST_CASE("cuda device: a planned step lies there, and what dies is poisoned there") {
    FakeDevice fake;
    Arena arena(Device::cuda);
    arena.set_poison(true);
    std::vector<float> y(8);
    for (int step = 0; step < 2; step++) {
        arena.begin_step("bucket");
        int early, late;
        View a{arena.take(32, &early), DType::f32, Device::cuda, {8}, "a"};
        View b{arena.take(32, &late), DType::f32, Device::cuda, {8}, "b"};
        fill_bytes(a, 0);
        fill_bytes(b, 0);
        arena.tick();
        arena.touch(late);
        if (step == 1) {
            CHECK(arena.planned());
            copy(a, view_of(y));
            for (float v : y) CHECK(v != v);
            copy(b, view_of(y));
            CHECK(y == std::vector<float>(8, 0));
        }
        arena.tick();
        arena.end_step();
    }
}
