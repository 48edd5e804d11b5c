// SPDX-License-Identifier: MIT
// The exceptions of the engine and the models, and text(), which builds their messages. A message says what is wrong,
// what was found, what was expected, and what to do.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace masquerade {

// Concatenates everything that can be streamed: text("x is ", shape, " but w is ", other).
template <class... Parts>
std::string text(const Parts&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
}

// Thrown for a mistake in the code that calls the engine: a wrong shape, type or device, or a missing tensor. The
// program then exits with status 1. Error(a, b, ...) has the message text(a, b, ...).
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
    template <class First, class Second, class... More>
    Error(const First& first, const Second& second, const More&... more)
        : std::runtime_error(text(first, second, more...)) {}
};

// Thrown if something outside the program is wrong: a file, a config value, a checkpoint, a full disk. The program
// then exits with status 1.
struct BadInput : Error {
    using Error::Error;
};

// Thrown if the command line is wrong: an unknown option or key, or a value out of range. The program then exits with
// status 2.
struct BadUsage : Error {
    using Error::Error;
};

}  // namespace masquerade
