// SPDX-License-Identifier: MIT
#include "tools/bench/machine.h"

#include <sys/utsname.h>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "tools/program.h"

namespace masquerade {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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

// The first line a shell command prints; empty where it fails.
std::string first_line_of(const std::string& command) {
    std::unique_ptr<FILE, int (*)(FILE*)> out(popen(command.c_str(), "r"), pclose);
    char line[200] = "";
    if (!out || !std::fgets(line, sizeof line, out.get())) return "";
    std::string text = line;
    return text.substr(0, text.find('\n'));
}

std::string commit() {
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    std::ifstream beside(folder / "commit");
    if (std::string told; std::getline(beside, told)) return told;
    std::string git = "git -C '";
    for (char c : folder.string()) git += c == '\'' ? std::string("'\\''") : std::string(1, c);
    const std::string at = first_line_of(git + "' rev-parse --short HEAD 2>/dev/null");
    if (at.empty()) return at;
    return at + (first_line_of(git + "' status --porcelain -uno 2>/dev/null").empty() ? "" : "+");
}

}  // namespace

Json json_head(const std::string& name, Device device) {
    Json head = {{"case", name}, {"device", shown(device)}};
    if (device == Device::cuda)
        head["driver"] = first_line_of("nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null");
#if defined(__clang__)
    const char* compiler = "clang " __clang_version__;
#else
    const char* compiler = "g++ " __VERSION__;
#endif
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const bool optimised = true;
#else
    const bool optimised = false;
#endif
    double load = -1;  // not known
    getloadavg(&load, 1);
    head["machine"] = {{"processor", processor_name()}, {"threads", threads()},
                       {"load", load},                  {"instructions", instruction_set()},
                       {"compiler", compiler},          {"optimised", optimised},
                       {"version", version},            {"commit", commit()}};
    return head;
}

std::string described(const Json& head) {
    const Json& m = head.at("machine");
    auto word = [&](const char* name) { return m.at(name).get<std::string>(); };
    const std::string at = word("commit");
    return (head.contains("driver") ? fmt::format("GPU         {}\n", head.at("device").get<std::string>()) : "") +
           fmt::format("machine     {}, {} threads, {}\n", word("processor"), m.at("threads").get<int>(),
                       word("instructions")) +
           fmt::format("program     masquerade {}{}{}; load of the machine {:.1f}\n", version,
                       at.empty() ? "" : ", commit ", at, m.at("load").get<double>());
}

}  // namespace masquerade
