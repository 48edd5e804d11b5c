// SPDX-License-Identifier: MIT
#include "models/writing/search_rules.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"

namespace masquerade {
namespace {

void at_least(const char* name, double found, double least) {
    if (!(found >= least) || std::isinf(found))
        throw Error("search: ", name, " is ", found, ", expected a number from ", least);
}

void in_vocabulary(const char* name, const Tokens& ids, int V) {
    for (int id : ids)
        if (id < 0 || id >= V) throw Error("search: ", name, " holds token ", id, ", the vocabulary has ", V);
}

}  // namespace

void check(const SearchOptions& o, int V) {
    at_least("beams", o.beams, 1);
    at_least("n_best", o.n_best, 1);
    at_least("length_penalty", o.length_penalty, -100);
    at_least("samples", o.samples, 0);
    at_least("no_repeat_ngram", o.no_repeat_ngram, 0);
    at_least("minimum", o.minimum, 0);
    if (!(o.repetition_penalty > 0))
        throw Error("search: repetition_penalty is ", o.repetition_penalty, ", expected above 0");
    if (o.n_best > o.beams) throw Error("search: n_best is ", o.n_best, ", but there are ", o.beams, " beams");
    if (o.samples > 0) {
        if (o.beams > 1) throw Error("search: samples and beams exclude each other; set one of them");
        if (!(o.temperature > 0)) throw Error("search: samples are drawn at a temperature above 0");
        if (!(o.top_p >= 0 && o.top_p <= 1)) throw Error("search: top_p is ", o.top_p, ", expected from 0 to 1");
        at_least("top_k", o.top_k, 0);
    }
    if (o.bert4keras && o.n_best > 1) throw Error("search: bert4keras' beam search has no n-best list");
    in_vocabulary("forbidden", o.forbidden, V);
}

void check(const SearchSource& source, const SearchOptions& options, int V) {
    in_vocabulary("begin", {source.begin}, V);
    in_vocabulary("ends", source.ends, V);
    at_least("maximum", source.maximum > 0 ? source.maximum : options.maximum, 1);
}

SearchRules::SearchRules(const SearchSource& source, const SearchOptions& options)
    : options_(options),
      begin_(source.begin),
      maximum_(source.maximum > 0 ? source.maximum : options.maximum),
      ends_(source.ends) {
    std::sort(ends_.begin(), ends_.end());
    ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
}

bool SearchRules::is_end(int token) const { return std::binary_search(ends_.begin(), ends_.end(), token); }

// With the option bert4keras, an end token is allowed at every length. It ends the hypothesis only if the hypothesis,
// including this end token, has at least `minimum` tokens.
bool SearchRules::ends(int token, int length) const {
    return is_end(token) && !(options_.bert4keras && length < options_.minimum);
}

void SearchRules::apply(TokenScores& row, const Tokens& written, double shift) const {
    if (options_.repetition_penalty != 1) penalise_repetition(row, written, shift);
    if (options_.no_repeat_ngram > 0) forbid_ngrams(row, written);
    for (int id : options_.forbidden) row.forbid(id);
    if (!options_.bert4keras && int(written.size()) < options_.minimum)
        for (int id : ends_) row.forbid(id);
}

// Penalises every token that was already generated, and the token `begin` if it is not an end token. For these tokens,
// s = score - shift becomes s * penalty if s < 0, otherwise s / penalty. A token that occurs several times is penalised
// only once. Keskar et al. 2019 always divide, which would favour tokens with s < 0. Hugging Face's generate
// distinguishes the signs as here.
void SearchRules::penalise_repetition(TokenScores& row, const Tokens& written, double shift) const {
    const double penalty = options_.repetition_penalty;
    auto penalise = [&](int id) {
        const double s = double(row[id]) - shift;
        row.set(id, float(shift + (s < 0 ? s * penalty : s / penalty)));
    };
    const bool by_begin = !is_end(begin_);  // if `begin` is an end token, it ended another text and is not penalised
    if (by_begin) penalise(begin_);
    for (auto at = written.begin(); at != written.end(); ++at)
        if (std::find(written.begin(), at, *at) == at && !(by_begin && *at == begin_)) penalise(*at);
}

// Forbids every token that would repeat an n-gram, where n = no_repeat_ngram. These are the tokens that followed
// earlier occurrences of the latest n-1 tokens. As in Hugging Face's generate, `begin` counts as the first token.
void SearchRules::forbid_ngrams(TokenScores& row, const Tokens& written) const {
    const std::size_t tail = options_.no_repeat_ngram - 1, count = written.size() + 1;
    auto token = [&](std::size_t i) { return i == 0 ? begin_ : written[i - 1]; };
    for (std::size_t i = 0; i + tail < count; i++) {  // the n-gram consists of the tokens i .. i + tail
        std::size_t same = 0;
        while (same < tail && token(i + same) == token(count - tail + same)) same++;
        // If n = 1, every earlier token is forbidden, also `begin`. But if `begin` is an end token, it must stay
        // allowed.
        const bool by_begin = i + tail == 0 && is_end(begin_);
        if (same == tail && !by_begin) row.forbid(token(i + tail));
    }
}

}  // namespace masquerade
