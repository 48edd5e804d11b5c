// SPDX-License-Identifier: MIT
// WordPiece, as in BERT: splits each word of a text into pieces (from left to right, always the longest piece that
// matches), and decodes the ids of pieces to text.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/characters.h"
#include "tokenizer/code_point_table.h"
#include "tokenizer/normalise.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_cache.h"

namespace masquerade {

struct Piece {
    int id;
    int begin, end;  // bytes [begin, end) of the original line, including marks that were stripped after the piece
    int word;        // index of the word in the line, from 0
};

// Converts the byte offsets of pieces to code point offsets. Bytes that are not UTF-8 do not count.
void to_code_points(std::string_view line, std::vector<Piece>& pieces);

enum class Unknown {
    word,       // if any part of a word matches no piece, the word is one [UNK], as in BERT
    character,  // each character at which no piece matches becomes an [UNK]
};

class WordPiece {
  public:
    struct Options : NormaliseOptions {
        int max_word = 200;  // words of more code points become one [UNK]; Hugging Face's default is 100
        Unknown unknown = Unknown::word;
        bool recognise_special = false;  // whether "[SEP]" in the text is read as the special token
    };

    // The vocabulary must contain [UNK]. Tokens in `added` are recognised in the text, but special tokens only if
    // options.recognise_special is true. If `added` is empty, the special tokens of the vocabulary are used instead.
    WordPiece(Vocabulary vocabulary, Options options, std::vector<AddedToken> added = {});
    explicit WordPiece(Vocabulary vocabulary) : WordPiece(std::move(vocabulary), Options()) {}

    // Encodes a line. Bytes that are not UTF-8 are dropped. No [CLS] or [SEP] is added. Safe to call from several
    // threads. For many lines, an Encoder is faster. Throws TokenizerError if the line has 2 GiB or more.
    Tokens encode(std::string_view line) const;

    // Like encode(), but also returns the bytes of the line from which each id comes. If several pieces come from one
    // character that normalisation decomposes, such as a Hangul syllable, each piece has the bytes of the whole
    // character.
    std::vector<Piece> encode_pieces(std::string_view line) const;

    // Returns text as a writer would write it: joins pieces to words and places spaces by rules for English and Chinese
    // (spacing.h). A continuation piece with no word before it is written with its "##". [UNK] and [MASK] count as
    // words; the other special tokens are not written, but end a word.
    //
    // If encode() returned the ids, and if they contain neither [UNK] nor a token that decode() does not write, then
    // encode(decode(ids)) == ids. If encoding strips accents, the tokens consist of decomposed characters; decode()
    // then composes the text to NFC, unless that would change which added tokens the text contains. If encoding does
    // not strip accents, decode() leaves composed and decomposed characters as they are in the tokens.
    // unknown[i] is the text to write for the i-th [UNK] in ids.
    std::string decode(const Tokens& ids, const Strings& unknown = {}) const;

    // Encodes and decodes a line, but writes unknown words in their normalised form instead of [UNK]. The result is the
    // best that a model with an unlimited vocabulary could write, and serves as a reference for decoded text.
    std::string reading(std::string_view line) const;

    // Returns the text that a perfect decoder would make of `pieces`, which encode_pieces(line) returned: the
    // normalised words, with one space wherever the line has white space between two words, composed to NFC as by
    // decode(). An unknown word is written as "[UNK]".
    std::string spelled(std::string_view line, const std::vector<Piece>& pieces) const;

    const Vocabulary& vocabulary() const { return vocabulary_; }
    const Options& options() const { return options_; }
    const Characters& characters() const { return characters_; }
    const std::vector<AddedToken>& added() const { return added_; }
    const AddedTokens& in_text() const { return in_text_; }  // those of added() that are recognised

    // Whether the token is recognised in text.
    bool recognises(const AddedToken& token) const { return options_.recognise_special || !token.special; }

  private:
    friend class Encoder;

    void add_single(int id);
    void prepare_decoding();
    std::string composed(std::string text) const;

    Vocabulary vocabulary_;
    Options options_;
    Characters characters_;
    std::vector<AddedToken> added_;
    Trie first_{{}}, later_{{}};  // first_: pieces that begin a word; later_: pieces that continue a word, without "##"
    AddedTokens in_text_;
    // silent_: ids of the tokens that decode() does not write. guarded_: ids of the added tokens with single_word
    // that are recognised in text.
    std::set<int> silent_, guarded_;
    bool joins_digits_ = false;  // whether decode() joins single digits to numbers
    Strings never_joined_;       // texts of added tokens, which must not arise when decode() joins words

    // singles_[c] is 1 + the id of the token c if c is always a word by itself, normalisation does not change c, and
    // the vocabulary has the token c without AddedToken::beyond. Otherwise, singles_[c] is 0, and c is looked up in the
    // tries.
    CodePointTable<int> singles_;
};

// Encodes lines faster than WordPiece: it reuses its memory and caches the ids of words. Not thread-safe. The tokenizer
// must outlive the encoder.
class Encoder {
  public:
    static constexpr int usual = 14;

    // Caches the ids of at most 2^remembered words. Each word takes 32 bytes.
    explicit Encoder(const WordPiece& tokenizer, int remembered = usual);
    explicit Encoder(WordPiece&& tokenizer, int remembered = usual) = delete;

    // Like WordPiece::encode() and encode_pieces(), but append the result to `ids` or `pieces`.
    void append(std::string_view line, Tokens& ids);
    void append(std::string_view line, std::vector<Piece>& pieces);

  private:
    template <class Plain, class Single, class General>
    void walk(Words& words, Plain plain, Single single, General general) const;
    template <class Emit>
    bool split(std::string_view word, int length, Emit emit) const;
    std::string_view lower(std::string_view bytes);

    void make_room(std::size_t bytes);
    void append_text(std::string_view text);
    void append_word(std::string_view word, int length);
    void append_plain(const PlainWord& word, std::string_view bytes);
    void append_pieces(std::string_view text, int offset, int& word, std::vector<Piece>& pieces);

    const WordPiece& of_;
    Words words_, spanned_;
    WordCache cache_;
    std::string lowered_;  // the result of lower()
    Tokens ids_;           // the first count_ elements are the ids of the current line
    std::size_t count_ = 0;
};

}  // namespace masquerade
