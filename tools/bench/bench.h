// SPDX-License-Identifier: MIT
// The code that all cases of ./bench share. A case, such as `./bench train`, measures several pieces of work. The
// result for one of them is called a row: the name and amount of the work, and its measurements. A row is written as
// JSON and as lines of text.
// With --turns, ./bench and other software (the peer) do the same work alternately; compare.py starts both. Standard
// output then consists of JSON messages, one per line: "show" has text to print; "work" and "turn" are requests to the
// peer. After each request, ./bench reads the answer, one line of JSON, from standard input.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/base/write_file.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/view.h"
#include "tools/program.h"

namespace masquerade {

using Json = nlohmann::ordered_json;

struct Stopped {};  // exception: a signal such as Ctrl-C was received, or compare.py has ended

// A temporary folder for files that another program reads. The destructor removes the folder.
struct SharedFolder : PrivateFolder {
    SharedFolder() : PrivateFolder(std::filesystem::temp_directory_path().string(), "a temporary folder") {}
    // Writes a file and returns its path.
    std::string write(const std::string& name, const std::string& bytes) const {
        write_file(file(name), bytes);
        return file(name);
    }
};

// A tensor with memory of its own. If make_tensor() gets no numbers, the numbers are not initialised.
struct OwnedTensor {
    Buffer memory;
    View view;
};
OwnedTensor make_tensor(const Shape& shape, DType type, Device device, const std::vector<float>& numbers = {});

// The difference between the results of two calls of memory_taken(), in bytes, is the memory that the program took
// between the calls. On the CPU, memory_taken() returns the peak memory of the process since forget_peak(). On a GPU,
// it returns -1 times the free memory of the GPU.
std::int64_t memory_taken(Device device);
void forget_peak();

struct Spread;  // tools/bench/measure.h
Json json_of(const Spread& spread);

// Runs a shell command. Returns the first line that it prints, or "" if it prints nothing.
std::string first_line_of(const std::string& command);

class Bench {
  public:
    struct Options {
        int repeats = 5;
        bool json = false, turns = false;
        std::string save;
    };
    Bench(const std::string& name, const Options& options, const Common& common);

    // Begins the output with facts about the machine and the case. `facts` is added to the JSON, and `text` is
    // printed. If `columns` is not empty, it replaces the usual head of the table.
    void begin(const Json& facts, const std::string& text = "", const std::string& columns = "");
    // Measures one row (a piece of work). `row` has the name, the amount of work per call with its unit, and further
    // facts. seconds() runs the work and returns the seconds of one call. `about` is sent to the peer (the other
    // software) together with the row; null means that no peer can do this work. more(row) may add values to the row,
    // and returns lines to print after it.
    void measure(Json row, Json about, const std::function<double()>& seconds,
                 const std::function<std::string(Json&)>& more = {});
    // add() adds a row that the case has measured without measure(), and prints `line`. show() only prints a text.
    void add(const Json& row, const std::string& line);
    void show(const std::string& text) const;
    void end(bool complete);
    // If standard error is a terminal, shows a line there until the next output. Throws Stopped after Ctrl-C.
    void progress(const std::string& line) const;

    const Json& json() const { return *all_; }

    const Options options;
    const Common common;
    bool has_peer = true;  // whether compare.py knows other software for this case

  private:
    void say(const char* what, Json message) const;
    Json ask(const char* what, Json message) const;  // returns the answer of the peer; null if there is no peer
    std::string line_beside(const Json& row, const Json& one);
    void save() const;

    std::shared_ptr<Json> all_;
    // The last printed version of the peer (the other software). The version is printed only when it changes.
    std::string peer_version_;
};

// A RunCase runs one case, such as ./bench train. Each function below declares the options of a case, and returns the
// RunCase of the case. To add a case, add a file in this folder and a row in tools/bench.cpp.
using RunCase = std::function<void(Bench&)>;
RunCase tokenizer_case(Options& app);
RunCase train_case(Options& app);
RunCase attention_case(Options& app);
RunCase decode_case(Options& app);
RunCase many_case(Options& app);

}  // namespace masquerade
