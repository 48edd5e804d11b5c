// SPDX-License-Identifier: MIT
// What ./bench tokenizer measures: each kind of work as a function to run, on lines in memory.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/wordpiece.h"
#include "tools/bench/session.h"

namespace masquerade {

struct BenchText {
    std::string name;                     // for people
    std::string bytes;                    // valid UTF-8; every line ends in a line feed
    std::vector<std::string_view> lines;  // in `bytes`, without it
    int copies = 1;                       // times the text was repeated

    BenchText() = default;
    BenchText(const BenchText&) = delete;  // `lines` would point into the other's bytes
    BenchText(BenchText&&) = default;

    double megabytes() const { return double(bytes.size()) / 1e6; }
    std::string_view once() const {
        return std::string_view(bytes).substr(0, bytes.size() / std::size_t(copies));
    }
};

// Files, one after the other. Without one: what training takes by default, corpus/ or the built-in grammar,
// as often as makes about `size` bytes.
BenchText read_bench_text(const std::vector<std::string>& files, double size = 16e6);

struct TokenizerWork {
    std::string key, label;  // for --json; for people, at most 22 letters
    double bytes, tokens;    // what a run treats; without bytes the table shows milliseconds
    std::string beside;      // what tokenizer_peer.py calls it
    int threads;
    std::function<void()> run;
};

// A vocabulary learned from lines that end at LF. Throws Stopped after Ctrl-C.
Vocabulary train_on(std::string_view lines, const NormaliseOptions& options, int threads);

// `vocabulary_path`: what the tokenizer was read from. Text and tokenizer must outlive the work.
std::vector<TokenizerWork> tokenizer_work(const BenchText& text, const WordPiece& tokenizer,
                                          const std::string& vocabulary_path, int threads);

}  // namespace masquerade
