// SPDX-License-Identifier: MIT
// ./bench measures the speed of this engine. If other software for the same work is installed, tools/bench/compare.py
// runs ./bench and this software alternately.
#include <algorithm>
#include <string_view>

#include "tools/bench/bench.h"
#include "tools/say.h"

using namespace masquerade;

namespace {

struct Case {
    const char *name, *what;
    RunCase (*add)(Options& app);
    Options command = Options();
    RunCase work = {};
};
Case cases[] = {{"tokenizer", "encoding, decoding and training of WordPiece", tokenizer_case},
                {"train", "full training steps of two models, BERT and UniVAE", train_case},
                {"attention", "attention alone, on full, causal and prefix masks", attention_case},
                {"decode", "generation by two models: UniVAE greedily, UniLM with beam search", decode_case},
                {"many", "one training run by several processes", many_case}};

// Runs one of the cases. If Ctrl-C stops the case, the measurements that are complete by then are still written.
void run(Bench& bench, const RunCase& work) {
    stop_requested();  // from here on, Ctrl-C sets a flag instead of ending the program
    bool complete = false;
    try {
        work(bench);
        complete = true;
    } catch (const Stopped&) {
        log_line("note: stopped as asked; the rows measured so far are complete");
    }
    bench.end(complete);
}

}  // namespace

int main(int argc, char** argv) {
    // In all other cases, processes that mpirun has started measure independently.
    const bool many = std::count(argv, argv + argc, std::string_view("many")) > 0;
    Bench::Options options;
    auto setup = [&](Options& app) {
        app.expect_commands(0);
        app.number("--repeats", options.repeats, 1, 1000,
                   "how often each line of the table is measured; the table has the median (default: 5)");
        app.flag("--json", options.json, "print JSON, with the time of each measurement");
        app.output("--save", options.save, "FILE", "also write the JSON to a file, anew after each line of the table");
        app.flag("--turns", options.turns,
                 "for tools/bench/compare.py, which lets this program and the other software measure in turn");
        for (Case& one : cases) one.work = one.add(one.command = app.command(one.name, one.what));
    };
    auto body = [&](const Common& common) {
        for (const Case& one : cases)
            if (one.command.chosen()) {
                Bench bench(one.name, options, common);
                return run(bench, one.work);
            }
        for (const Case& one : cases) say("{:12}{}\n", one.name, one.what);
        say("\n./bench CASE measures; ./bench CASE --help lists its options\n");
    };
    return run_program(argc, argv, "bench",
                       "Measures speed, and prints a table; tools/bench/compare.py compares with other software. "
                       "UniVAE and UniLM are models of ./train",
                       setup, body, Work::measurements, many ? Together::yes : Together::no);
}
