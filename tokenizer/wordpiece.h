// SPDX-License-Identifier: MIT
// WordPiece, as BERT has it: text to token ids by the longest match from the left, and back.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/characters.h"
#include "tokenizer/normalise.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_cache.h"

namespace masquerade {

struct Piece {
    int id;
    int begin, end;  // bytes of the original line, with the stripped marks that follow
    int word;        // counts the words of the line from 0
};

// Turns the bytes of a line's pieces into code points. Bytes that are not UTF-8 do not count.
void to_code_points(std::string_view line, std::vector<Piece>& pieces);

enum class Unknown {
    word,       // a word with a part that matches nothing is one [UNK], as in BERT
    character,  // only the characters that begin no match are, each by itself
};

class WordPiece {
  public:
    struct Options : NormaliseOptions {
        int max_word = 200;  // a longer word, in code points, is one [UNK]; Hugging Face: 100
        Unknown unknown = Unknown::word;
        bool recognise_special = false;  // "[SEP]" written in the text is the token, not a word in brackets
    };

    // The vocabulary must hold [UNK]. `added` are recognised in the text, the special ones among them only with
    // recognise_special; none given: the vocabulary's five special tokens.
    WordPiece(Vocabulary vocabulary, Options options, std::vector<AddedToken> added = {});
    explicit WordPiece(Vocabulary vocabulary) : WordPiece(std::move(vocabulary), Options()) {}

    // Any bytes are text: those that are not UTF-8 are dropped. No [CLS] or [SEP] is added. Safe to call from
    // several threads. For many lines an Encoder is faster. Lines of less than 2 GiB, else TokenizerError.
    std::vector<int> encode(std::string_view line) const;

    // The same ids with where they come from. Pieces of one Hangul syllable may share its bytes.
    std::vector<Piece> encode_pieces(std::string_view line) const;

    // Text a reader would write: pieces joined to words, spaces placed by the rules of English and Chinese
    // (spacing.h). A piece that continues nothing is written as it is, "##" and all. [UNK] and [MASK] are words; other
    // special tokens end a word and leave no trace. encode(decode(ids)) == ids for ids that encode made and that
    // hold no [UNK]. If encoding strips accents, which decomposes every character, the text is in Unicode's NFC;
    // otherwise it is composed as its tokens are.
    std::string decode(const std::vector<int>& ids) const;

    // The line as decode() writes its ids, but unknown words are written as they are normalised, in place of [UNK]:
    // what a run that knew all words could write for it. To be compared with decoded text.
    std::string reading(std::string_view line) const;

    // A line as decoding should write it, from its pieces: its words as they are normalised, one space wherever the
    // line has white space between two of them, composed as decode() composes. An unknown word is "[UNK]".
    std::string spelled(std::string_view line, const std::vector<Piece>& pieces) const;

    const Vocabulary& vocabulary() const { return vocabulary_; }
    const Options& options() const { return options_; }
    const Characters& characters() const { return characters_; }
    const std::vector<AddedToken>& added() const { return added_; }

    // Whether the token is found where it is written in a text.
    bool recognises(const AddedToken& token) const { return options_.recognise_special || !token.special; }

  private:
    friend class Encoder;

    void add_single(int id);
    void prepare_decoding();
    std::string composed(std::string text) const;
    // for each [UNK] its text
    std::string decode(const std::vector<int>& ids, const std::vector<std::string>& unknown) const;

    Vocabulary vocabulary_;
    Options options_;
    Characters characters_;
    std::vector<AddedToken> added_;
    std::vector<bool> beyond_;  // ids of added tokens that are not the model's own: no word is cut into them
    Trie first_, later_;        // pieces that begin a word, and those that continue one, without their "##"
    AddedTokens in_text_;
    std::vector<int> silent_, guarded_;      // ids, sorted: no trace in decoded text; not recognised beside letters
    bool joins_digits_ = false;              // single digits, to numbers
    std::vector<std::string> never_joined_;  // texts that encoding would recognise where a space was left out

    // The ids of characters that are always a word by themselves, in blocks of 256; -1: ask the tries.
    std::vector<std::uint16_t> single_block_;
    std::vector<int> singles_;
};

// Encodes line after line without allocating: it keeps its scratch memory, and remembers how the words it met
// were cut. For one thread; the tokenizer must outlive it.
class Encoder {
  public:
    static constexpr int usual = 14;

    // Remembers the ids of at most 2^remembered words, with 32 bytes each.
    explicit Encoder(const WordPiece& tokenizer, int remembered = usual);
    explicit Encoder(WordPiece&& tokenizer, int remembered = usual) = delete;

    // What WordPiece::encode and encode_pieces give, after what is there.
    void append(std::string_view line, std::vector<int>& ids);
    void append(std::string_view line, std::vector<Piece>& pieces);

  private:
    template <class Plain, class Single, class General>
    void walk(Words& words, Plain plain, Single single, General general) const;
    template <class Emit>
    bool split(std::string_view word, int length, Emit emit) const;
    int single_id(char32_t c) const;
    std::string_view lower(std::string_view bytes);

    void make_room(std::size_t bytes);
    void append_text(std::string_view text);
    void append_word(std::string_view word, int length);
    void append_plain(const PlainWord& word, std::string_view bytes);
    void append_pieces(std::string_view text, int offset, int& word, std::vector<Piece>& pieces);

    const WordPiece& of_;
    Words words_, spanned_;
    WordCache cache_;
    std::string lowered_;  // a plain word
    std::vector<AddedTokens::Part> parts_;
    std::vector<int> ids_;  // room for those of a line
    std::size_t count_ = 0;
};

}  // namespace masquerade
