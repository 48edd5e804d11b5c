// SPDX-License-Identifier: MIT
// The code that all programs share. It handles the common options, errors (one line `error: ...`), the exit status (0
// success, 1 failure, 2 wrong usage), Ctrl-C, and the width of the terminal.
#pragma once
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/error.h"
#include "tools/device.h"
#include "tools/options.h"

namespace masquerade {

// The options that every program has. `seed` is 1 unless --seed is given.
struct Common {
    std::string command;  // the command line, as the user could type it into a shell
    Device device = Device::cpu;
    int threads = 0;  // 0: as many as CPU affinity and cgroup quota allow
    std::uint64_t seed = 1;
    bool seed_given = false;
};

bool is_terminal(FILE* file);
// Returns the maximum width of a line on this stream, in columns: the current width of the terminal, but at most
// `most`; or 80 if the stream is not a terminal.
int terminal_width(FILE* file = stderr, int most = 80);
// Returns true if the program has received SIGINT (Ctrl-C), SIGTERM or SIGHUP (the terminal was closed), and should
// stop. The first call installs the signal handlers. Before the first call, each of these signals ends the program at
// once.
//   SIGINT, SIGTERM  A second signal within half a second of the first is ignored. A second signal after that time, or
//                    any third signal, ends the program at once.
//   SIGHUP           Makes this function return true, but never ends the program. Ignored if nohup started the program.
bool stop_requested();
// Call this when everything is saved. After this call, the next SIGINT or SIGTERM ends the program at once, unless it
// is a second signal within half a second of the first.
void stop_at_once();
// Waits until standard input has data or has ended. Returns false if a signal asks the program to stop (see
// stop_requested()).
bool wait_for_input();
// Sets the text that the signal handler prints to standard error on the first SIGINT or SIGTERM. Null means no text.
// The text must be a string literal or another static string.
void say_when_stopped(const char* words);
// Flushes standard output. Throws BadInput if that fails, for example because the disk is full.
void flush_out();
// Writes these bytes to standard output unchanged. Throws BadInput if that fails.
void write_out(std::string_view bytes);

// Whether the processes that mpirun or srun starts work together on one task (engine/base/processes.h). If not, each of
// them is a program of its own.
enum class Together { no, yes };
// Throws BadUsage if the processes that work together do not all pass the same text, such as the checksum of the
// weights.
void expect_equal(const std::string& mine);

// The body of main(). setup(options) declares the options; body(common) does the work and throws on failure. `work`
// says what a GPU can do for the program. Returns the exit status.
int run_program(int argc, char** argv, const std::string& name, const std::string& description,
                const std::function<void(Options&)>& setup, const std::function<void(const Common&)>& body,
                Work work = Work::none, Together together = Together::no);

}  // namespace masquerade
