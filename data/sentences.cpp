// SPDX-License-Identifier: MIT
#include "data/sentences.h"

#include <algorithm>
#include <numeric>

#include "engine/base/error.h"
#include "engine/base/shuffle.h"

namespace masquerade {

namespace {
// Appends the ids of a line and [SEP] to `ids`. If `ids` would have more than `longest` ids, the end of the line is
// cut off. Returns whether this happened.
bool append(Encoder& encoder, const std::string& line, int sep, int longest, std::vector<int>& ids) {
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
        throw Error(text(targets.size(), " targets for ", lines.size(), " lines"));
    const Vocabulary& v = tokenizer.vocabulary();
    std::vector<Sentence> sentences(lines.size());
    Encoder encoder(tokenizer);
    for (std::size_t i = 0; i < lines.size(); i++) {
        sentences[i].ids.push_back(v.cls());
        sentences[i].cut = append(encoder, lines[i], v.sep(), max_length, sentences[i].ids);
        if (!targets.empty())
            sentences[i].target_cut = append(encoder, targets[i], v.sep(), max_target, sentences[i].target);
        sentences[i].name = i;
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

ReadCounts counts_of(const WordPiece& tokenizer, const std::vector<Sentence>& sentences, bool targets) {
    const Vocabulary& v = tokenizer.vocabulary();
    std::vector<char> begins(v.size());
    for (int id = 0; id < v.size(); id++) begins[id] = id == v.unk() || !(v.is_special(id) || continues(v.token(id)));
    ReadCounts counts;
    for (const Sentence& s : sentences) {
        const std::vector<int>& ids = targets ? s.target : s.ids;
        counts.lines += !ids.empty();
        counts.cut += targets ? s.target_cut : s.cut;
        for (int id : ids) counts.words += begins[id], counts.unknown += id == v.unk();
    }
    return counts;
}

SentenceSource::SentenceSource(const std::vector<Sentence>& sentences, std::uint64_t seed)
    : sentences_(sentences), seed_(seed), order_(sentences.size()) {
    if (sentences.empty()) throw BadInput("there is no sentence to train on; give --data a file with text in it");
    shuffle();
}

// Sets order_ to a random order, which depends only on the seed and the epoch.
void SentenceSource::shuffle() {
    std::iota(order_.begin(), order_.end(), 0u);
    Sequence random(seed_, "data.shuffle", epoch_);
    masquerade::shuffle(order_, random);
}

Sentences SentenceSource::take(std::size_t tokens) {
    Sentences taken;
    for (std::size_t used = 0;;) {
        if (next_ == order_.size()) {
            epoch_++;
            next_ = 0;
            shuffle();
            if (!taken.empty()) break;  // ends the batch, which could otherwise contain a sentence twice
        }
        const Sentence& s = sentences_[order_[next_]];
        if (!taken.empty() && used + s.size() > tokens) break;
        used += s.size();
        taken.push_back(&s);
        next_++;
    }
    return taken;
}

void SentenceSource::move_to(const std::vector<std::uint64_t>& numbers) {
    if (numbers.size() != 2) throw BadInput("the checkpoint does not record its position in the data");
    epoch_ = numbers[0];
    next_ = numbers[1];
    if (next_ > order_.size())
        throw BadInput(text("the checkpoint stands at sentence ", next_, " of an epoch, the data has only ",
                            order_.size(), "; resume with the data the run was started with"));
    shuffle();
}

}  // namespace masquerade
