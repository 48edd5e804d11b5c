// SPDX-License-Identifier: MIT
#include "data/training_text.h"

#include <filesystem>

#include "data/corpus.h"
#include "data/grammar.h"
#include "data/text.h"
#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/random.h"

namespace masquerade {
namespace {

void hold_out(TrainingText& t) {
    std::vector<std::string> kept;
    for (std::string& line : t.train) {
        bool held = make_stream(0, line, 0).key0 % 50 == 0;
        (held ? t.held_out : kept).push_back(std::move(line));
    }
    t.train = std::move(kept);
    if (t.train.empty()) std::swap(t.train, t.held_out);
}

TrainingText grammar_text() {
    TrainingText t;
    t.origin.name = "built-in grammar of questions";
    t.train = grammar_questions(1, 12000);
    t.origin.lines = t.train.size();
    hold_out(t);
    return t;
}

TrainingText text_of(const std::string& name, const std::string& file, const std::string& held_out_file) {
    TrainingText t;
    t.origin.name = name;
    t.origin.file = std::filesystem::absolute(file).string();
    Text text = read_text(file);
    t.origin.lines = text.counts.lines;
    t.origin.hash = text.hash;
    t.train = std::move(text.source);
    if (held_out_file.empty()) {
        hold_out(t);
    } else {
        t.origin.held_out_file = std::filesystem::absolute(held_out_file).string();
        t.held_out = read_text(held_out_file).source;
    }
    return t;
}

}  // namespace

TrainingText find_training_text(const std::string& file, const std::string& held_out_file) {
    if (!file.empty()) return text_of(file, file, held_out_file);
    if (!std::filesystem::exists("corpus/SOURCE.json")) {
        log_line(
            "note: there is no corpus/ here (make data builds one): a built-in grammar of questions serves");
        TrainingText t = grammar_text();
        if (!held_out_file.empty()) t.held_out = read_text(held_out_file).source;
        return t;
    }
    Corpus corpus = read_corpus("corpus");
    return text_of(corpus.name + ", " + corpus.date, corpus.sentences[0],
                   held_out_file.empty() ? corpus.sentences[1] : held_out_file);
}

TrainingText read_again(const TextOrigin& origin) {
    if (origin.file.empty()) return grammar_text();
    TrainingText t = text_of(origin.name, origin.file, origin.held_out_file);
    if (t.origin.hash != origin.hash)
        throw BadInput(
            text(origin.file,
                 " has changed since the run was started; what goes on with a run needs the same text"));
    return t;
}

}  // namespace masquerade
