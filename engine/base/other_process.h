// SPDX-License-Identifier: MIT
#pragma once
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace masquerade {

// A process of this machine or of another one. Can be copied byte by byte, and sent to other processes.
struct OtherProcess {
    std::uint64_t machine;  // equal only if two processes can see each other in /proc
    int pid;

    static OtherProcess self() {
        std::string boot;
        std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
        if (boot.empty()) return {};
        char space[64] = "";  // the name of the namespace in which pids count, which differs between containers
        if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) return {};
        return {std::hash<std::string>()(boot + space), getpid()};
    }

    // Returns the state in /proc/PID/stat (proc(5)): 'R' for a process that runs, 'T' for one that is stopped, and 'Z'
    // for one that has ended, also if it is no longer listed. Returns '?' if the process is on another machine, or
    // if this cannot be told.
    char state(const OtherProcess& self) const {
        if (machine != self.machine || pid == 0) return '?';
        std::string line;
        std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), line);
        const std::size_t name_ends = line.rfind(") ");
        return name_ends == std::string::npos ? 'Z' : line[name_ends + 2];
    }
};

}  // namespace masquerade
