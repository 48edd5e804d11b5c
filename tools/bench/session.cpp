// SPDX-License-Identifier: MIT
#include "tools/bench/session.h"

#include <sys/utsname.h>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "engine/base/write_file.h"

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

constexpr const char* instructions =  // the widest the compiler was allowed
#if defined(__AVX512F__)
    "AVX-512";
#elif defined(__AVX2__)
    "AVX2";
#elif defined(__x86_64__)
    "SSE";
#elif defined(__ARM_FEATURE_SVE)
    "SVE";
#else
    "no wide vectors";
#endif

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

// What the JSON begins with. "load" is that of the start, the mean of a minute; "commit" has "+" where files have changed
// since, or is what a file `commit` beside the program says; it may be empty.
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
                       {"load", load},                  {"instructions", instructions},
                       {"compiler", compiler},          {"optimised", optimised},
                       {"version", version},            {"commit", commit()}};
    return head;
}

// For people, in two lines, and one of the GPU where that is the device.
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

}  // namespace

void show_progress(const std::string& line) {
    const std::size_t width = std::size_t(terminal_width() - 1);
    if (is_terminal(stderr)) fmt::print(stderr, "\r{:<{}}\r{}", "", width, line.substr(0, width));
}

Session::Session(const std::string& name, const SessionOptions& o, const Common& c)
    : options(o), common(c), all_(json_head(name, c.device)) {}

void Session::begin(const std::string& rows, const Json& more, const std::string& text) {
    if (!all_["machine"]["optimised"].get<bool>())
        log_line("warning: a debug or sanitizer build: its speed says nothing");
    if (!more.is_null()) all_.update(more);
    rows_ = rows;
    all_[rows] = Json::array();
    all_["complete"] = false;
    const std::string head = described(all_) + text;
    if (!options.json && !options.turns) fmt::print("{}", head);
    std::fflush(stdout);
    say({{"say", "head"}, {"json", all_}, {"text", head}});
}

std::vector<std::vector<double>> Session::in_turns(const std::string& label,
                                                   const std::vector<std::function<double()>>& works) {
    std::vector<std::vector<double>> runs(works.size());
    for (int i = 0; i < options.repeats; i++) {
        show_progress(fmt::format("{}: {} of {}", label, i + 1, options.repeats));
        for (std::size_t w = 0; w < works.size(); w++) runs[w].push_back(works[w]());
        turn();
    }
    show_progress("");
    return runs;
}

void Session::keep(const Json& row) const {
    Json all = all_;
    all[rows_].push_back(row);
    save(all);
}

void Session::add(const Json& row, const std::vector<std::string>& text) {
    show_progress("");
    all_[rows_].push_back(row);
    if (!options.json && !options.turns)
        for (const std::string& part : text) fmt::print("{}", part);
    std::fflush(stdout);
    save(all_);
    say({{"say", "row"}, {"row", row}, {"text", text}});
}

void Session::end(bool complete, const std::string& beside) {
    show_progress("");
    if (rows_.empty()) return;  // nothing was begun
    all_["complete"] = complete;
    save(all_);
    say({{"say", "end"}, {"complete", complete}});
    if (options.turns) return;
    if (options.json)
        fmt::print("{}\n", all_.dump(2));
    else
        fmt::print("\nours alone; tools/bench/compare.py {} measures {} beside it\n",
                   all_["case"].get<std::string>(), beside);
}

Json Session::ask(const char* what, Json about) {
    if (stop_requested()) throw Stopped{};
    if (!options.turns) return nullptr;
    show_progress("");
    about["say"] = what;
    say(about);
    std::string answer;
    if (!std::getline(std::cin, answer) || stop_requested()) throw Stopped{};
    return answer.empty() ? Json() : Json::parse(answer);
}

void Session::say(const Json& line) const {
    if (!options.turns) return;
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
}

void Session::save(Json all) const {
    if (!options.save.empty()) replace_file(options.save, all.dump(2) + '\n');
}

}  // namespace masquerade
