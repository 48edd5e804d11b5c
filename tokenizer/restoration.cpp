// SPDX-License-Identifier: MIT
#include "tokenizer/restoration.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace masquerade {

namespace {

bool has_space(std::string_view text, const Characters& characters) {
    for (std::size_t i = 0; i < text.size();) {
        CodePoint c = decode_utf8(text, i);
        if (c.length > 0 && characters[c.value].is(Character::space)) return true;
        i += std::size_t(std::max(c.length, 1));
    }
    return false;
}

std::string spelled(const WordPiece& tokenizer, std::string_view line, const std::vector<Piece>& pieces) {
    std::string text;
    for (std::size_t i = 0; i < pieces.size(); i++) {
        const std::string& token = tokenizer.vocabulary().token(pieces[i].id);
        bool inside = i > 0 && pieces[i].word == pieces[i - 1].word;
        if (i > 0 && !inside && pieces[i].begin > pieces[i - 1].end) {
            std::size_t end = std::size_t(pieces[i - 1].end);
            if (has_space(line.substr(end, std::size_t(pieces[i].begin) - end), tokenizer.characters()))
                text += ' ';
        }
        text.append(token, inside && continues(token) ? 2 : 0);
    }
    return text;
}

}  // namespace

std::string spelled(const WordPiece& tokenizer, std::string_view line) {
    return spelled(tokenizer, line, tokenizer.encode_pieces(line));
}

Restoration restoration(const WordPiece& tokenizer, const std::vector<std::string>& lines,
                        const Failed& failed) {
    Restoration result;
    Encoder encoder(tokenizer);
    std::vector<Piece> pieces;
    std::vector<int> ids;
    for (const std::string& line : lines) {
        result.lines++;
        pieces.clear();
        ids.clear();
        encoder.append(line, pieces);
        for (const Piece& piece : pieces) ids.push_back(piece.id);
        if (std::count(ids.begin(), ids.end(), tokenizer.vocabulary().unk()) > 0) {
            result.unknown++;
            continue;
        }
        std::string wanted = spelled(tokenizer, line, pieces), got = tokenizer.decode(ids);
        if (got == wanted)
            result.exact++;
        else if (failed)
            failed(wanted, got);
    }
    return result;
}

}  // namespace masquerade
