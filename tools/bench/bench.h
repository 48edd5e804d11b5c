// SPDX-License-Identifier: MIT
// The parts that all cases of ./bench share. A case measures rows: a piece of work, run in turns with compare.py, which
// asks other software for the same. A row becomes JSON and lines of text here. With --turns standard output is lines of
// JSON: text to "show"; "work" and "turn", which wait for the other software's answer, a line on standard input.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/program.h"

namespace masquerade {

using Json = nlohmann::ordered_json;

struct Stopped {};  // Ctrl-C, or the program that takes turns has ended

// One run of a piece of work: seconds of one call.
struct Timed {
    std::string name;
    std::function<double()> seconds;
};

// A folder for files that another program reads; it goes away.
class SharedFolder {
  public:
    SharedFolder();
    SharedFolder(const SharedFolder&) = delete;
    ~SharedFolder();
    // The path of a file of these bytes.
    std::string write(const std::string& name, std::string_view bytes) const;

    std::string path;
};

class Bench {
  public:
    struct Options {
        int repeats = 5;
        bool json = false, turns = false;
        std::string save;
    };
    Bench(const std::string& name, const Options& options, const Common& common);

    // The machine and what the case says of its data: for the JSON, and lines for people. `columns` heads rows of its
    // own.
    void begin(const Json& facts = Json::object(), const std::string& text = "", const std::string& columns = "");
    // One row. `row` has the name, the amount of work of one call with its unit, and further facts. The first work is
    // ours; others of ours stand beside it. `about` goes to the peer with the row; null: no peer does this work. `more`
    // completes the row, and gives lines that follow it.
    void measure(Json row, Json about, const std::vector<Timed>& works,
                 const std::function<std::string(Json&)>& more = {});
    // A row that a case has measured by itself, with its line of text; and a line of no row.
    void add(const Json& row, const std::string& line);
    void table(const std::string& line) const { show(line); }
    void end(bool complete);
    // One line on a terminal, which the next one overwrites; throws Stopped after Ctrl-C.
    void progress(const std::string& line) const;

    const Json& json() const { return all_; }

    const Options options;
    const Common common;

  private:
    void say(const char* what, Json message) const;
    Json ask(const char* what, Json message = Json::object()) const;  // null: no peer; throws Stopped
    void show(const std::string& text) const;
    std::string line_beside(const Json& row, const Json& one);
    void save() const;

    Json all_;
    std::string peer_version_;  // as it was printed last
};

// A case adds its options and returns what runs it. A new case is a file beside this one and a row in tools/bench.cpp.
using RunCase = std::function<void(Bench&)>;
RunCase tokenizer_case(Options& app);
RunCase train_case(Options& app);
RunCase attention_case(Options& app);
RunCase decode_case(Options& app);

}  // namespace masquerade
