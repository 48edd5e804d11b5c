// SPDX-License-Identifier: MIT
// ./bench: how fast this engine is. tools/bench/compare.py runs it in turns with the fastest other program that does the
// same, where that is installed.
#include <fmt/format.h>

#include "tools/bench/session.h"

using namespace masquerade;

int main(int argc, char** argv) {
    const std::unique_ptr<BenchCase> cases[] = {tokenizer_case(), train_case(), attention_case(), decode_case()};
    CLI::App* parsed = nullptr;
    SessionOptions options[std::size(cases)];
    auto setup = [&](CLI::App& app) {
        parsed = &app;
        app.require_subcommand(0, 1);
        app.fallthrough();
        for (std::size_t i = 0; i < std::size(cases); i++) {
            CLI::App& part = *app.add_subcommand(cases[i]->name, cases[i]->what);
            SessionOptions& o = options[i];
            o.repeats = cases[i]->repeats;
            cases[i]->add_options(part);
            part.add_option("--repeats", o.repeats, fmt::format("runs of each; medians count (default: {})", o.repeats))
                ->check(CLI::Range(1, 1000))
                ->option_text("N");
            part.add_flag("--json", o.json, "the same as JSON, with each run");
            part.add_option("--save", o.save, "the JSON into a file, too, which is written after each row")
                ->option_text("FILE");
            part.add_flag("--turns", o.turns, "lines of JSON, in turns with compare.py");
        }
    };
    auto body = [&](const Common& common) {
        for (std::size_t i = 0; i < std::size(cases); i++) {
            if (!parsed->got_subcommand(cases[i]->name)) continue;
            stop_requested();  // from here on Ctrl-C asks
            Session session(cases[i]->name, options[i], common);
            std::exception_ptr failed;
            bool complete = false;
            try {
                cases[i]->run(session);
                complete = true;
            } catch (const Stopped&) {
                show_progress("");
                if (!options[i].turns) log_line("note: stopped as asked; the rows that are there are whole");
            } catch (...) {
                failed = std::current_exception();
            }
            session.end(complete, cases[i]->beside);
            if (failed) std::rethrow_exception(failed);
            return;
        }
        for (const auto& one : cases) fmt::print("{:12}{}\n", one->name, one->what);
        fmt::print("\n./bench CASE measures; ./bench CASE --help lists its options\n");
    };
    return run_program(argc, argv, "bench", "Measures speed; tools/bench/compare.py sets other software beside it", setup,
                       body, Work::measurements);
}
