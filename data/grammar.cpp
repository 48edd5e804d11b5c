// SPDX-License-Identifier: MIT
#include "data/grammar.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "data/corpus.h"
#include "engine/base/error.h"
#include "engine/base/random.h"

namespace masquerade {
namespace {

constexpr const char* rules =
#include "data/grammar_rules.txt"
    ;

using Grammar = std::unordered_map<std::string, Strings>;  // rule name -> alternatives

Grammar parse_rules() {
    Grammar grammar;
    Strings* alternatives = nullptr;
    std::istringstream lines(rules);
    for (std::string line; std::getline(lines, line);) {
        std::size_t begin = line.find(line[0] == ' ' ? '|' : ':') + 1;
        if (line[0] != ' ') alternatives = &grammar[line.substr(0, begin - 1)], begin++;
        std::istringstream rest(line.substr(begin));
        for (std::string alternative; std::getline(rest, alternative, '|');) alternatives->push_back(alternative);
    }
    return grammar;
}

// Appends a random expansion of the rule `name`.
void expand(const std::string& name, Sequence& random, std::string& sentence) {
    static const Grammar grammar = parse_rules();
    const Strings& alternatives = grammar.at(name);
    std::string_view rest = alternatives[random.below(alternatives.size())];
    while (!rest.empty()) {
        const std::size_t open = std::min(rest.find('{'), rest.size());
        sentence += rest.substr(0, open);
        rest.remove_prefix(open);
        if (rest.empty()) break;
        const std::size_t close = rest.find('}');
        expand(std::string(rest.substr(1, close - 1)), random, sentence);
        rest.remove_prefix(close + 1);
    }
}

}  // namespace

Strings grammar_questions(std::uint64_t seed, int count) {
    Sequence random(seed, "questions");
    std::unordered_set<std::string> seen;
    Strings questions;
    while (int(questions.size()) < count) {
        std::string sentence;
        expand("question", random, sentence);
        if (seen.insert(sentence).second) questions.push_back(std::move(sentence));
    }
    return questions;
}

std::string write_grammar_corpus(std::uint64_t seed, const std::string& folder) {
    std::vector<Entry> entries;
    for (const std::string& question : grammar_questions(seed, 12000)) entries.push_back({question, question, ""});
    return write_corpus(folder, "built-in grammar of questions", "made up",
                        text("12000 distinct questions, seed ", seed, "; held out by hash of the question"),
                        {{"questions", "sentences", make_splits(std::move(entries))}});
}

}  // namespace masquerade
