// SPDX-License-Identifier: MIT
#include "tokenizer/simplify.h"

#include "tokenizer/characters.h"
#include "tokenizer/utf8.h"

namespace masquerade {

namespace {

// As the token is written: in lower case and without marks, U+2260 would be an equals sign, which is
// punctuation.
Characters as_written() {
    NormaliseOptions options;
    options.lower = false;
    return Characters(options);
}

bool holds_what_stands_alone(std::string_view token, const Characters& characters) {
    std::size_t at = continues(token) ? 2 : 0;
    CodePoint c = token.empty() ? CodePoint{0, 0} : decode_utf8(token, 0);
    if (std::size_t(c.length) == token.size()) return false;
    for (; at < token.size(); at += std::size_t(c.length > 0 ? c.length : 1)) {
        c = decode_utf8(token, at);
        if (c.length > 0 && characters[c.value].is(Character::alone)) return true;
    }
    return false;
}

}  // namespace

Simplified simplify(const Vocabulary& vocabulary, const std::vector<std::string>& first) {
    const Characters characters = as_written();
    std::vector<bool> taken(std::size_t(vocabulary.size()));
    std::vector<std::string> tokens;
    std::vector<int> keep_tokens;
    auto take = [&](int id) {
        taken[std::size_t(id)] = true;
        tokens.push_back(vocabulary.token(id));
        keep_tokens.push_back(id);
    };
    for (const std::string& token : first) {
        int id = vocabulary.id(token);
        if (id < 0)
            throw TokenizerError("the vocabulary has no token \"" + token + "\", which is to come first");
        if (taken[std::size_t(id)])
            throw TokenizerError("the token \"" + token + "\" is to come first twice");
        take(id);
    }
    for (int id = 0; id < vocabulary.size(); id++) {
        const std::string& token = vocabulary.token(id);
        if (vocabulary.id(token) == id && !taken[std::size_t(id)] &&
            !holds_what_stands_alone(token, characters))
            take(id);
    }
    return {Vocabulary(std::move(tokens)), std::move(keep_tokens)};
}

}  // namespace masquerade
