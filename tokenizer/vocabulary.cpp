// SPDX-License-Identifier: MIT
#include "tokenizer/vocabulary.h"

#include <algorithm>

#include "input/input.h"
#include "input/lines.h"

namespace masquerade {

const char* const special_tokens[5] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

Vocabulary::Vocabulary(Strings tokens) : tokens_(std::move(tokens)) {
    std::size_t slots = 16;
    while (slots < 2 * tokens_.size()) slots *= 2;
    slots_.assign(slots, -1);
    for (int i = 0; i < size(); i++) slots_[slot_of(tokens_[i])] = i;
    for (int i = 0; i < 5; i++) special_[i] = id(special_tokens[i]);
}

// Returns the slot (index in the hash table slots_) of the token or, if the token is absent, the free slot for it.
std::size_t Vocabulary::slot_of(std::string_view token) const {
    std::size_t last = slots_.size() - 1, slot = std::hash<std::string_view>()(token) & last;
    while (slots_[slot] >= 0 && tokens_[slots_[slot]] != token) slot = (slot + 1) & last;
    return slot;
}

int Vocabulary::id(std::string_view token) const { return slots_.empty() ? -1 : slots_[slot_of(token)]; }

const std::string& Vocabulary::token(int id) const {
    if (id < 0 || id >= size())
        throw TokenizerError("token id ", id, " is outside the vocabulary, which has ids 0 to ", size() - 1);
    return tokens_[id];
}

bool Vocabulary::is_special(int id) const { return id >= 0 && std::count(special_, special_ + 5, id) > 0; }

Vocabulary Vocabulary::load(const std::string& path) {
    const std::string bytes = read_input<TokenizerError>(path, std::size_t(1) << 30);
    Strings tokens;
    TextLines lines(bytes);
    for (std::string_view line; lines.next(line);) tokens.emplace_back(line);
    if (tokens.empty()) throw TokenizerError("the vocabulary ", path, " is empty: expected one token a line");
    return Vocabulary(std::move(tokens));
}

std::string Vocabulary::lines() const {
    std::string all;
    for (const std::string& token : tokens_) {
        if (token.find('\n') != std::string::npos)
            throw TokenizerError("a token with a line feed in it cannot be saved as a line");
        all += token + '\n';
    }
    return all;
}

}  // namespace masquerade
