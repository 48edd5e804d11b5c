// SPDX-License-Identifier: MIT
#include "models/scoring/text_metrics.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "engine/base/error.h"
#include "models/scoring/text_tokens.h"
#include "tokenizer/characters.h"

namespace masquerade {
namespace {

// Words by number, in the order in which they were first met.
class Numbers {
  public:
    Tokens operator()(const std::vector<std::string>& words) {
        Tokens tokens;
        for (const std::string& word : words)
            tokens.push_back(numbers_.try_emplace(word, int(numbers_.size())).first->second);
        return tokens;
    }

  private:
    std::unordered_map<std::string, int> numbers_;
};

Tokens character_tokens(const std::string& line) {
    const std::u32string characters = characters_of(line);
    return Tokens(characters.begin(), characters.end());
}

void check_pairs(const char* measure, const Strings& references, const Strings& hypotheses) {
    if (references.size() != hypotheses.size())
        throw Error(text(measure, ": ", references.size(), " references but ", hypotheses.size(),
                         " hypotheses; one of each is a pair"));
}

long ngram_count(const Tokens& tokens, int n) { return std::max(0l, long(tokens.size()) - n + 1); }

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

Overlap overlap(double matched, double reference, double hypothesis) {
    const double precision = ratio(matched, hypothesis), recall = ratio(matched, reference);
    return {precision, recall, ratio(2 * precision * recall, precision + recall)};
}

// One pair's part of the mean in percent.
void add(Overlap& mean, const Overlap& one, std::size_t pairs) {
    const double share = 100 / double(pairs);
    mean.precision += share * one.precision;
    mean.recall += share * one.recall;
    mean.f1 += share * one.f1;
}

bool repeats(const std::u32string& characters) {
    static const Characters kinds{NormaliseOptions()};
    std::set<char32_t> met;
    for (char32_t c : characters)
        if (!kinds[c].is(Character::punctuation) && !met.insert(c).second) return true;
    return false;
}

}  // namespace

Bleu bleu(const Strings& references, const Strings& hypotheses, BleuTokens tokens) {
    check_pairs("bleu", references, hypotheses);
    Numbers numbers;
    auto cut = [&](const Strings& lines) {
        std::vector<Tokens> all;
        for (const std::string& line : lines)
            all.push_back(tokens == BleuTokens::characters ? character_tokens(line) : numbers(words_13a(line)));
        return all;
    };
    return bleu(cut(references), cut(hypotheses), true);
}

Rouge rouge(const Strings& references, const Strings& hypotheses, RougeTokens tokens) {
    check_pairs("rouge", references, hypotheses);
    Numbers numbers;
    auto cut = [&](const std::string& line) {
        return tokens == RougeTokens::characters ? character_tokens(line) : numbers(rouge_words(line));
    };
    Rouge mean;
    for (std::size_t i = 0; i < references.size(); i++) {
        const Tokens r = cut(references[i]), h = cut(hypotheses[i]);
        auto of_ngrams = [&](int n) {
            return overlap(shared(ngrams(h, n), ngrams(r, n)), double(ngram_count(r, n)),
                           double(ngram_count(h, n)));
        };
        add(mean.rouge1, of_ngrams(1), references.size());
        add(mean.rouge2, of_ngrams(2), references.size());
        add(mean.rougeL, overlap(longest_common(r, h), double(r.size()), double(h.size())),
            references.size());
    }
    return mean;
}

Form form(const Strings& references, const Strings& hypotheses) {
    check_pairs("form", references, hypotheses);
    double exact = 0, same = 0, without = 0, ratios = 0, compared = 0;
    for (std::size_t i = 0; i < references.size(); i++) {
        const std::u32string r = characters_of(references[i]), h = characters_of(hypotheses[i]);
        exact += references[i] == hypotheses[i];
        same += r.size() == h.size();
        without += !repeats(h);
        if (r.empty()) continue;
        ratios += double(h.size()) / double(r.size());
        compared++;
    }
    const double pairs = double(references.size());
    return {100 * ratio(exact, pairs), 100 * ratio(same, pairs), 100 * ratio(without, pairs),
            ratio(ratios, compared)};
}

}  // namespace masquerade
