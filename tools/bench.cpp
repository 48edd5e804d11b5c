// SPDX-License-Identifier: MIT
// ./bench: speed, with the fastest other program that does the same beside it where it is installed.
#include <fmt/format.h>

#include "tools/bench/case.h"

using namespace masquerade;

int main(int argc, char** argv) {
    const std::unique_ptr<BenchCase> cases[] = {tokenizer_case(), train_case(), attention_case(),
                                                decode_case()};
    auto setup = [&](CLI::App& app) {
        app.require_subcommand(0, 1);
        app.fallthrough();
        for (const auto& one : cases) one->add_options(*app.add_subcommand(one->name, one->what));
    };
    CLI::App* parsed = nullptr;
    auto keep = [&](CLI::App& app) {
        parsed = &app;
        setup(app);
    };
    auto body = [&](const Common& common) {
        for (const auto& one : cases)
            if (parsed->got_subcommand(one->name)) return one->run(common);
        for (const auto& one : cases) fmt::print("{:12}{}\n", one->name, one->what);
        fmt::print("\n./bench CASE measures; ./bench CASE --help lists its options\n");
    };
    return run_program(argc, argv, "bench", "Measures speed, beside other software that is installed", keep,
                       body, Work::measurements);
}
