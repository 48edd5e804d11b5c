// SPDX-License-Identifier: MIT
#include "tools/bench/tokenizer_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "data/text.h"
#include "data/training_text.h"
#include "tokenizer/batch.h"
#include "tokenizer/hugging_face/hugging_face.h"
#include "tokenizer/trainer.h"
#include "tools/line_filter.h"

namespace masquerade {
namespace {

constexpr int trained_size = 8000;  // tokens; tokenizer_peer.py trains as many

// Where the results of work go that leaves nothing else behind, so that the compiler must do it.
volatile std::size_t seen = 0;

std::string with_threads(const std::string& name, int n) {
    return fmt::format("{}, {} thread{}", name, n, n == 1 ? "" : "s");
}

// 1, 2, 4 ... and the most.
std::vector<int> thread_counts(int most) {
    std::vector<int> counts;
    for (int n = 1; n < most; n *= 2) counts.push_back(n);
    counts.push_back(most);
    return counts;
}

void expect(std::size_t tokens, std::size_t expected, const std::string& what) {
    if (tokens != expected)
        throw Error(text(what, " gave ", tokens, " tokens where encoding line by line gave ", expected));
}

void add_line(const std::string& line, std::string& bytes) {
    bytes += line;
    bytes += '\n';
}

void add_file(const std::string& path, std::string& bytes) {
    const std::string file = read_bytes(path);
    TextCounts counts;
    each_line(file, 1, [&](std::string_view line, long) {
        add_line(clean_line(line, std::numeric_limits<std::size_t>::max(), counts), bytes);
    });
    if (counts.invalid_bytes > 0)
        log_line("warning: ", path, ": ", counts.invalid_bytes, " invalid bytes dropped");
}

std::vector<std::string_view> lines_of(std::string_view bytes) {
    std::vector<std::string_view> lines;
    each_line(bytes, 1, [&](std::string_view line, long) { lines.push_back(line); });
    return lines;
}

}  // namespace

BenchText read_bench_text(const std::vector<std::string>& files, double size) {
    BenchText t;
    if (files.empty()) {
        const TrainingText training = find_training_text("", "");
        t.name = training.origin.name;
        for (const std::string& line : training.train) add_line(line, t.bytes);
        t.copies = std::max(1, int(std::lround(size / double(std::max<std::size_t>(1, t.bytes.size())))));
        const std::string once = t.bytes;
        for (int i = 1; i < t.copies; i++) t.bytes += once;
    } else {
        for (const std::string& path : files) add_file(path, t.bytes);
        t.name = files.size() == 1 ? files[0] : text(files.size(), " files");
    }
    t.lines = lines_of(t.bytes);
    if (t.lines.empty()) throw BadInput(t.name + " is empty; there is nothing to measure with");
    return t;
}

Vocabulary train_on(std::string_view lines, const NormaliseOptions& options, int threads) {
    VocabularyTrainer trainer{TrainerOptions(options)};
    trainer.add_text(lines, threads);
    try {
        return trainer.train(trained_size, [](const char*, double) { return !stop_requested(); });
    } catch (const TrainingStopped&) {
        throw Stopped{};
    }
}

std::vector<TokenizerWork> tokenizer_work(const BenchText& text, const WordPiece& tokenizer,
                                          const std::string& vocabulary_path, int threads) {
    auto ids_of_lines = std::make_shared<std::vector<std::vector<int>>>();
    std::size_t tokens = 0;
    for (std::string_view line : text.lines) {
        ids_of_lines->push_back(tokenizer.encode(line));
        tokens += ids_of_lines->back().size();
    }
    std::vector<TokenizerWork> all;
    auto add = [&](const char* key, const std::string& label, const char* beside, int count,
                   std::function<void()> run) {
        const double bytes = double(text.bytes.size());
        all.push_back({key, label, bytes, double(tokens), beside, count, std::move(run)});
    };

    auto add_encoding = [&](const char* key, const char* label,
                            auto into) {  // what the lines are appended to
        add(key, label, key, 1, [&text, &tokenizer, into, tokens, label] {
            into->clear();
            Encoder encoder(tokenizer);
            for (std::string_view line : text.lines) encoder.append(line, *into);
            expect(into->size(), tokens, label);
        });
    };
    add_encoding("encode", "encode", std::make_shared<std::vector<int>>());
    add_encoding("pieces", "encode with offsets", std::make_shared<std::vector<Piece>>());
    for (int n : thread_counts(threads))
        add("batch", with_threads("batch", n), "encode", n, [&text, &tokenizer, tokens, n] {
            Frame plain;
            plain.special = false;
            expect(encode_batch(tokenizer, text.lines, plain, n).ids.size(), tokens, "encode_batch");
        });
    add("decode", "decode", "decode", 1, [&tokenizer, ids_of_lines] {
        for (const std::vector<int>& line : *ids_of_lines) seen = seen + tokenizer.decode(line).size();
    });
    for (int n : threads == 1 ? std::vector<int>{1} : std::vector<int>{1, threads}) {
        add("train", with_threads(fmt::format("train {}", trained_size), n), "train", n,
            [&text, &tokenizer, n] {
                seen = seen + std::size_t(train_on(text.bytes, tokenizer.options(), n).size());
            });
        all.back().tokens = 0;
    }
    add("load", "load vocabulary", "load", 1, [vocabulary_path] {
        HuggingFace read = read_tokenizer(vocabulary_path);
        WordPiece loaded(std::move(read.vocabulary), std::move(read.options), std::move(read.added));
        seen = seen + std::size_t(loaded.vocabulary().size());
    });
    all.back().bytes = all.back().tokens = 0;
    return all;
}

}  // namespace masquerade
