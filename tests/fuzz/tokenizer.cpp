// SPDX-License-Identifier: MIT
// Properties of the tokenizer that must hold for arbitrary bytes.
#include <algorithm>
#include <exception>

#include "input/utf8.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/subject.h"
#include "tests/fuzz/target.h"
#include "tokenizer/canonical.h"

namespace masquerade::fuzz {

namespace {

std::size_t without_unknown = 0;  // number of inputs

bool is_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = decode_utf8(text, at).length;
        if (length == 0) return false;
        at += length;
    }
    return true;
}

class Check {
  public:
    Check(const Subject& subject, std::string_view text)
        : subject_(subject), tokenizer_(subject.tokenizer), characters_(tokenizer_.characters()), text_(text) {}

    void all() {
        ids_ = tokenizer_.encode(text_);
        pieces_ = tokenizer_.encode_pieces(text_);
        find_characters();
        ids();
        spans();
        coverage();
        words_by_themselves();
        code_points();
        decoding();
        any_ids_decode();
    }

  private:
    struct At {
        std::size_t at;
        CodePoint c;
    };

    const WordPiece::Options& options() const { return tokenizer_.options(); }

    bool replaced(char32_t c) const { return options().replace.count(c) > 0; }

    void find_characters() {
        starts_.assign(text_.size() + 1, true);
        for (std::size_t at = 0; at < text_.size();) {
            CodePoint c = decode_utf8(text_, at);
            if (c.length > 0) found_.push_back({at, c});
            for (std::size_t i = 1; i < c.length; i++) starts_[at + i] = false;
            at += c.step();
        }
    }

    // Returns the ids by the definition: splits the text into words, and finds the longest match from the left by a
    // look-up for every length.
    std::vector<int> by_definition(std::string_view text) const {
        constexpr std::size_t longest = 64;  // longer than any token of the vocabulary
        const Vocabulary& v = tokenizer_.vocabulary();
        std::vector<int> ids;
        for (Words words(text, characters_); words.next();) {
            std::string_view word = words.text();
            std::vector<int> cut;
            bool whole = words.length() <= options().max_word;
            for (std::size_t begin = 0; begin < word.size() && whole;) {
                std::size_t length = std::min(longest, word.size() - begin);
                int id = -1;
                for (; length > 0; length--) {
                    std::string part(word.substr(begin, length));
                    if (begin > 0) part = "##" + part;
                    if (begin == 0 && continues(part)) continue;
                    if ((id = v.id(part)) >= 0) break;
                }
                if (id < 0) {
                    whole = options().unknown == Unknown::character;
                    id = v.unk();
                    length = decode_utf8(word, begin).length;
                }
                cut.push_back(id);
                begin += length;
            }
            if (!whole) cut = {v.unk()};
            ids.insert(ids.end(), cut.begin(), cut.end());
        }
        return ids;
    }

    void ids() {
        for (int id : ids_) require(id >= 0 && id < tokenizer_.vocabulary().size(), "an id is in the vocabulary");
        Encoder encoder(tokenizer_, 2);  // it caches so few words that different words share a place of the cache
        std::size_t half = text_.size() / 2;
        std::vector<int> again;
        encoder.append(text_.substr(half), again);
        again = {-7};
        encoder.append(text_, again);
        require(again[0] == -7, "an encoder keeps what is there");
        again.erase(again.begin());
        require_equal(again, ids_, "an encoder that remembers other lines gives the same ids");
        again.clear();
        encoder.append(text_, again);
        require_equal(again, ids_, "an encoder gives the same ids the second time");
        again.clear();
        for (const Piece& piece : pieces_) again.push_back(piece.id);
        require_equal(again, ids_, "pieces have the ids");
        std::vector<Piece> pieces;
        encoder.append(text_, pieces);
        auto same = [](const Piece& p, const Piece& q) {
            return p.id == q.id && p.begin == q.begin && p.end == q.end && p.word == q.word;
        };
        require(std::equal(pieces.begin(), pieces.end(), pieces_.begin(), pieces_.end(), same),
                "an encoder that remembers other lines gives the same pieces");
        if (options().recognise_special) return;
        require_equal(ids_, by_definition(text_), "the ids are those of the definition");
        std::string spaced = std::string(text_.substr(0, half)) + " " + std::string(text_.substr(half));
        again = tokenizer_.encode(text_.substr(0, half));
        std::vector<int> rest = tokenizer_.encode(text_.substr(half));
        again.insert(again.end(), rest.begin(), rest.end());
        require_equal(tokenizer_.encode(spaced), again, "what a space parts is encoded part by part");
    }

    void spans() {
        Piece last{0, 0, 0, -1};
        for (const Piece& piece : pieces_) {
            require(piece.begin >= 0 && std::size_t(piece.end) <= text_.size(), "a piece lies in the line");
            require(piece.begin < piece.end || (piece.begin == piece.end && subject_.odd_tokens), "a piece has bytes");
            require(piece.begin >= last.begin && piece.end >= last.end, "pieces do not go back");
            require(piece.word == last.word || piece.word == last.word + 1, "words are counted one by one");
            require(starts_[std::size_t(piece.begin)] && starts_[std::size_t(piece.end)],
                    "a piece ends where characters do");
            if (piece.begin < last.end && !subject_.odd_tokens) {
                const char32_t c = decode_utf8(text_, std::size_t(piece.begin)).value;
                Character what = characters_[c];
                require(what.is(Character::syllable) || what.is(Character::expands) || replaced(c),
                        "pieces share bytes only of a character that becomes several");
            }
            last = piece;
        }
    }

