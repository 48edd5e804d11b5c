// SPDX-License-Identifier: MIT
#include "models/runs/sentence_task.h"

#include <fmt/format.h>

namespace masquerade {
namespace {

// Returns a text such as "warning: 3 of 40 targets (7.5 %)". If the share is below 1 %, it begins with "note".
std::string share_of(std::int64_t part, std::int64_t all, const char* what) {
    const double share = double(part) / all;
    return fmt::format("{}: {} of {} {} ({:.2g} %)", share < 0.01 ? "note" : "warning", part, all, what, 100 * share);
}

}  // namespace

Strings cut_warning(std::int64_t cut, std::int64_t all, const char* what, const char* parts, const LineLimit& limit) {
    if (cut == 0) return {};
    return {fmt::format("{} have more than {} {} and lose their end; a larger {} keeps it", share_of(cut, all, what),
                        limit.tokens, parts, limit.setting)};
}

Strings unknown_warning(const ReadCounts& counts) {
    if (counts.unknown == 0) return {};
    return {share_of(counts.unknown, counts.words, "words") +
            " are read as [UNK]; a larger vocabulary, or another --vocab, has more of them"};
}

Strings lost_warnings(const Run& run, const SentenceList& sentences) {
    const Vocabulary& v = run.tokenizer.vocabulary();
    const ReadCounts both[] = {sentences.counts(v, false), sentences.counts(v, true)};
    const bool pairs = both[1].lines > 0;
    Strings all;
    ReadCounts words;
    for (const bool targets : {false, true}) {
        const ReadCounts& counts = both[targets];
        const LineLimit limit = targets ? run.common().target_limit() : run.common().source_limit();
        words.words += counts.words, words.unknown += counts.unknown;
        for (std::string& line : cut_warning(counts.cut, counts.lines,
                                             targets ? "targets"
                                             : pairs ? "sources"
                                                     : "lines",
                                             "tokens", limit))
            all.push_back(std::move(line));
    }
    for (std::string& line : unknown_warning(words)) all.push_back(std::move(line));
    return all;
}

}  // namespace masquerade
