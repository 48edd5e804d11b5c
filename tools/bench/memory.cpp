// SPDX-License-Identifier: MIT
#include "tools/bench/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

#include "tools/program.h"

namespace masquerade {
namespace {

// Of the meter that is alive: a runtime is plain functions, which can carry nothing.
struct Count {
    const DeviceRuntime* runtime = nullptr;
    std::map<void*, std::size_t> blocks;
    std::size_t taken = 0, peak = 0;
};
Count count;

void* allocate(std::size_t bytes) {
    void* data = count.runtime->allocate(bytes);
    if (!data) return nullptr;
    count.blocks[data] = bytes;
    count.taken += bytes;
    count.peak = std::max(count.peak, count.taken);
    return data;
}

void release(void* data) noexcept {
    const auto block = count.blocks.find(data);  // an older one is not counted
    if (block != count.blocks.end()) {
        count.taken -= block->second;
        count.blocks.erase(block);
    }
    count.runtime->release(data);
}

}  // namespace

DeviceMemoryMeter::DeviceMemoryMeter() : runtime_(&cuda_runtime()), counting_(*runtime_) {
    count = {runtime_, {}, 0, 0};
    counting_.allocate = allocate;
    counting_.release = release;
    set_cuda_runtime(&counting_);
}

DeviceMemoryMeter::~DeviceMemoryMeter() { set_cuda_runtime(runtime_); }

std::size_t DeviceMemoryMeter::peak_bytes() const { return count.peak; }

void forget_peak() {
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";
}

std::int64_t minor_faults() {
    rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt : 0;
}

SharedFile::SharedFile(std::string_view bytes) : file_(memfd_create("bench", MFD_CLOEXEC)) {
    if (file_ < 0) throw BadInput(text("memfd_create: ", std::strerror(errno)));
    append(bytes);
}

SharedFile::~SharedFile() { close(file_); }

std::string SharedFile::path() const { return text("/proc/", getpid(), "/fd/", file_); }

void SharedFile::append(std::string_view bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
        const ssize_t n = write(file_, bytes.data() + done, bytes.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw BadInput(text("a file in memory cannot be written: ", std::strerror(errno)));
        done += std::size_t(n);
    }
}

std::string SharedFile::read() const {
    std::string bytes;
    char part[1 << 16];
    for (ssize_t n; (n = pread(file_, part, sizeof part, off_t(bytes.size()))) > 0;)
        bytes.append(part, std::size_t(n));
    return bytes;
}

nlohmann::ordered_json in_own_process(const std::function<nlohmann::ordered_json()>& work) {
    SharedFile file({});
    std::fflush(nullptr);
    const pid_t parent = getpid(), child = fork();
    if (child < 0) throw BadInput(text("fork: ", std::strerror(errno)));
    if (child == 0) {
        setpgid(0, 0);  // Ctrl-C is for the parent, which passes it on
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        nlohmann::ordered_json answer;
        try {
            answer["result"] = work();
        } catch (const std::exception& error) {
            answer = {{"error", error.what()}};
        }
        file.append(answer.dump());
        _exit(0);
    }
    int status = 0;
    for (bool told = false; waitpid(child, &status, WNOHANG) == 0; usleep(20000))
        if (stop_requested() && !told) told = kill(child, SIGINT) == 0;
    if (WIFSIGNALED(status)) throw Error(text("the measurement was ended by signal ", WTERMSIG(status)));
    const auto answer = nlohmann::ordered_json::parse(file.read(), nullptr, false);
    if (answer.contains("error")) throw Error(answer["error"].get<std::string>());
    if (!answer.contains("result")) throw Error(text("the measurement ended with status ", WEXITSTATUS(status)));
    return answer["result"];
}

}  // namespace masquerade
