// SPDX-License-Identifier: MIT
// One thing that ./bench measures. A new case is a file beside this one and a line in tools/bench.cpp.
#pragma once
#include <memory>

#include "tools/program.h"

namespace masquerade {

struct BenchCase {
    const char *name, *what;  // as the command line knows it; what is measured, in one line

    BenchCase(const char* case_name, const char* line) : name(case_name), what(line) {}
    virtual ~BenchCase() = default;
    virtual void add_options(CLI::App& app) = 0;
    virtual void run(const Common& common) = 0;
};

std::unique_ptr<BenchCase> tokenizer_case();
std::unique_ptr<BenchCase> train_case();
std::unique_ptr<BenchCase> attention_case();
std::unique_ptr<BenchCase> decode_case();

}  // namespace masquerade
