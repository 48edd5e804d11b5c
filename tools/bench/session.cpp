// SPDX-License-Identifier: MIT
#include "tools/bench/session.h"

#include <fmt/format.h>

#include "engine/base/write_file.h"
#include "tools/bench/machine.h"

namespace masquerade {

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
