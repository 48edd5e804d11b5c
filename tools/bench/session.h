// SPDX-License-Identifier: MIT
// What every case of ./bench shares: its options, its table and JSON, and turns with compare.py, which measures other
// software. With --turns every step is a line of JSON; a line that comes back, perhaps of JSON, lets it go on.
#pragma once
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/program.h"

namespace masquerade {

using Json = nlohmann::ordered_json;

struct Stopped {};  // Ctrl-C, or the program that takes turns has ended

struct SessionOptions {
    int repeats = 5;
    bool json = false, turns = false;
    std::string save;
};

// One line on a terminal, which the next one overwrites; nothing elsewhere.
void show_progress(const std::string& line);

class Session {
  public:
    Session(const std::string& name, const SessionOptions& options, const Common& common);

    // The machine, then what is measured: `more` for the JSON, `text` for people. Results go into the list `rows`.
    void begin(const std::string& rows, const Json& more, const std::string& text);
    // What is measured next, for a program that does the same.
    void start(Json about) { ask("start", std::move(about)); }
    // The other program's turn: what it says of it, null where there is none. Throws Stopped.
    Json turn() { return ask("turn", Json::object()); }
    // Seconds of each work, in turns.
    std::vector<std::vector<double>> in_turns(const std::string& label,
                                              const std::vector<std::function<double()>>& works);
    // A result that is not whole yet.
    void keep(const Json& row) const;
    // A result, and its lines for people.
    void add(const Json& row, const std::vector<std::string>& text);
    void end(bool complete, const std::string& beside);

    const SessionOptions options;
    const Common common;

  private:
    Json ask(const char* what, Json about);
    void say(const Json& line) const;
    void save(Json all) const;

    Json all_;
    std::string rows_;
};

// One thing that ./bench measures. A new case is a file beside this one and a line in tools/bench.cpp.
struct BenchCase {
    const char *name, *what, *beside;  // as the command line knows it; in a line; what compare.py sets beside it
    int repeats;

    BenchCase(const char* n, const char* w, const char* b, int r = 5) : name(n), what(w), beside(b), repeats(r) {}
    virtual ~BenchCase() = default;
    virtual void add_options(CLI::App& app) = 0;
    virtual void run(Session& session) = 0;
};

std::unique_ptr<BenchCase> tokenizer_case();
std::unique_ptr<BenchCase> train_case();
std::unique_ptr<BenchCase> attention_case();
std::unique_ptr<BenchCase> decode_case();

}  // namespace masquerade
