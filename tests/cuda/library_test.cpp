// SPDX-License-Identifier: MIT
// Tests open_cuda_library(): which libraries are accepted, and with which messages other files are refused.
#include "tests/cuda/fake_device.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include "engine/tensor/buffer.h"

using namespace masquerade;

namespace {

std::string refusal(const std::string& path) {
    try {
        open_cuda_library(path);
    } catch (const BadInput& e) {
        return e.what();
    }
    return "taken";
}

std::string hex(std::uint64_t x) {
    std::ostringstream out;
    out << std::hex << x;
    return out.str();
}

// While a Named exists, the environment variable MASQUERADE_CUDA contains `path`.
struct Named {
    explicit Named(const std::string& path) { setenv("MASQUERADE_CUDA", path.c_str(), 1); }
    ~Named() { unsetenv("MASQUERADE_CUDA"); }
};

}  // namespace

TEST_CASE("cuda library: a path that is not there, a text and another's library are refused in one line") {
    TemporaryFolder folder;
    const std::string absent = folder.file("absent.so"), note = folder.write("note.so", "not a library\n"),
                      foreign = beside_the_tests("foreign_cuda.so");
    const std::string mine =
        text("masquerade cuda ", version, ", interface ", interface_edition, ':', hex(this_stamp().interface));
    CHECK(refusal(absent) == "the CUDA library " + absent +
                                 " cannot be opened: cannot open shared object file: No such file or directory");
    CHECK(refusal(note).find("the CUDA library " + note + " cannot be opened: ") == 0);
    CHECK(refusal(note).find('\n') == std::string::npos);
    CHECK(refusal(foreign) == foreign + " is no CUDA library of masquerade: it lacks masquerade_cuda(), expected " +
                                  mine + "; run make, or name another in MASQUERADE_CUDA");
}

TEST_CASE("cuda library: one that was built otherwise is refused, and both stamps are shown") {
    const std::string path = beside_the_tests("stale_cuda.so");
    const std::string to = text("masquerade cuda ", version, ", interface ", interface_edition, ':');
    CHECK(refusal(path) == text("the CUDA library ", path, " was built for another version: ", to,
                                hex(this_stamp().interface ^ 1), ", expected ", to, hex(this_stamp().interface),
                                "; run make cuda (needs nvcc), or remove it"));
}

TEST_CASE("cuda library: each field of the stamp counts") {
    const LibraryStamp mine = this_stamp();
    CHECK(same(mine, mine));
    LibraryStamp other = mine;
    other.kind[0] = 'M';
    CHECK(!same(other, mine));
    other = mine;
    other.version[0]++;
    CHECK(!same(other, mine));
    other = mine;
    other.edition++;
    CHECK(!same(other, mine));
    other = mine;
    other.interface++;
    CHECK(!same(other, mine));
}

template <class Signature>
using Function = Signature*;

TEST_CASE("cuda library: the hash of the interface changes with names, types and their order") {
    auto hash = [](const char* names, auto... types) {
        return detail::mixed(hash_of(names), detail::Mark<decltype(types)>::of...);
    };
    struct Small {
        int a;
    };
    struct Large {
        int a, b;
    };
    const std::uint64_t base = hash("a", Function<void(View, int)>());
    CHECK(hash("a", Function<void(View, int)>()) == base);
    CHECK(hash("b", Function<void(View, int)>()) != base);
    CHECK(hash("a", Function<void(int, View)>()) != base);
    CHECK(hash("a", Function<void(View, float)>()) != base);
    CHECK(hash("a", Function<void(View, double)>()) != base);
    CHECK(hash("a", Function<void(Grad, int)>()) != base);
    CHECK(hash("a", Function<void(const View&, int)>()) != base);
    CHECK(hash("a", Function<int(View, int)>()) != base);
    CHECK(hash("a", Function<void(View, int)>(), 0) != base);
    CHECK(hash("a", Function<void(Small)>()) != hash("a", Function<void(Large)>()));
    CHECK(hash("a", Function<void(const Small&)>()) != hash("a", Function<void(const Large&)>()));
    CHECK(hash("a", Function<Small()>()) != hash("a", Function<Large()>()));
}

