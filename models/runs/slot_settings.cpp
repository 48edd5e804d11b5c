// SPDX-License-Identifier: MIT
#include "models/runs/slot_settings.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "engine/base/named.h"
#include "engine/io/file.h"
#include "input/lines.h"
#include "input/number.h"
#include "input/utf8.h"

namespace masquerade {
namespace {

// An order of insertion, given by a number for every token of the vocabulary. If several words are missing in a slot (a
// place between two words), training prefers to insert the token with the smallest number.
struct Order {
    const char *name, *what;
    // Returns the numbers for a training text, whose sentences are encoded; null: the order needs no numbers. If `both`
    // is true, words are inserted into sources as well as into targets.
    Numbers (*numbers)(const WordPiece& tokenizer, const SentenceList& sentences, bool both, std::uint64_t seed);
};

Numbers by_frequency(const WordPiece& tokenizer, const SentenceList& sentences, bool both, std::uint64_t) {
    Numbers n(tokenizer.vocabulary().size());
    for (std::uint64_t i = 0; i < sentences.size(); i++) {
        const Sentence s = sentences.at(i);
        for (int token : s.target) n[token]--;
        if (both || s.target.empty())
            for (int token : s.ids) n[token]--;
    }
    return n;
}

// Returns the text of a token without the "##" with which a continuation piece begins.
std::string spelled(const WordPiece& tokenizer, int token) {
    const std::string word(tokenizer.vocabulary().token(token));
    return word.rfind("##", 0) == 0 ? word.substr(2) : word;
}

template <class Of>
Numbers for_each_token(const WordPiece& tokenizer, Of of) {
    Numbers n;
    for (int token = 0; token < tokenizer.vocabulary().size(); token++) n.push_back(of(token));
    return n;
}

Numbers by_length(const WordPiece& tokenizer, const SentenceList&, bool, std::uint64_t) {
    return for_each_token(tokenizer, [&](int token) {
        const std::string word = spelled(tokenizer, token);
        return -std::count_if(word.begin(), word.end(), starts_code_point);
    });
}

Numbers by_alphabet(const WordPiece& tokenizer, const SentenceList&, bool, std::uint64_t) {
    std::map<std::string, int> rank;
    const auto rank_of = [&](int token) -> int& { return rank[spelled(tokenizer, token)]; };
    for_each_token(tokenizer, rank_of);  // makes an entry in `rank` for the text of each token
    int next = 0;
    for (auto& [word, r] : rank) r = next++;
    return for_each_token(tokenizer, rank_of);
}

Numbers by_chance(const WordPiece& tokenizer, const SentenceList&, bool, std::uint64_t seed) {
    return for_each_token(tokenizer, [&](int token) { return Sequence(seed, "order", token).uniform(); });
}

const std::vector<Order>& orders() {
    static const std::vector<Order> all = {
        {"left_to_right", "only the next word", nullptr},
        {"binary_tree", "the middle word first", nullptr},
        {"uniform", "all missing words with equal weight", nullptr},
        {"frequency", "frequent words first", by_frequency},
        {"length", "long words first", by_length},
        {"alphabetical", "in alphabetical order", by_alphabet},
        {"random", "one random order of the vocabulary, drawn from the seed", by_chance},
    };
    return all;
}

// Returns the row of orders() with this name; null if there is none.
const Order* find_order(const std::string& name) {
    for (const Order& o : orders())
        if (o.name == name) return &o;
    return nullptr;
}

// Returns the rank of each number among all different numbers, from 0. Unlike the numbers themselves, ranks are exact
// in f32, in which a checkpoint stores the scores.
Numbers ranks_of(const Numbers& numbers) {
    std::map<double, int> rank;
    for (double n : numbers) rank[n];
    int next = 0;
    for (auto& [number, r] : rank) r = next++;
    Numbers all;
    for (double n : numbers) all.push_back(rank[n]);
    return all;
}

// Returns the ranks of the numbers in a file that has a number on each of `count` lines.
Numbers ranks_in(const std::string& path, int count) {
    Numbers n;
    if (!std::filesystem::exists(path))
        throw BadInput("order=", path, " is neither ", joined(names_of(orders())),
                       " nor a file; expected one of these names or a file with a number for each token");
    const std::string bytes = read_file(path);
    TextLines lines(bytes);
    for (std::string_view line; lines.next(line);) {
        if (!read_number(line, n.emplace_back()))
            throw BadInput(path, ":", n.size(), ": expected a number, found \"", line, "\"");
    }
    if (int(n.size()) != count)
        throw BadInput(path, " has ", n.size(), " numbers, expected one for each of ", count, " tokens of vocab.txt");
    return ranks_of(n);
}

}  // namespace

void SlotSettings::declare(Config& c, const std::string& about) {
    c.topic("Insertion");
    c.add_path(
        "order", &order,
        about +
            "order in which a slot, which is a gap between two words (tokens) of an unfinished target, learns to "
            "insert the words that are missing there: " +
            described(orders()) + ", or a file with a number for every token of the vocabulary (small numbers first)",
        names_of(orders()));
    // InsertionRule (objective.h) defines the distance of a missing word. The smallest distance gets the largest share.
    c.add("tau", &rule_options.tau,
          about +
              "temperature of order=: the share of a missing word in its slot's loss is proportional to exp(-d / tau), "
              "where d is 0 for the word that the order prefers, and larger for later ones; no effect with "
              "left_to_right and uniform",
          1e-3, 1e9);
    c.add("content_location", &content_location,
          about + "p(word, slot) is p(word | slot) p(slot), or one softmax over all words and slots",
          {{"factorised", Location::factorised}, {"joint", Location::joint}});
    c.add("contextual_bias", &head_options.contextual_bias,
          about +
              "add a bias for each word to the logits, the same in all slots; it is computed from the element-wise "
              "maximum of the slots' vectors");
    c.add("mixture", &head_options.mixture,
          about + "number of softmaxes whose mixture gives the probabilities of the words; 1: no mixture", 1, 64);
    c.add("slot_projection", &head_options.projection,
          about +
              "true: the last layer's vectors of the two words beside a slot are projected to the width of the "
              "embedding, and the embedding table is the output matrix; false: a separate output matrix reads the two "
              "vectors, of width C each, side by side");
    c.add(
        "finalization", &finalization,
        about +
            "which slots learn to end, that is, to predict that nothing is missing there: those without a missing word "
            "(slot), or only those of a complete target (sequence)",
        {{"slot", End::slot}, {"sequence", End::sequence}});
    c.add("end_weight", &rule_options.end_weight,
          about + "weight of slots that learn to end; other slots have weight 1", 0, 1000);
}

InsertionHeadOptions SlotSettings::head() const {
    InsertionHeadOptions o = head_options;
    o.joint = content_location == Location::joint;
    const Order* named = find_order(order);
    o.scored = !named || named->numbers;
    return o;
}

Numbers SlotSettings::scores(const WordPiece& tokenizer, const SentenceList& sentences, bool both,
                             std::uint64_t seed) const {
    const Order* named = find_order(order);
    return named ? named->numbers(tokenizer, sentences, both, seed) : ranks_in(order, tokenizer.vocabulary().size());
}

InsertionRule SlotSettings::rule(const Vocabulary& vocabulary, const InsertionHead& head) const {
    InsertionRule r = rule_options;
    r.left_to_right = order == "left_to_right";
    r.middle = order == "binary_tree";
    r.scores = head.scores();
    r.sequence = finalization == End::sequence;
    r.begin = vocabulary.cls();
    r.end = vocabulary.sep();
    return r;
}

}  // namespace masquerade
