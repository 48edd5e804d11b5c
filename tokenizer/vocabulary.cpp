// SPDX-License-Identifier: MIT
#include "tokenizer/vocabulary.h"

#include <algorithm>

#include "input/input.h"
#include "input/lines.h"

namespace masquerade {

const char* const special_tokens[5] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

Vocabulary::Vocabulary(Strings tokens) : tokens_(std::move(tokens)) {
    ids_.reserve(tokens_.size());
    for (int i = 0; i < size(); i++) ids_[tokens_[i]] = i;
    find_special();
}

void Vocabulary::find_special() {
    for (int i = 0; i < 5; i++) special_[i] = id(special_tokens[i]);
}

int Vocabulary::add(const std::string& token) {
    const auto [place, is_new] = ids_.try_emplace(token, size());
    if (is_new) {
        tokens_.push_back(token);
        find_special();
    }
    return place->second;
}

int Vocabulary::id(std::string_view token) const {
    const auto found = ids_.find(std::string(token));
    return found == ids_.end() ? -1 : found->second;
}

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
