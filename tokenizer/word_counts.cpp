// SPDX-License-Identifier: MIT
#include "tokenizer/word_counts.h"

#include <algorithm>
#include <atomic>

#include "tokenizer/threads.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

void WordCounts::add(std::string_view line) {
    Words words(*characters_);
    add_line(line, words);
}

// Each thread counts separately; the counts are added up at the end, so that the threads need no locks.
void WordCounts::add_text(std::string_view text, int threads) {
    constexpr std::size_t part_bytes = 1 << 16;  // number of bytes that a thread takes at a time
    const std::size_t parts = (text.size() + part_bytes - 1) / part_bytes;
    const std::size_t of_use = std::clamp(parts, std::size_t(1), std::size_t(std::max(threads, 1)));
    std::vector<WordCounts> others(of_use - 1, WordCounts(characters_, tokens_));
    std::atomic<std::size_t> taken{0};
    share_out(of_use, parts, [&] {
        const std::size_t mine = taken++;
        WordCounts& counts = mine == 0 ? *this : others[mine - 1];
        return [&counts, text](std::size_t part) {
            Words words(*counts.characters_);
            // Counts the lines that begin in this part of the text, including a line that ends in a later part.
            std::size_t begin = part * part_bytes, last = std::min(text.size(), begin + part_bytes);
            if (begin > 0) begin = std::min(text.substr(0, last).find('\n', begin - 1), last) + 1;
            while (begin < last) {
                std::size_t end = std::min(text.find('\n', begin), text.size());
                counts.add_line(text.substr(begin, end - begin), words);
                begin = end + 1;
            }
        };
    });
    for (WordCounts& other : others) {
        add_all(other);
        other = WordCounts(characters_, tokens_);
    }
}

void WordCounts::add_line(std::string_view line, Words& words) {
    lines_++;
    bytes_ += line.size();
    if (!tokens_ || !tokens_->may_hold(line)) return add_words(line, words);
    for (const AddedTokens::Part& part : tokens_->split(line)) {
        if (part.id < 0) {
            add_words(line.substr(part.begin, part.end - part.begin), words);
        } else {
            words_++;
            added_[part.id]++;
        }
    }
}

void WordCounts::add_words(std::string_view text, Words& words) {
    for (words.begin(text); words.next();) add_word(words.text(), 1);
}

// Returns the slot of the word or, if the word is new, the free slot for it.
WordCounts::Slot& WordCounts::slot_of(std::string_view word, std::uint64_t hash) {
    std::size_t last = slots_.size() - 1, at = hash & last;
    for (; slots_[at].entry != 0; at = (at + 1) & last)
        if (slots_[at].hash == hash >> 32 && text_of(entries_[slots_[at].entry - 1]) == word) break;
    return slots_[at];
}

void WordCounts::add_word(std::string_view word, std::int64_t by) {
    words_ += by;
    const std::uint64_t hash = std::hash<std::string_view>()(word);
    Slot& slot = slot_of(word, hash);
    if (slot.entry != 0) {
        entries_[slot.entry - 1].count += by;
        return;
    }
    if (entries_.size() == UINT32_MAX) throw TokenizerError("the text has more than ", UINT32_MAX, " different words");
    entries_.push_back({texts_.size(), word.size(), by});
    texts_ += word;
    slot = {std::uint32_t(hash >> 32), std::uint32_t(entries_.size())};
    if (2 * entries_.size() <= slots_.size()) return;
    slots_.assign(2 * slots_.size(), {});
    for (std::size_t i = 0; i < entries_.size(); i++) {
        const std::string_view text = text_of(entries_[i]);
        const std::uint64_t its_hash = std::hash<std::string_view>()(text);
        slot_of(text, its_hash) = {std::uint32_t(its_hash >> 32), std::uint32_t(i + 1)};
    }
}

void WordCounts::add_all(const WordCounts& other) {
    other.each([&](std::string_view word, std::int64_t count) { add_word(word, count); });
    for (const auto& [id, count] : other.added_) {
        added_[id] += count;
        words_ += count;
    }
    lines_ += other.lines_;
    bytes_ += other.bytes_;
}

}  // namespace masquerade
