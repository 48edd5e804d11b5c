// SPDX-License-Identifier: MIT
// Shared by all programs: the common options, one `error: ...` line, the exit status (0 success, 1 failure, 2 wrong
// usage), Ctrl-C, and the width of the terminal.
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

// The options that every program has. `seed` is 1 unless --seed is given.
struct Common {
    Device device = Device::cpu;
    int threads = 0;  // 0: as many as CPU affinity and cgroup quota allow
    std::uint64_t seed = 1;
    bool seed_given = false;
};

bool is_terminal(FILE* file);
// Columns for a progress line on this stream: the current width of its terminal, at most 80.
int terminal_width(FILE* file = stderr);
// Returns whether the program should stop: after SIGINT (Ctrl-C), SIGTERM or SIGHUP (the terminal was closed). The
// first call installs the handlers; until then, each of these signals ends the program at once.
//   SIGINT, SIGTERM  A second signal within half a second counts as the same press; a later one, or a third, ends the
//                    program at once.
//   SIGHUP           Only sets the flag, however often it comes; ignored if nohup started the program.
bool stop_requested();
// Call when everything is saved: from then on, the next SIGINT or SIGTERM ends the program at once.
void stop_at_once();
// Waits until standard input has data or has ended. Returns false if the program should stop.
bool wait_for_input();
// Sets the text that the first SIGINT or SIGTERM prints to standard error; null: none. The text must be static.
void say_when_stopped(const char* words);
// Flushes standard output. Throws BadInput if it cannot be written: the disk is full, or the stream is closed.
void flush_out();
// Writes the bytes of a result to standard output unchanged. Throws BadInput if they cannot be written.
void write_out(std::string_view bytes);

// The body of main(): setup(options) declares the options, body(common) does the work and throws on failure. Returns
// the exit status.
int run_program(int argc, char** argv, const std::string& name, const std::string& description,
                const std::function<void(Options&)>& setup, const std::function<void(const Common&)>& body,
                Work work = Work::none);

}  // namespace masquerade
