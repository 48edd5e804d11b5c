// SPDX-License-Identifier: MIT
#include "data/grammar.h"

#include <doctest/doctest.h>

#include <set>

#include "data/corpus.h"
#include "data/text.h"
#include "tests/folder.h"

namespace masquerade {

TEST_CASE("grammar: questions are distinct, whole and the same for the same seed") {
    std::vector<std::string> questions = grammar_questions(1, 12000);
    CHECK(questions.size() == 12000);
    CHECK(std::set<std::string>(questions.begin(), questions.end()).size() == 12000);
    CHECK(grammar_questions(1, 100) == std::vector<std::string>(questions.begin(), questions.begin() + 100));
    CHECK(grammar_questions(2, 100) != grammar_questions(1, 100));
    std::set<std::string> beginnings;
    std::size_t wrong = 0;
    for (const std::string& question : questions) {
        bool whole = question[0] >= 'A' && question[0] <= 'Z' && question.back() == '?' &&
                     question.find('?') == question.size() - 1 && question.size() < 120 &&
                     question.find_first_of("{}|") == question.npos && collapse_space(question) == question;
        wrong += !whole;
        beginnings.insert(question.substr(0, question.find(' ', question.find(' ') + 1)));
    }
    CHECK(wrong == 0);
    CHECK(beginnings.size() > 80);  // a beginning is the first two words of a question
}

TEST_CASE("grammar: the corpus holds questions out") {
    TemporaryFolder folder;
    write_grammar_corpus(1, folder.path);
    const Corpus corpus = read_corpus(folder.path);
    Text train = read_text(corpus.sentences[0]), dev = read_text(corpus.sentences[1]);
    Text test = read_text(corpus.sentences[2]);
    CHECK(train.source.size() + dev.source.size() + test.source.size() == 12000);
    CHECK(train.source.size() > 11000);
    CHECK(dev.source.size() > 150);
    CHECK(test.source.size() > 150);
    std::set<std::string> seen(train.source.begin(), train.source.end());
    std::size_t crossing = 0;
    for (const Text* held_out : {&dev, &test})
        for (const std::string& question : held_out->source) crossing += !seen.insert(question).second;
    CHECK(crossing == 0);
    CHECK(corpus.pairs[0].empty());
}

}  // namespace masquerade
