// SPDX-License-Identifier: MIT
#include "tools/bench/bench.h"

#include <malloc.h>

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/base/memory.h"
#include "engine/base/processes.h"
#include "engine/base/wrap.h"
#include "engine/base/write_file.h"
#include "input/input.h"
#include "engine/ops/cpu/gemm.h"
#include "engine/tensor/numbers.h"
#include "tools/bench/measure.h"

namespace masquerade {
namespace {

// A shell command that prints the name of the processor.
constexpr const char* print_processor = "sed -n 's/^model name.*: //p' /proc/cpuinfo | grep . || uname -m";
// A shell command that prints the file `commit` next to the program. If there is no such file, the command prints the
// commit of the git checkout, with "+" if tracked files differ from the commit.
constexpr const char* print_commit =
    "cd \"$(dirname \"$(readlink /proc/$PPID/exe)\")\" && "
    "{ cat commit || git describe --always --exclude '*' --dirty=+; } 2>/dev/null";

Json json_of(const std::string& case_name, const Common& common) {
    double load = -1;  // load average of the last minute; -1 if it is unknown
    getloadavg(&load, 1);
    Json all = {{"case", case_name}, {"device", shown(common.device)}, {"seed", common.seed}};
    if (common.device == Device::cuda)
        all["driver"] = first_line_of("nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null");
    all["machine"] = {{"processor", first_line_of(print_processor)},
                      {"threads", threads()},
                      {"instructions", instruction_set()},
                      {"load", load},
                      {"version", version},
                      {"commit", first_line_of(print_commit)}};
    all["rows"] = Json::array();
    all["complete"] = false;
    return all;
}

constexpr const char* line_form = "{:<25}{:>9}{:>18}{:>9} {:<12}{:>6}";

std::string line_of(const std::string& name, const Json& row, const Json& one) {
    auto seconds = [&](const char* which) { return one["seconds"][which].get<double>(); };
    const std::string line =
        fmt::format(line_form, name, figures(1e3 * seconds("median")),
                    figures(1e3 * seconds("least")) + " - " + figures(1e3 * seconds("most")),
                    figures(row["amount"].get<double>() / seconds("median")), row["unit"].get<std::string>() + "/s",
                    one.contains("ratio") ? figures(one["ratio"]) : "");
    return line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
}

}  // namespace

Json json_of(const Spread& s) { return {{"median", s.median}, {"least", s.least}, {"most", s.most}}; }

std::string first_line_of(const std::string& command) {
    std::unique_ptr<FILE, int (*)(FILE*)> out(popen(command.c_str(), "r"), pclose);
    char line[1000] = "";
    if (!out || !std::fgets(line, sizeof line, out.get())) return "";
    const std::string text = line;
    return text.substr(0, text.find('\n'));
}

OwnedTensor make_tensor(const Shape& shape, DType type, Device device, const std::vector<float>& numbers) {
    Buffer memory(shape.count() * bytes_of(type), device);
    const View view{memory.data(), type, device, shape, "owned tensor"};
    if (!numbers.empty()) write_numbers(view, numbers.data());
    return {std::move(memory), view};
}

std::int64_t memory_taken(Device device) {
    return device == Device::cuda ? -std::int64_t(cuda_runtime().facts().bytes_free) : peak_resident_bytes();
}

void forget_peak() {
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";
}

Bench::Bench(const std::string& name, const Options& o, const Common& c)
    : options(o), common(c), all_(std::make_shared<Json>(json_of(name, c))) {
#ifndef __OPTIMIZE__
    log_line("warning: a debug build: its speed says nothing");
#endif
}

void Bench::begin(const Json& facts, const std::string& lines, const std::string& columns) {
    all_->update(facts);
    const Json& m = (*all_)["machine"];
    auto word = [&](const char* name) { return m[name].get<std::string>(); };
    std::string head;
    if (common.device == Device::cuda) head += "GPU         " + shown(common.device) + '\n';
    head += fmt::format("machine     {}, {} threads, {}, load {:.1f}\nprogram     masquerade {}, commit {}\n",
                        word("processor"), threads(), word("instructions"), m["load"].get<double>(), version,
                        word("commit"));
    head += lines;
    const std::string usual = fmt::format(line_form, "", "ms", "range", "a second", "", "ratio") + '\n';
    show(head + '\n' + (columns.empty() ? usual : columns));
}

void Bench::measure(Json row, Json about, const std::function<double()>& seconds,
                    const std::function<std::string(Json&)>& more) {
    const std::string name = row["name"];
    Json runs, peer;  // peer: answers of the other software; null without other software or if it has failed
    const bool asks = !about.is_null();
    if (asks) {
        Json request = {{"threads", threads()}, {"device", name_of(common.device)}};
        request.update(about);
        request.update(row);
        peer = ask("work", std::move(request));
    }
    for (int i = 0; i < options.repeats; i++) {
        progress(text(name, ": ", i + 1, " of ", options.repeats));
        runs.push_back(seconds());
        const Json turn = asks ? ask("turn", Json::object()) : Json();
        if (turn.is_null()) peer = nullptr;
        for (const auto& [key, value] : turn.items()) {
            if (key == "seconds")
                peer["runs"].push_back(value);
            else
                peer[key] = value;
        }
    }
    row["seconds"] = json_of(spread_of(runs));
    row["runs"] = runs;
    std::string lines = line_of(name, row, row);
    if (!peer.is_null()) {
        peer["seconds"] = json_of(spread_of(peer["runs"]));
        peer["ratio"] = peer["seconds"]["median"].get<double>() / row["seconds"]["median"].get<double>();
        lines += line_beside(row, peer);
        row["beside"][peer["name"].get<std::string>()] = peer;
    }
    if (more) lines += more(row);
    add(row, lines);
}

void Bench::add(const Json& row, const std::string& line) {
    (*all_)["rows"].push_back(row);
    save();
    show(line);
}

// Returns the lines to print about the peer (the other software): its time and speed, how it was called, what it
// computed, its memory and, if it was not printed yet, its version.
std::string Bench::line_beside(const Json& row, const Json& one) {
    std::string lines = line_of("  " + one["name"].get<std::string>(), row, one);
    std::string said = one.at("said"), made_by = one.at("version");
    if (!one["agrees"].get<bool>())
        log_line("note: WARNING: ", one["name"].get<std::string>(),
                 " does NOT compute the same as ours: ", row["name"].get<std::string>(), ": ", said);
    if (one.contains("peak_bytes")) said += fmt::format("; {:.0f} MiB", one["peak_bytes"].get<double>() / (1 << 20));
    lines += wrapped("    " + said, 80) + '\n';
    if (made_by != peer_version_) lines += "    " + (peer_version_ = made_by) + '\n';
    return lines;
}

void Bench::end(bool complete) {
    (*all_)["complete"] = complete;
    save();
    if (options.json) say("show", {{"text", all_->dump(2) + '\n'}});
    if (!options.turns && has_peer)
        show(text("\nonly this engine was measured; tools/bench/compare.py ", (*all_)["case"].get<std::string>(),
                  " compares it with other software\n"));
}

void Bench::progress(const std::string& line) const {
    if (stop_requested()) throw Stopped{};
    const std::size_t width = terminal_width() - 1;
    if (is_terminal(stderr)) fmt::print(stderr, "\r{:<{}}\r{}", "", width, line.substr(0, width));
}

void Bench::say(const char* what, Json message) const {
    message["say"] = what;
    if (message.contains("text")) message["text"] = printable_lines(message["text"].get<std::string>());
    write_out(options.turns ? message.dump() + '\n' : message["text"].get<std::string>());
    std::fflush(stdout);
}

Json Bench::ask(const char* what, Json message) const {
    progress(options.turns ? text("the other program: ", what) : "");
    if (!options.turns) return {};
    say(what, std::move(message));
    std::string answer;
    if (!wait_for_input() || !std::getline(std::cin, answer)) throw Stopped{};
    progress("");
    return parse_input<BadInput>(answer, "the answer of the other program");
}

void Bench::show(const std::string& text) const {
    if (!options.json) say("show", {{"text", text}});
}

void Bench::save() const {
    if (!options.save.empty() && first_process()) replace_file(options.save, all_->dump(2) + '\n');
}

}  // namespace masquerade
