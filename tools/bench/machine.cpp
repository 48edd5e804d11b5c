// SPDX-License-Identifier: MIT
#include "tools/bench/machine.h"

#include <sys/utsname.h>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "engine/base/write_file.h"
#include "tools/program.h"

namespace masquerade {
namespace {

namespace fs = std::filesystem;

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.compare(0, 10, "model name") == 0 && line.find(": ") != line.npos)
            return line.substr(line.find(": ") + 2);
    utsname name;
    return uname(&name) == 0 ? name.machine : "unknown";
}

const char* instruction_set() {
#if defined(__AVX512F__)
    return "AVX-512";
#elif defined(__AVX2__)
    return "AVX2";
#elif defined(__AVX__)
    return "AVX";
#elif defined(__SSE4_2__)
    return "SSE4.2";
#elif defined(__x86_64__)
    return "SSE2";
#elif defined(__ARM_FEATURE_SVE)
    return "SVE";
#elif defined(__ARM_NEON)
    return "NEON";
#else
    return "no vector instructions";
#endif
}

fs::path program_folder() {
    std::error_code error;
    return fs::read_symlink("/proc/self/exe", error).parent_path();
}
// build/<configuration>/<program> lies two folders below the root.
fs::path root_folder() { return program_folder().parent_path().parent_path(); }

// The first line a shell command prints; empty where it fails.
std::string first_line_of(const std::string& command) {
    std::unique_ptr<FILE, int (*)(FILE*)> out(popen(command.c_str(), "r"), pclose);
    char line[200] = "";
    if (!out || !std::fgets(line, sizeof line, out.get())) return "";
    std::string text = line;
    return text.substr(0, text.find('\n'));
}

std::string commit_of(const fs::path& folder) {
    std::ifstream beside(program_folder() / "commit");
    if (std::string told; std::getline(beside, told)) return told;
    std::string quoted;
    for (char c : folder.string()) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    const std::string git = "git -C '" + quoted + "' ";
    std::string commit = first_line_of(git + "rev-parse --short HEAD 2>/dev/null");
    if (commit.empty()) return commit;
    return commit + (first_line_of(git + "status --porcelain -uno 2>/dev/null").empty() ? "" : "+");
}

}  // namespace

Machine this_machine() {
    Machine m;
    m.processor = processor_name();
    m.threads = threads();
    m.load = -1;
    getloadavg(&m.load, 1);
    m.instructions = instruction_set();
#if defined(__clang__)
    m.compiler = "clang " __clang_version__;
#else
    m.compiler = "g++ " __VERSION__;
#endif
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    m.optimised = true;
#else
    m.optimised = false;
#endif
    m.commit = commit_of(root_folder());
    return m;
}

nlohmann::ordered_json json_head(const char* name, Device device, const Machine& m) {
    nlohmann::ordered_json head = {{"case", name}, {"device", shown(device)}};
    if (device == Device::cuda)
        head["driver"] =
            first_line_of("nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null");
    head["machine"] = {{"processor", m.processor}, {"threads", m.threads},
                       {"load", m.load},           {"instructions", m.instructions},
                       {"compiler", m.compiler},   {"optimised", m.optimised},
                       {"version", version},       {"commit", m.commit}};
    return head;
}

std::string described(const Machine& m, Device device) {
    if (!m.optimised) log_line("warning: a debug or sanitizer build: its speed says nothing");
    return (device == Device::cuda ? fmt::format("GPU         {}\n", shown(device)) : "") +
           fmt::format("machine     {}, {} threads, {}\n", m.processor, m.threads, m.instructions) +
           fmt::format("program     masquerade {}{}{}; load of the machine {:.1f}\n", version,
                       m.commit.empty() ? "" : ", commit ", m.commit, m.load);
}

void save_json(const std::string& file, const nlohmann::ordered_json& json) {
    replace_file(file, json.dump(2) + '\n');
}

fs::path source_file(const std::string& name) {
    const fs::path beside = root_folder() / name;
    return fs::exists(beside) ? beside : fs::path(name);
}

}  // namespace masquerade
