// SPDX-License-Identifier: MIT
// Tests memory that a Buffer owns: it is aligned, it can be moved, and if the machine does not have enough, the error
// is one clear line.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/tensor/buffer.h"

using namespace masquerade;

TEST_CASE("buffer: aligned to 64 bytes, empty ones too") {
    for (std::size_t bytes : {std::size_t(0), std::size_t(1), std::size_t(100), std::size_t(1) << 20}) {
        Buffer buffer(bytes);
        CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
        CHECK(buffer.bytes() == bytes);
    }
}

TEST_CASE("buffer: moving hands the memory over") {
    Buffer a(128);
    void* data = a.data();
    Buffer b(std::move(a));
    CHECK(b.data() == data);
    a = std::move(b);
    CHECK(a.data() == data);
}

TEST_CASE("buffer: more than the machine has is an error that says what to change") {
    for (std::size_t bytes : {std::size_t(1) << 45, ~std::size_t(0)}) {
        std::string said;
        try {
            Buffer buffer(bytes);
        } catch (const BadInput& e) {
            said = e.what();
        }
        CHECK(said.find("out of memory") != std::string::npos);
        CHECK(said.find("width") != std::string::npos);
    }
}
