// SPDX-License-Identifier: MIT
// A helper for tests of files: returns the message of a refusal.
#pragma once
#include <string>

#include "doctest/doctest.h"
#include "engine/base/error.h"
#include "tests/folder.h"

// Returns the message if f throws an E; "" if it throws nothing.
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
