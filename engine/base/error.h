// SPDX-License-Identifier: MIT
// The three ways in which a program can fail, and text(), which builds their messages with the standard library alone.
// A message names the thing, what was found, what was expected, and what to do.
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

// A mistake of the programmer: shapes, dtypes, devices, a missing tensor. Exit status 1.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Something outside the program is wrong: a file, a config value, a checkpoint, a full disk. Exit status 1.
struct BadInput : Error {
    using Error::Error;
};

// The command line is wrong: an unknown option or key, a value out of range. Exit status 2.
struct BadUsage : Error {
    using Error::Error;
};

}  // namespace masquerade
