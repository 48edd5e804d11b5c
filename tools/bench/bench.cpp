// SPDX-License-Identifier: MIT
#include "tools/bench/bench.h"

#include <sys/utsname.h>

#include <fmt/format.h>

#include <fstream>
#include <memory>

#include "engine/base/write_file.h"
#include "engine/ops/cpu/gemm.h"
#include "tools/bench/measure.h"

namespace masquerade {
namespace {

namespace fs = std::filesystem;

// The first line a shell command prints; empty where the command fails.
std::string first_line_of(const char* command) {
    std::unique_ptr<FILE, int (*)(FILE*)> out(popen(command, "r"), pclose);
    char line[200] = "";
    if (!out || !std::fgets(line, sizeof line, out.get())) return "";
    const std::string text = line;
    return text.substr(0, text.find('\n'));
}

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.rfind("model name", 0) == 0 && line.find(": ") != line.npos) return line.substr(line.find(": ") + 2);
    utsname name;
    return uname(&name) == 0 ? name.machine : "unknown";
}

// The file `commit` beside the program, else git's; "+" where files have changed since.
constexpr const char* print_commit =
    "cd \"$(dirname \"$(readlink /proc/$PPID/exe)\")\" && "
    "{ cat commit || git describe --always --exclude '*' --dirty=+; } 2>/dev/null";

Json json_of(const std::string& case_name, const Common& common) {
    double load = -1;  // the mean of a minute; -1: not known
    getloadavg(&load, 1);
    Json all = {{"case", case_name}, {"device", shown(common.device)}, {"seed", common.seed}};
    if (common.device == Device::cuda)
        all["driver"] = first_line_of("nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null");
    all["machine"] = {{"processor", processor_name()}, {"threads", threads()},
                      {"instructions", instruction_set()}, {"load", load},
                      {"version", version}, {"commit", first_line_of(print_commit)}};
    all["rows"] = Json::array();
    all["complete"] = false;
    return all;
}

std::string line(const std::string& name, const std::string& ms, const std::string& range, const std::string& rate,
                 const std::string& unit, const std::string& ratio) {
    const std::string columns = fmt::format("{:<25}{:>9}{:>18}{:>9} {:<12}{:>6}", name, ms, range, rate, unit, ratio);
    return columns.substr(0, columns.find_last_not_of(' ') + 1) + '\n';
}

// compare.py writes the same line for other software.
std::string line_of(const std::string& name, const Json& row, const Spread& s, const std::string& ratio) {
    return line(name, figures(1e3 * s.median), figures(1e3 * s.least) + " - " + figures(1e3 * s.most),
                figures(row["amount"].get<double>() / s.median), row["unit"].get<std::string>() + "/s", ratio);
}

Json json_of(const Spread& s) { return {{"median", s.median}, {"least", s.least}, {"most", s.most}}; }

}  // namespace

SharedFolder::SharedFolder() : path((fs::temp_directory_path() / "masquerade-bench-XXXXXX").string()) {
    if (!mkdtemp(path.data())) throw BadInput(text("no folder can be made as ", path, "; is there room?"));
}

SharedFolder::~SharedFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
}

std::string SharedFolder::write(const std::string& name, std::string_view bytes) const {
    const std::string file = path + '/' + name;
    FileWriter writer(file);
    writer.write(bytes.data(), bytes.size());
    writer.finish();
    return file;
}

Bench::Bench(const std::string& name, const Options& o, const Common& c) : options(o), common(c), all_(json_of(name, c)) {
#ifndef __OPTIMIZE__
    log_line("warning: a debug build: its speed says nothing");
#endif
}

void Bench::begin(const Json& facts, const std::string& lines, const std::string& columns) {
    all_.update(facts);
    const Json& m = all_["machine"];
    auto word = [&](const char* name) { return m[name].get<std::string>(); };
    std::string head;
    if (common.device == Device::cuda) head += fmt::format("GPU         {}\n", all_["device"].get<std::string>());
    head += fmt::format("machine     {}, {} threads, {}, load {:.1f}\nprogram     masquerade {}, commit {}\n",
                        word("processor"), threads(), word("instructions"), m["load"].get<double>(), version, word("commit"));
    head += lines;
    show(head + '\n' + (columns.empty() ? line("", "ms", "range", "a second", "", "ratio") : columns));
    say("head", {{"json", all_}, {"text", head}});
}

void Bench::measure(Json row, Json about, const std::vector<Timed>& works, const std::function<std::string(Json&)>& more) {
    const std::string name = row["name"];
    about.update(row);
    ask("work", std::move(about));
    std::vector<std::vector<double>> runs(works.size());
    for (int i = 0; i < options.repeats; i++) {
        for (std::size_t w = 0; w < works.size(); w++) {
            progress(fmt::format("{}: {} of {}", name, i + 1, options.repeats));
            runs[w].push_back(works[w].seconds());
        }
        ask("turn");
    }
    const Spread ours = spread_of(runs[0]);
    row["seconds"] = json_of(ours);
    row["runs"] = runs[0];
    std::string lines = line_of(name, row, ours, "");
    for (std::size_t w = 1; w < works.size(); w++) {
        const Spread s = spread_of(runs[w]);
        const double ratio = s.median / ours.median;
        row["beside"][works[w].name] = {{"seconds", json_of(s)}, {"runs", runs[w]}, {"ratio", ratio}};
        lines += line_of("  " + works[w].name, row, s, figures(ratio));
    }
    const std::string rest = more ? more(row) : "";
    add(row, lines + rest);
    say("row", {{"row", row}, {"lines", lines}, {"more", rest}});
}

void Bench::add(const Json& row, const std::string& line) {
    all_["rows"].push_back(row);
    save();
    show(line);
}

void Bench::end(bool complete) {
    all_["complete"] = complete;
    save();
    if (options.json) fmt::print("{}\n", all_.dump(2));
    show(fmt::format("\nours alone; tools/bench/compare.py {} measures other software beside it\n",
                     all_["case"].get<std::string>()));
}

void Bench::progress(const std::string& line) const {
    if (stop_requested()) throw Stopped{};
    const std::size_t width = std::size_t(terminal_width() - 1);
    if (is_terminal(stderr)) fmt::print(stderr, "\r{:<{}}\r{}", "", width, line.substr(0, width));
}

void Bench::say(const char* what, Json message) const {
    if (!options.turns) return;
    message["say"] = what;
    fmt::print("{}\n", message.dump());
    std::fflush(stdout);
}

void Bench::ask(const char* what, Json message) const {
    progress("");
    say(what, std::move(message));
    std::string answer;
    if (options.turns && !std::getline(std::cin, answer)) throw Stopped{};
    progress("");
}

void Bench::show(const std::string& text) const {
    if (options.json || options.turns) return;
    fmt::print("{}", text);
    std::fflush(stdout);
}

void Bench::save() const {
    if (!options.save.empty()) replace_file(options.save, all_.dump(2) + '\n');
}

}  // namespace masquerade
