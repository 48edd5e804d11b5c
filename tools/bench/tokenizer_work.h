// SPDX-License-Identifier: MIT
// What ./bench tokenizer measures: each kind of work as a function to run.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/wordpiece.h"
#include "tools/bench/table.h"
#include "tools/bench/text.h"

namespace masquerade {

struct TokenizerWork {
    Row row;
    std::string peer_work;  // what tokenizer_peer.py calls it
    int threads;
    std::function<void()> run;
};

constexpr int trained_size = 8000;  // tokens; tokenizer_peer.py trains as many

// A vocabulary learned from lines that end at LF. Throws Stopped after Ctrl-C.
Vocabulary train_on(std::string_view lines, const NormaliseOptions& options, int threads);

// `vocabulary_path`: what the tokenizer was read from. Text and tokenizer must outlive the work.
std::vector<TokenizerWork> tokenizer_work(const BenchText& text, const WordPiece& tokenizer,
                                          const std::string& vocabulary_path, int threads);

}  // namespace masquerade
