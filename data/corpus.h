// SPDX-License-Identifier: MIT
// A corpus folder: sentences and pairs in train, dev and test files, and SOURCE.json, which says where they
// come from.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace masquerade {

inline constexpr const char* split_names[3] = {"train", "dev", "test"};

// One line of a corpus. Lines of one group (a source package) are alike and never part.
struct Entry {
    std::string group, source, target;  // target is empty where sentences have none
};

// 0 train (96 %), 1 dev (2 %) or 2 test (2 %), by hash of the group's name alone: an entry stays where it
// is when the corpus grows.
int split_of(std::string_view group);

struct Splits {
    std::vector<std::string> lines[3];  // source, or source<TAB>target
};

// Distinct lines; no source and no target of dev occurs in train, and none of test in train or dev,
// whatever the case of their letters (ASCII). The order is by hash of the line, whatever the order of the
// entries.
Splits make_splits(std::vector<Entry> entries);

struct CorpusFile {
    std::string name;
    std::uint64_t lines = 0, words = 0, bytes = 0;
    std::uint64_t hash = 0;  // FNV-1a of its bytes
};

struct Corpus {
    std::string name;                    // "Debian bookworm package catalogue"
    std::string date;                    // YYYY-MM-DD, or a word where there is none
    std::string how;                     // one sentence: how it was made
    std::string sentences[3], pairs[3];  // paths of train, dev and test; pairs are empty where there are none
    std::vector<CorpusFile> files;
};

// Writes the files of a folder. The old SOURCE.json goes first and the new one comes last: where it is, the
// folder is whole.
class CorpusWriter {
  public:
    CorpusWriter(std::string folder, std::string name, std::string date, std::string how);
    // stem.train.extension and so on; extension is txt (sentences) or tsv (pairs).
    void add(const std::string& stem, const std::string& extension, const Splits& splits);
    Corpus finish();

  private:
    std::string folder_;
    Corpus corpus_;
};

// What SOURCE.json says. Throws BadInput when the folder holds no corpus.
Corpus read_corpus(const std::string& folder);

// The files as a table: lines, words, bytes.
std::string table_of(const Corpus& corpus);

}  // namespace masquerade
