// SPDX-License-Identifier: MIT
#include "tools/bench/memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "tools/program.h"

namespace masquerade {
namespace {

using Json = nlohmann::ordered_json;

void write_all(int file, const std::string& bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno != EINTR) return;
        if (n > 0) done += std::size_t(n);
    }
}

// What the child writes until it closes the file. A request to stop is passed on to it.
std::string read_all(int file, pid_t child) {
    std::string bytes;
    char part[1 << 16];
    for (bool told = false;;) {
        if (stop_requested() && !told) told = kill(child, SIGINT) == 0;
        pollfd ready{file, POLLIN, 0};
        if (poll(&ready, 1, 100) <= 0) continue;
        const ssize_t n = read(file, part, sizeof part);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return bytes;
        bytes.append(part, std::size_t(n));
    }
}

}  // namespace

void forget_peak() {
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";
}

std::int64_t minor_faults() {
    rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt : 0;
}

Json in_own_process(const std::function<Json()>& work) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw BadInput(text("pipe: ", std::strerror(errno)));
    std::fflush(nullptr);
    const pid_t parent = getpid(), child = fork();
    if (child < 0) throw BadInput(text("fork: ", std::strerror(errno)));
    if (child == 0) {
        setpgid(0, 0);  // Ctrl-C is for the parent, which passes it on
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        close(ends[0]);
        Json answer;
        try {
            answer["result"] = work();
        } catch (const std::exception& error) {
            answer = {{"error", error.what()}};
        }
        write_all(ends[1], answer.dump());
        _exit(0);
    }
    close(ends[1]);
    const std::string said = read_all(ends[0], child);
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) throw Error(text("the measurement was ended by signal ", WTERMSIG(status)));
    const Json answer = Json::parse(said, nullptr, false);
    if (answer.contains("error")) throw Error(answer["error"].get<std::string>());
    if (!answer.contains("result"))
        throw Error(text("the measurement ended with status ", WEXITSTATUS(status)));
    return answer["result"];
}

}  // namespace masquerade
