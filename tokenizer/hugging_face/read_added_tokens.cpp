// SPDX-License-Identifier: MIT
#include "tokenizer/hugging_face/read_added_tokens.h"

#include <unordered_map>

namespace masquerade {

std::vector<AddedToken> read_added_tokens(const TokenizerField& list, std::vector<std::string>& tokens,
                                          std::vector<std::string>& notes) {
    std::vector<AddedToken> all;
    const Vocabulary model(tokens);
    std::unordered_map<std::string, std::size_t> seen;
    for (const TokenizerField& item : list.list()) {
        item.note_others({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"},
                         notes);
        AddedToken token;
        token.text = item["content"].string();
        token.id = item["id"].number(0);
        token.special = item["special"].boolean();
        token.single_word = item["single_word"].boolean();
        token.strip_left = item["lstrip"].boolean();
        token.strip_right = item["rstrip"].boolean();
        token.normalised = item["normalized"].boolean();
        if (token.text.empty()) item["content"].fail("some text");
        auto [same, is_new] = seen.insert({token.text, all.size()});
        int known = is_new ? model.id(token.text) : all[same->second].id;
        int expected = known >= 0 ? known : int(tokens.size());
        if (token.id != expected)
            item["id"].fail(std::to_string(expected) + ", " +
                            (known >= 0 ? "the token's own" : "the next free") + ", for " +
                            in_words(token.text));
        token.beyond = model.id(token.text) < 0;
        if (known < 0) tokens.push_back(token.text);
        if (is_new)
            all.push_back(token);
        else
            all[same->second] = token;
    }
    return all;
}

}  // namespace masquerade