TEST_CASE("cuda library: MASQUERADE_CUDA names it, otherwise it lies beside the program") {
    {
        Named named("/somewhere/x.so");
        CHECK(find_cuda_library() == "/somewhere/x.so");
    }
    const std::string here = beside_the_tests("libmasquerade_cuda.so");
    std::string found = find_cuda_library();
    if (std::filesystem::exists(here))
        CHECK(found == here);
    else
        CHECK(found != here);
}

TEST_CASE("cuda library: without one nothing is on the GPU, and errors say so") {
    CHECK_THROWS_WITH_AS(Buffer(16, Device::cuda),
                         "no CUDA library is in use; use --device cpu, or call use_cuda() first", Error);
    CHECK_THROWS_WITH_AS(op_table(Device::cuda),
                         "no CUDA library is in use; use --device cpu, or call use_cuda() first", Error);
}

TEST_CASE("cuda library: one of the same make is taken, and what it lacks is known") {
    FakeDevice fake("partial_cuda.so");
    CHECK(fake.library.runtime.answer(0).devices == 1);
    CHECK(missing_cuda_ops() == "store_rows");
    CHECK(std::string(cuda_runtime().facts().name) == "fake GPU");
}

TEST_CASE("cuda library: one that has all ops lacks nothing") {
    FakeDevice fake;
    CHECK(missing_cuda_ops() == "");
}

namespace {

const bool built = std::filesystem::exists(beside_the_tests("libmasquerade_cuda.so"));

}  // namespace

TEST_CASE("cuda library: the real one is taken, lacks no slot, and answers for its GPU" * doctest::skip(!built) *
          doctest::description("needs the CUDA library, built where nvcc is")) {
    const std::string path = beside_the_tests("libmasquerade_cuda.so");
    const CudaLibrary& library = open_cuda_library(path);
    CHECK(library.has[int(OpNumber::gelu_forward)]);
    CHECK(library.has[int(OpNumber::adamw)]);
    const char* const* slots = reinterpret_cast<const char* const*>(library.ops);
    for (int i = 0; i < op_count; i++) CHECK_MESSAGE(slots[i] != nullptr, op_names[i]);
    // The library exports only its interface, and hides even the CUDA runtime that is linked into it.
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(handle != nullptr);
    CHECK(dlsym(handle, "cudaMalloc") == nullptr);
    // The library checks the arguments of an op. The Error that it throws is caught here, in the program.
    float x = 0;
    View one{&x, DType::f32, Device::cuda, {1}, "one"};
    CHECK_THROWS_WITH_AS(library.ops->nearest_level_forward(one, 1, one),
                         "nearest_level: 1 levels, expected 2 at least", Error);
    if (!library.has[int(OpNumber::attention_forward)])
        CHECK_THROWS_WITH_AS(library.ops->attention_forward({}, {}, {}, {}, {}, {}),
                             "op attention_forward has no CUDA form yet", Error);
    const Answer answer = library.runtime.answer(0);
    if (answer.devices == 0) {
        CHECK(std::string(answer.reason) != "");
        CHECK_THROWS_AS(library.runtime.allocate(64), Error);
        CHECK_THROWS_AS(library.runtime.facts(), Error);
        CHECK_THROWS_AS(library.ops->gelu_forward(one, GeluKind::erf, one), Error);
    } else {
        CHECK(library.runtime.facts().major >= 8);
        use_cuda_library(&library);
        std::vector<float> y = gelu_by(Device::cuda), expected = gelu_by(Device::cpu);
        for (std::size_t i = 0; i < y.size(); i++) CHECK(std::abs(y[i] - expected[i]) <= 1e-6);
        use_cuda_library(nullptr);
    }
}
