// SPDX-License-Identifier: MIT
// WordPiece, as BERT has it: text to token ids by the longest match from the left, and back.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/normalise.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

struct Piece {
    int id;
    int begin, end;  // bytes of the original line, with the stripped marks that follow
    int word;        // counts the words of the line from 0
};

class WordPiece {
  public:
    struct Options {
        bool lower = true;           // lower-case and strip accents: an uncased vocabulary
        int max_word = 200;          // a longer word, in code points, is one [UNK]
        bool single_digits = false;  // every digit 0-9 a token of its own
    };

    // The vocabulary must hold [UNK].
    explicit WordPiece(Vocabulary vocabulary, Options options);
    explicit WordPiece(Vocabulary vocabulary) : WordPiece(std::move(vocabulary), Options()) {}

    // Any bytes are text: those that are not UTF-8 are dropped. No [CLS] or [SEP] is added, and those written
    // in the text are not recognised. Safe to call from several threads.
    std::vector<int> encode(std::string_view line) const;

    // The same ids with where they come from. Pieces of one Hangul syllable may share its bytes.
    std::vector<Piece> encode_pieces(std::string_view line) const;

    // Text a reader would write: pieces joined to words, spaces placed by the rules of English and Chinese
    // (decode.cpp). [PAD], [CLS] and [SEP] leave no trace. encode(decode(ids)) == ids for ids that encode
    // made and that hold no [UNK].
    std::string decode(const std::vector<int>& ids) const;

    const Vocabulary& vocabulary() const { return vocabulary_; }
    const Options& options() const { return options_; }

  private:
    template <class Emit>
    bool split(const Words& word, Emit emit) const;

    Vocabulary vocabulary_;
    Options options_;
    Trie first_, later_;  // pieces that begin a word, and those that continue one, without their "##"
};

}  // namespace masquerade