    void coverage() {
        std::vector<int> open(text_.size() + 1, 0);
        for (const Piece& piece : pieces_) open[std::size_t(piece.begin)]++, open[std::size_t(piece.end)]--;
        for (std::size_t i = 1; i < open.size(); i++) open[i] += open[i - 1];
        auto covered = [&](const At& at) {
            for (int i = 0; i < at.c.length; i++)
                if (open[at.at + std::size_t(i)] <= 0) return false;
            return true;
        };
        bool in_word = false;  // whether a stripped mark would belong to a word
        for (const At& at : found_) {
            Character what = characters_[at.c.value];
            if (what.is(Character::space)) in_word = false;
            if (what.is(Character::drop) || what.is(Character::space) || replaced(at.c.value)) continue;
            if (!what.is(Character::mark)) {
                require(covered(at), "what is neither space nor dropped is in a piece");
                in_word = true;
            } else if (in_word && !options().recognise_special) {
                require(covered(at), "a stripped mark is in the piece of what it follows");
            }
        }
    }

    void words_by_themselves() {
        if (options().recognise_special || !options().replace.empty()) return;
        for (std::size_t begin = 0, end; begin < pieces_.size(); begin = end) {
            std::vector<int> ids;
            for (end = begin; end < pieces_.size() && pieces_[end].word == pieces_[begin].word; end++)
                ids.push_back(pieces_[end].id);
            std::size_t first = std::size_t(pieces_[begin].begin), last = std::size_t(pieces_[end - 1].end);
            std::string_view word = text_.substr(first, last - first);
            // The lower case of this letter depends on what precedes the word.
            if (word.find("Σ") != word.npos) continue;
            require_equal(tokenizer_.encode(word), ids, "the bytes of a word give its ids");
        }
    }

    void code_points() {
        std::vector<Piece> pieces = pieces_;
        to_code_points(text_, pieces);
        auto characters_before = [&](int byte) {
            return std::count_if(found_.begin(), found_.end(), [&](const At& at) { return int(at.at) < byte; });
        };
        for (std::size_t i = 0; i < pieces.size() && i < 100; i++)
            require(pieces[i].begin == characters_before(pieces_[i].begin) &&
                        pieces[i].end == characters_before(pieces_[i].end),
                    "code points are counted right");
    }

    void decoding() {
        std::string text = tokenizer_.decode(ids_);
        require(is_utf8(text), "decoded text is UTF-8");
        composed(text);
        const Vocabulary& v = tokenizer_.vocabulary();
        auto silent = [&](int id) {
            bool special = v.is_special(id);
            for (const AddedToken& added : tokenizer_.added()) special |= added.id == id && added.special;
            return special && id != v.mask();
        };
        for (int id : ids_)
            if (id == v.unk() || silent(id)) return;
        // Two marks that are not stripped may be in an order that was possible only because of a stripped mark between
        // them.
        auto stays = [&](const At& at) {
            Character what = characters_[at.c.value];
            return what.is(Character::nonstarter) && !what.is(Character::mark);
        };
        if (std::count_if(found_.begin(), found_.end(), stays) > 1) return;
        without_unknown++;
        require_equal(tokenizer_.encode(text), ids_, "decoded text gives the same ids: " + text);
    }

    // Decodes ids that are made from the text: two bytes for each id.
    void any_ids_decode() {
        std::vector<int> ids;
        for (std::size_t i = 0; i + 1 < text_.size() && i < 200; i += 2) {
            int id = (unsigned char)text_[i] * 256 + (unsigned char)text_[i + 1];
            ids.push_back(id % tokenizer_.vocabulary().size());
        }
        const std::string text = tokenizer_.decode(ids);
        require(is_utf8(text), "any ids decode to UTF-8");
        composed(text);
    }

    // Checks that decoded text is in NFC. The check is left out for the rules of the Hugging Face library, which know
    // fewer compositions. It is also left out if there are replacements or odd tokens, because decoding never makes a
    // replaced character or such a token.
    void composed(const std::string& text) {
        if (!options().strips() || options().rules != Rules::google || !options().replace.empty() ||
            subject_.odd_tokens)
            return;
        require(text == nfc(text), "if encoding decomposes, decoded text is in NFC");
    }

    const Subject& subject_;
    const WordPiece& tokenizer_;
    const Characters& characters_;
    std::string_view text_;
    std::vector<int> ids_;
    std::vector<Piece> pieces_;
    std::vector<At> found_;
    std::vector<bool> starts_;  // for each byte, whether a character, or an invalid byte, begins there
};

std::string broken_property(const std::string& input) {
    if (input.empty()) return "";
    try {
        Check(subject((unsigned char)input[0]), std::string_view(input).substr(1)).all();
    } catch (const Broken& broken) {
        return broken.property;
    } catch (const std::exception& error) {
        return std::string("nothing is thrown: ") + error.what();
    }
    return "";
}

// Returns a new text, or an earlier text with changes.
std::string make_text(Grammar& grammar) {
    constexpr std::size_t kept = 512;
    static std::vector<std::string> texts(1, "");
    std::string text = grammar.below(2) == 0
                           ? grammar.text()
                           : grammar.mutated(texts[grammar.below(texts.size())], texts[grammar.below(texts.size())]);
    if (text.size() < 4000) {
        if (texts.size() < kept) texts.emplace_back();
        texts[grammar.below(texts.size())] = text;
    }
    return char(grammar.below(subject_count())) + text;
}

std::string told() { return std::to_string(without_unknown) + " without [UNK]"; }

}  // namespace

const std::vector<Target>& targets() {
    static const std::vector<Target> all = [] {
        std::vector<Target> made = reader_targets();
        made.insert(made.begin(), {"tokenizer", "tokenizer", 1, make_text, broken_property,
                                   [] { return std::vector<std::string>(); }, told});
        return made;
    }();
    return all;
}

}  // namespace masquerade::fuzz
