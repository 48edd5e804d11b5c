// SPDX-License-Identifier: MIT
#include "tokenizer/merger.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "doctest/doctest.h"
#include "tests/tokenizer/babble.h"
#include "tokenizer/trainer.h"
#include "tokenizer/utf8.h"

using namespace masquerade;
using namespace masquerade::made_up;

namespace {

// Training as it is defined: everything is counted anew for each merge.
struct Naive {
    std::vector<std::string> tokens;
    int found_again = 0;  // merges whose token was there already

    Naive(const Lines& lines, int size, const TrainerOptions& options) : tokens(options.special) {
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
        if (options.max_characters > 0 && int(alphabet.size()) > options.max_characters)
            alphabet.resize(std::size_t(options.max_characters));
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
            all.push_back(word.substr(i, std::size_t(decode_utf8(word, i).length)));
        return all;
    }
    bool has(const std::string& token) const {
        return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
    }
    bool merge_best(const TrainerOptions& options) {
        std::map<std::pair<std::string, std::string>, std::int64_t> pairs;
        std::map<std::string, std::int64_t> single;
        for (const auto& [cut, count] : words)
            for (std::size_t i = 0; i < cut.size(); i++) {
                single[cut[i]] += count;
                if (i + 1 < cut.size()) pairs[{cut[i], cut[i + 1]}] += count;
            }
        int least = options.min_pair_count > 0 ? options.min_pair_count : options.min_count;
        bool found = false;
        std::string left, right;
        std::int64_t best = 0, of = 1;
        for (const auto& [pair, count] : pairs) {
            std::string merged = pair.first + pair.second.substr(2);
            int length = int(characters_of(merged).size()) - (continues(merged) ? 2 : 0);
            if (count < least || (options.max_token > 0 && length > options.max_token)) continue;
            std::int64_t base = options.score == Score::count ? 1 : single[pair.first] * single[pair.second];
            if (found && count * of <= best * base) continue;
            found = true;
            left = pair.first;
            right = pair.second;
            best = count;
            of = base;
        }
        if (!found) return false;
        std::string merged = left + right.substr(2);
        if (has(merged))
            found_again++;
        else
            tokens.push_back(merged);
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
    int found_again = 0;
    for (Score score : {Score::count, Score::likelihood})
        for (int corpus = 0; corpus < 120; corpus++) {
            Random random{std::uint64_t(corpus)};
            Lines lines = babble(1 + int(random.below(30)), random.below(1000), 2 + random.below(14));
            for (int run = corpus % 3 == 0 ? 30 : 0; run > 0; run--)
                lines.push_back(std::string(1 + random.below(24), 'a') + (random.below(3) == 0 ? "b" : ""));
            TrainerOptions options;
            options.score = score;
            options.min_count = 1 + int(random.below(3));
            options.min_pair_count = int(random.below(2) * random.below(8));
            options.max_token = int(random.below(2) * (1 + random.below(6)));
            options.max_characters = int(random.below(2) * (1 + random.below(12)));
            options.single_digits = random.below(2) == 0;
            if (corpus % 5 == 0) options.special.insert(options.special.end(), {"ba", "##b", "aaa"});
            for (int size : {int(9 + random.below(60)), 5000}) {
                CAPTURE(corpus);
                CAPTURE(size);
                Naive naive(lines, size, options);
                REQUIRE(tokens_of(train_vocabulary(lines, size, options), 0) == naive.tokens);
                found_again += naive.found_again;
            }
        }
    CHECK(found_again > 0);  // the case is met: a merge makes what was a special token already
}

TEST_CASE("likelihood prefers what belongs together to what is frequent") {
    // "qu" is all there is of q; "ea" is more frequent, but e and a are everywhere.
    Lines lines(20, "qu ea ea ae e a e a e a e a");
    TrainerOptions options;
    auto first = [&] { return tokens_of(train_vocabulary(lines, 14, options)).back(); };
    CHECK(first() == "ea");
    options.score = Score::likelihood;
    CHECK(first() == "qu");
    lines.push_back("xy");  // rarer still, so even better, unless rare pairs are kept out
    options.min_count = 1;
    options.min_pair_count = 1;
    auto merged = [&] { return tokens_of(train_vocabulary(lines, 18, options)).back(); };
    CHECK(merged() == "xy");
    options.min_pair_count = 2;
    CHECK(merged() == "qu");
}

TEST_CASE("scores are compared exactly where doubles cannot tell them apart, or tell equal ones apart") {
    // The first merge of two pairs, where b and d also occur without a and c.
    auto first_merge = [](Score score, std::int64_t ab, std::int64_t cd, std::int64_t b = 0,
                          std::int64_t d = 0) {
        TokenList tokens;
        for (const char* token : {"a", "##b", "c", "##d"}) tokens.add(token);
        Merger merger(tokens, score, 1, 0);
        merger.add({0, 1}, ab);
        merger.add({2, 3}, cd);
        if (b > 0) merger.add({1}, b);
        if (d > 0) merger.add({3}, d);
        CHECK(merger.run(5, [] { return true; }));
        return tokens[4];
    };
    const std::int64_t power = std::int64_t(1) << 60;
    for (std::int64_t many : {power, power + 12345, 2 * power - 1, 4 * power - 987654321}) {
        CAPTURE(many);
        REQUIRE(double(many) == double(many + 1));
        CHECK(first_merge(Score::count, many, many) == "ab");
        CHECK(first_merge(Score::count, many, many + 1) == "cd");
        CHECK(first_merge(Score::likelihood, many, many) == "ab");
        CHECK(first_merge(Score::likelihood, many + 1, many) == "cd");
        CHECK(first_merge(Score::likelihood, many, many + 1) == "ab");
    }
    const std::int64_t of_b = 1'423'959'523'870, ab = 486'143'693'898, cd = 376'373'156'303;
    auto rounded = [&](std::int64_t n) { return double(n) / (double(n) * double(of_b)); };
    REQUIRE(rounded(cd) > rounded(ab));  // both are 1 / of_b
    CHECK(first_merge(Score::likelihood, ab, cd, of_b - ab, of_b - cd) == "ab");
}
