// SPDX-License-Identifier: MIT
#include "tokenizer/merger.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "doctest/doctest.h"
#include "input/utf8.h"
#include "tests/tokenizer/babble.h"
#include "tokenizer/trainer.h"

using namespace masquerade;
using namespace masquerade::made_up;

namespace {

// Training by its definition: before each merge, everything is counted again.
struct Naive {
    std::vector<std::string> tokens;

    Naive(const Lines& lines, int size, const TrainerOptions& options)
        : tokens(std::begin(special_tokens), std::end(special_tokens)) {
        Characters characters(options);
        std::map<std::string, int> counts;
        for (const std::string& line : lines)
            for (Words w(line, characters); w.next();) counts[w.text()]++;
        std::map<std::string, int> seen;
        for (const auto& [word, count] : counts)
            for (const std::string& c : characters_of(word)) seen[c] += count;
        std::vector<std::pair<int, std::string>> alphabet;
        for (const auto& [c, count] : seen)
            if (count >= options.min_count) alphabet.push_back({-count, c});
        std::sort(alphabet.begin(), alphabet.end());
        for (const auto& [rank, c] : alphabet)
            for (std::string token : {c, "##" + c})
                if (int(tokens.size()) < size && !has(token) &&
                    (token == c || !characters[decode_utf8(c, 0).value].is(Character::alone)))
                    tokens.push_back(token);
        for (const auto& [word, count] : counts) {
            std::vector<std::string> cut = characters_of(word);
            bool known = int(cut.size()) <= options.max_word;
            for (std::size_t i = 0; i < cut.size(); i++) {
                if (i > 0) cut[i] = "##" + cut[i];
                known = known && has(cut[i]);
            }
            if (known) words.push_back({cut, count});
        }
        while (int(tokens.size()) < size && merge_best(options)) {
        }
    }

  private:
    std::vector<std::pair<std::vector<std::string>, int>> words;

    static std::vector<std::string> characters_of(const std::string& word) {
        std::vector<std::string> all;
        for (std::size_t i = 0; i < word.size(); i += all.back().size())
            all.push_back(word.substr(i, decode_utf8(word, i).length));
        return all;
    }
    bool has(const std::string& token) const { return std::find(tokens.begin(), tokens.end(), token) != tokens.end(); }
    bool merge_best(const TrainerOptions& options) {
        std::map<std::pair<std::string, std::string>, std::int64_t> pairs;
        for (const auto& [cut, count] : words)
            for (std::size_t i = 0; i + 1 < cut.size(); i++) pairs[{cut[i], cut[i + 1]}] += count;
        std::string left, right;
        std::int64_t best = options.min_count - 1;
        for (const auto& [pair, count] : pairs)
            if (count > best) std::tie(left, right) = pair, best = count;
        if (left.empty()) return false;
        std::string merged = left + right.substr(2);
        if (!has(merged)) tokens.push_back(merged);
        for (auto& word : words) {
            std::vector<std::string> cut;
            for (std::size_t i = 0; i < word.first.size(); i++) {
                bool here = i + 1 < word.first.size() && word.first[i] == left && word.first[i + 1] == right;
                cut.push_back(here ? merged : word.first[i]);
                i += here;
            }
            word.first = cut;
        }
        return true;
    }
};

}  // namespace

TEST_CASE("every merge is the one that counting all anew would choose") {
    for (int corpus = 0; corpus < 240; corpus++) {
        Random random{std::uint64_t(corpus)};
        Lines lines = babble(1 + int(random.below(30)), random.below(1000), 2 + random.below(14));
        for (int run = corpus % 3 == 0 ? 30 : 0; run > 0; run--)
            lines.push_back(std::string(1 + random.below(24), 'a') + (random.below(3) == 0 ? "b" : ""));
        TrainerOptions options;
        options.min_count = 1 + int(random.below(6));
        for (int size : {int(9 + random.below(60)), 5000}) {
            CAPTURE(corpus);
            CAPTURE(size);
            Naive naive(lines, size, options);
            REQUIRE(tokens_of(train_vocabulary(lines, size, options), 0) == naive.tokens);
        }
    }
}

TEST_CASE("counts are compared exactly where doubles cannot tell them apart") {
    auto first_merge = [](std::int64_t ab, std::int64_t cd) {
        Vocabulary tokens;
        for (const char* token : {"a", "##b", "c", "##d"}) tokens.add(token);
        Merger merger(tokens, 1);
        merger.add({0, 1}, ab);
        merger.add({2, 3}, cd);
        merger.run(5, [] {});
        return tokens.token(4);
    };
    const std::int64_t many = (std::int64_t(1) << 60) + 12345;
    REQUIRE(double(many) == double(many + 1));
    CHECK(first_merge(many, many) == "ab");
    CHECK(first_merge(many, many + 1) == "cd");
}
