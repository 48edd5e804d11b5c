// SPDX-License-Identifier: MIT
// A packed text: the training lines of a text as token ids, in files from which single lines are read. `./tokenize
// --pack` writes one, and training reads one that is larger than memory. docs/packed-text.md describes the files.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/sentences.h"
#include "data/text.h"
#include "engine/io/file.h"

namespace masquerade {

// Counts of the sources, or of the targets, of a packed text. They are known without reading the ids.
struct PackedCounts {
    std::int64_t tokens = 0;
    ReadCounts words;                   // `lines` and `cut` are not used
    std::vector<std::int64_t> lengths;  // lengths[n]: number of lines of n tokens
};

class PackedText {
  public:
    // Whether `path` is the folder of a packed text.
    static bool is_at(const std::string& path);
    // Opens a packed text. Reads the record pack.json, and checks the sizes of all files and the checksums of the small
    // ones; the ids and the index are not read. Throws BadInput if a file is missing or damaged.
    explicit PackedText(const std::string& folder);
    // Reads all files, and throws BadInput if a checksum is wrong.
    void check() const;

    std::uint64_t lines() const { return lines_; }
    bool pairs() const { return pairs_; }
    bool cased() const { return cased_; }
    std::uint64_t hash() const { return hash_; }  // hash of pack.json, which has the checksums of the other files
    const PackedCounts& counts(bool targets) const { return counts_[targets]; }
    int vocabulary() const { return vocabulary_; }  // number of tokens
    WordPiece tokenizer() const;                    // the tokenizer that made the ids
    Text held_out() const;                          // the held-out lines; empty if there are none
    // Appends the first ids of a source or a target to `ids`, at most `most` of them. Returns whether the line has
    // more. Throws BadInput if the files are damaged.
    bool append(std::uint64_t line, bool target, std::size_t most, Tokens& ids) const;

  private:
    struct File {
        std::string name, checksum;
        std::uint64_t bytes;
    };
    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    void check(const File& file) const;

    const std::string folder_;
    std::uint64_t hash_ = 0, lines_ = 0, ids_ = 0;  // ids_: number of all ids
    bool pairs_ = false, cased_ = false;
    std::size_t held_out_ = 0, id_bytes_ = 2;
    int vocabulary_ = 0;
    PackedCounts counts_[2];
    std::vector<File> files_;
    std::optional<FileReader> id_file_, index_file_;
};

// Returns the lines as encode_pairs() does, with targets if `targets` is true. `vocabulary` belongs to the tokenizer of
// the text.
std::shared_ptr<const SentenceList> sentences_of(std::shared_ptr<const PackedText> text, const Vocabulary& vocabulary,
                                                 bool targets, int max_length, int max_target);

// Writes the files of a packed text into the folder `place`.
class PackWriter {
  public:
    PackWriter(const std::string& place, const WordPiece& tokenizer, bool pairs);
    PackWriter(const PackWriter&) = delete;
    ~PackWriter();
    // Adds the ids of a line, without [CLS] and [SEP].
    void add(const Tokens& source, const Tokens& target);
    // Writes the held-out lines and the record. `counts` is about the whole text.
    void finish(const std::string& held_out, std::size_t held_out_lines, const TextCounts& counts);
    std::uint64_t lines() const { return lines_; }

  private:
    class Pieces;
    void add(const Tokens& ids, PackedCounts& counts);
    void write_small(const std::string& name, const std::string& bytes);

    const std::string place_;
    const WordPiece& tokenizer_;
    const WordCounter words_;
    const bool pairs_;
    std::uint64_t lines_ = 0, ids_ = 0;
    PackedCounts counts_[2];
    std::vector<std::pair<std::string, std::unique_ptr<Pieces>>> files_;  // the ids and the index, then small files
};

}  // namespace masquerade
