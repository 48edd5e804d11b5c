// SPDX-License-Identifier: MIT
#include "data/sentences.h"

#include <algorithm>

#include "engine/base/error.h"

namespace masquerade {

namespace {
// Appends the ids of a line and [SEP] to `ids`. If `ids` would have more than `longest` ids, the end of the line is
// cut off. Returns whether this happened.
bool append(Encoder& encoder, const std::string& line, int sep, int longest, Tokens& ids) {
    encoder.append(line, ids);
    const bool cut = int(ids.size()) > longest - 1;
    if (cut) ids.resize(longest - 1);
    ids.push_back(sep);
    return cut;
}
}  // namespace

Sentences pointers_to(const std::vector<Sentence>& sentences, std::size_t most) {
    Sentences pointers;
    for (std::size_t i = 0; i < std::min(most, sentences.size()); i++) pointers.push_back(&sentences[i]);
    return pointers;
}

std::vector<Sentence> encode_lines(const WordPiece& tokenizer, const Strings& lines, int max_length) {
    return encode_pairs(tokenizer, lines, {}, max_length, 0);
}

std::vector<Sentence> encode_pairs(const WordPiece& tokenizer, const Strings& lines, const Strings& targets,
                                   int max_length, int max_target) {
    if (!targets.empty() && targets.size() != lines.size())
        throw Error(targets.size(), " targets for ", lines.size(), " lines");
    const Vocabulary& v = tokenizer.vocabulary();
    std::vector<Sentence> sentences(lines.size());
    Encoder encoder(tokenizer);
    for (std::size_t i = 0; i < lines.size(); i++) {
        sentences[i].ids.push_back(v.cls());
        sentences[i].cut = append(encoder, lines[i], v.sep(), max_length, sentences[i].ids);
        if (!targets.empty())
            sentences[i].target_cut = append(encoder, targets[i], v.sep(), max_target, sentences[i].target);
        sentences[i].name = i;
        sentences[i].visit = i;
    }
    return sentences;
}

std::vector<Lost> lost_in(const WordPiece& tokenizer, const Strings& lines, int longest) {
    const int unknown = tokenizer.vocabulary().unk();
    std::vector<Lost> lost;
    for (const Sentence& s : encode_lines(tokenizer, lines, longest + 1))
        lost.push_back({int(s.ids.size()) > longest, std::count(s.ids.begin(), s.ids.end(), unknown) > 0});
    return lost;
}

WordCounter::WordCounter(const Vocabulary& v) : begins_(v.size()), unknown_(v.unk()) {
    for (int id = 0; id < v.size(); id++) begins_[id] = id == unknown_ || !(v.is_special(id) || continues(v.token(id)));
}

void WordCounter::add(const Tokens& ids, ReadCounts& counts) const {
    for (int id : ids) counts.words += begins_[id], counts.unknown += id == unknown_;
}

namespace {

class SentencesInMemory : public SentenceList {
  public:
    explicit SentencesInMemory(std::vector<Sentence> sentences) : sentences_(std::move(sentences)) {}
    std::uint64_t size() const override { return sentences_.size(); }
    Sentence at(std::uint64_t i) const override { return sentences_[i]; }
    ReadCounts counts(const Vocabulary& vocabulary, bool targets) const override {
        const WordCounter words(vocabulary);
        ReadCounts counts;
        for (const Sentence& s : sentences_) {
            const Tokens& ids = targets ? s.target : s.ids;
            counts.lines += !ids.empty();
            counts.cut += targets ? s.target_cut : s.cut;
            words.add(ids, counts);
        }
        return counts;
    }

  private:
    const std::vector<Sentence> sentences_;
};

}  // namespace

std::shared_ptr<const SentenceList> in_memory(std::vector<Sentence> sentences) {
    return std::make_shared<SentencesInMemory>(std::move(sentences));
}

SentenceSource::SentenceSource(std::shared_ptr<const SentenceList> sentences, std::uint64_t seed)
    : sentences_(std::move(sentences)), seed_(seed), order_(order_of(0)) {
    if (sentences_->size() == 0) throw BadInput("there is no sentence to train on; give --data a file with text in it");
}

Permutation SentenceSource::order_of(std::uint64_t epoch) const {
    return Permutation(sentences_->size(), seed_, "data.order", std::uint32_t(epoch));
}

Sentences SentenceSource::take(std::size_t limit, const SentenceSize& size) {
    taken_.clear();
    for (std::size_t used = 0;;) {
        if (next_ == order_.size()) {
            next_ = 0;
            order_ = order_of(++epoch_);
            if (!taken_.empty()) break;  // ends the batch, which could otherwise contain a sentence twice
        }
        Sentence s = sentences_->at(order_[next_]);
        const std::size_t own = size(s);
        if (!taken_.empty() && used + own > limit) break;
        used += own;
        s.visit = epoch_ * order_.size() + next_;
        taken_.push_back(std::move(s));
        next_++;
    }
    return pointers_to(taken_);
}

void SentenceSource::move_to(const std::vector<std::uint64_t>& numbers) {
    if (numbers.size() != 2) throw BadInput("the checkpoint does not record its position in the data");
    epoch_ = numbers[0];
    next_ = numbers[1];
    order_ = order_of(epoch_);
    if (next_ > order_.size())
        throw BadInput("the checkpoint stands at sentence ", next_, " of an epoch, the data has only ", order_.size(),
                       "; resume with the data the run was started with");
}

}  // namespace masquerade
