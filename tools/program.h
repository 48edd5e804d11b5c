// SPDX-License-Identifier: MIT
// The parts that all programs share: the common options, one `error: ...` line and the exit status (0 success, 1
// failure, 2 usage), Ctrl-C, and the size of the terminal.
#pragma once
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "tools/device.h"
#include "tools/options.h"

namespace masquerade {

// The options every program has. `seed` keeps the program's own default when --seed is not given.
struct Common {
    Device device = Device::cpu;
    int threads = 0;  // 0: what affinity and cgroup quota allow
    std::uint64_t seed = 1;
    bool seed_given = false;
};

bool is_terminal(FILE* file);
// Columns for a progress line on this stream: those of its terminal as it is now, but at most 80.
int terminal_width(FILE* file = stderr);
// True once Ctrl-C, a termination signal or the end of the terminal has come. A second one within half a second is the
// same press; a later one, or a third one, ends the program at once. A program that never asks is ended by the first. A
// terminal says its end more than once, and before a termination signal: this never counts as the first. Where nohup
// started the program, it does not count at all.
bool stop_requested();
// All is saved: from here on the next Ctrl-C or termination signal ends the program at once.
void stop_at_once();
// Waits until standard input has something to read, or has ended. False once a program that asks was told to stop.
bool wait_for_input();
// Sets the words that the first of these signals prints at once, on standard error. The text must outlive the program.
void say_when_stopped(const char* words);
// Throws BadInput where what was printed cannot be written: the disk may be full, or standard output closed.
void flush_out();
// Text that is a program's result, as it is. Output that cannot be written is an error at once: a disk may be full.
void write_out(std::string_view bytes);

// The whole of a program's main. setup(options) declares them, body(common) does the work and throws what goes wrong.
int run_program(int argc, char** argv, const std::string& name, const std::string& description,
                const std::function<void(Options&)>& setup, const std::function<void(const Common&)>& body,
                Work work = Work::none);

}  // namespace masquerade
