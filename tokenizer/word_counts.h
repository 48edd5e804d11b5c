// SPDX-License-Identifier: MIT
// Counts how often each word occurs in a text, for vocabulary training and the vocabulary report.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/wordpiece.h"

namespace masquerade {

// Memory grows with the number of distinct words, not with the length of the text.
class WordCounts {
  public:
    explicit WordCounts(const NormaliseOptions& options = {})
        : WordCounts(std::make_shared<const Characters>(options), {}) {}
    // Finds added tokens, as the tokenizer does, and counts them apart from the words between them.
    explicit WordCounts(const WordPiece& tokenizer)
        : WordCounts(std::make_shared<const Characters>(tokenizer.options()),
                     std::make_shared<const AddedTokens>(tokenizer.in_text())) {}

    // Counts the words of one line.
    void add(std::string_view line);

    // Counts the words of all lines of a text. Lines end with LF; the last line may lack its LF. The counts depend
    // neither on the number of threads nor on their timing.
    void add_text(std::string_view text, int threads = 1);

    // Calls use(word, count) for each distinct word, in no particular order. A word is normalised, not empty, and may
    // have any length.
    template <class Use>
    void each(Use use) const {
        for (const Entry& entry : entries_) use(text_of(entry), entry.count);
    }

    const std::map<int, std::int64_t>& added() const { return added_; }  // how often each added token occurs, by id
    std::size_t different() const { return entries_.size() + added_.size(); }
    std::int64_t words() const { return words_; }  // with the added tokens
    std::int64_t lines() const { return lines_; }
    std::int64_t bytes() const { return bytes_; }  // total size of the original lines, without LF
    const Characters& characters() const { return *characters_; }

  private:
    struct Entry {
        std::size_t begin, length;  // the word: bytes [begin, begin + length) of texts_
        std::int64_t count;
    };
    struct Slot {
        // hash: the upper 32 bits of the word's hash; entry: index into entries_ + 1, or 0 if the slot is free
        std::uint32_t hash = 0, entry = 0;
    };

    WordCounts(std::shared_ptr<const Characters> characters, std::shared_ptr<const AddedTokens> tokens)
        : characters_(std::move(characters)), tokens_(std::move(tokens)), slots_(1024) {}

    void add_line(std::string_view line, Words& words);
    void add_words(std::string_view text, Words& words);
    void add_word(std::string_view word, std::int64_t by);
    void add_all(const WordCounts& other);
    Slot& slot_of(std::string_view word, std::uint64_t hash);
    std::string_view text_of(const Entry& entry) const {
        return std::string_view(texts_).substr(entry.begin, entry.length);
    }

    std::shared_ptr<const Characters> characters_;
    std::shared_ptr<const AddedTokens> tokens_;  // null if none is to be found
    std::map<int, std::int64_t> added_;
    std::string texts_;  // the distinct words, one after the other
    std::vector<Entry> entries_;
    std::vector<Slot> slots_;  // hash table (open addressing); its size is a power of two; at most half full
    std::int64_t words_ = 0, lines_ = 0, bytes_ = 0;
};

}  // namespace masquerade
