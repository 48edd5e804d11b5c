// SPDX-License-Identifier: MIT
#include "models/runs/sentence_task.h"

#include <fmt/format.h>

#include <optional>
#include <system_error>

namespace masquerade {
namespace {

// Returns a text such as "warning: 3 of 40 targets (7.5 %)". If the share is below 1 %, it begins with "note".
std::string share_of(std::int64_t part, std::int64_t all, const char* what) {
    const double share = double(part) / all;
    return fmt::format("{}: {} of {} {} ({} %)", share < 0.01 ? "note" : "warning", part, all, what,
                       fmt::format(share < 0.095 ? "{:.2g}" : "{:.0f}", 100 * share));
}

}  // namespace

void add_cut_warning(Strings& warnings, const ReadCounts& counts, const char* what, const char* parts,
                     const LineLimit& limit) {
    if (counts.cut == 0) return;
    warnings.push_back(fmt::format("{} have more than {} {} and lose their end; a larger {} keeps it",
                                   share_of(counts.cut, counts.lines, what), limit.tokens, parts, limit.setting));
}

void add_unknown_warning(Strings& warnings, const ReadCounts& counts) {
    if (counts.unknown == 0) return;
    warnings.push_back(share_of(counts.unknown, counts.words, "words") +
                       " are read as [UNK]; a larger vocabulary, or another --vocab, has more of them");
}

SentenceTask::SentenceTask(Run& run, SharedSentences train, StoredSentences held_out, BatchMaker maker)
    : ahead(run.parameters.device() != Device::cpu),
      train_(std::move(train)),
      held_out_(std::move(held_out)),
      base_run_(run),
      maker_(std::move(maker)),
      source_(train_, run.common().train.seed),
      place_(source_.numbers()) {}

Strings SentenceTask::warnings() const {
    const Vocabulary& v = base_run_.tokenizer.vocabulary();
    const ReadCounts sources = train_->counts(v, false), targets = train_->counts(v, true);
    Strings all;
    add_cut_warning(all, sources, targets.lines > 0 ? "sources" : "lines", "tokens", base_run_.common().source_limit());
    add_cut_warning(all, targets, "targets", "tokens", base_run_.common().target_limit());
    ReadCounts words;
    words.words = sources.words + targets.words, words.unknown = sources.unknown + targets.unknown;
    add_unknown_warning(all, words);
    return all;
}

SentenceTask::Chosen SentenceTask::choose(std::int64_t step) {
    const RunSettings& s = base_run_.common();
    const auto number = std::uint32_t(step);
    const Sentences some =
        source_.take(s.batch_tokens, [&](const Sentence& each) { return maker_.size(each, number); });
    BatchParts batch(some, s.train.parts, [&](const Sentences& part) { return maker_.make(part, number); });
    return {step, std::move(batch), source_.numbers()};
}

std::string SentenceTask::next_batch(std::int64_t step) {
    std::optional<Chosen> chosen;
    if (next_.valid()) chosen = next_.get();
    if (!chosen || chosen->step != step) {
        source_.move_to(place_);
        chosen = choose(step);
    }
    batch_ = std::move(chosen->batch);
    place_ = std::move(chosen->place);
    try {
        if (ahead) next_ = std::async(std::launch::async, [this, step] { return choose(step + 1); });
    } catch (const std::system_error&) {
        ahead = false;  // the system has no thread left
    }
    return batch_.bucket();
}

void SentenceTask::move_to(const std::vector<std::uint64_t>& place) {
    next_ = {};  // waits for its thread
    source_.move_to(place);
    place_ = place;
}

}  // namespace masquerade
