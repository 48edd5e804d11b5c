// SPDX-License-Identifier: MIT
// Folders for the tests of files, and the message of what they refuse.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

#include "doctest/doctest.h"
#include "engine/base/error.h"

// A folder of its own, gone with all in it at the end of the test.
struct TemporaryFolder {
    TemporaryFolder() {
        const char* where = std::getenv("TMPDIR");
        path = std::string(where && *where ? where : "/tmp") + "/masquerade-test-XXXXXX";
        REQUIRE(::mkdtemp(path.data()) != nullptr);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    std::string file(const std::string& name) const { return path + "/" + name; }
    std::string path;
};

// What f says when it throws an E; "" when it throws nothing.
template <class E, class F>
std::string message_of(F f) {
    try {
        f();
    } catch (const E& e) {
        return e.what();
    }
    return "";
}

#define CHECK_SAYS(message, part)                      \
    do {                                               \
        std::string said_ = message, part_ = part;     \
        INFO("it says: ", said_);                      \
        INFO("expected: ", part_);                     \
        CHECK(said_.find(part_) != std::string::npos); \
        CHECK(said_.find('\n') == std::string::npos);  \
    } while (false)
