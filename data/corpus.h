// SPDX-License-Identifier: MIT
// A corpus folder: sentences and pairs in train, dev and test files, and SOURCE.json, which records their origin.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace masquerade {

inline constexpr const char* split_names[3] = {"train", "dev", "test"};

// One line of a corpus. The lines of a group (a source package) are similar, so a group is never divided among splits.
struct Entry {
    std::string group, source, target;  // target: empty for sentences
};

// Returns 0 for train (96 %), 1 for dev (2 %) or 2 for test (2 %). The result depends only on a hash of the group's
// name, so an entry stays in its split when the corpus grows.
int split_of(std::string_view group);

struct Splits {
    std::vector<std::string> lines[3];  // source, or source<TAB>target
};

// Makes splits without duplicate lines. No source or target of dev occurs in train, and no source or target of test
// occurs in train or dev, ignoring ASCII case. Lines are ordered by hash, so the order of the entries does not matter.
Splits make_splits(std::vector<Entry> entries);

struct Corpus {
    std::string name;  // "Debian bookworm package catalogue"
    std::string date;  // YYYY-MM-DD, or a word if there is no date
    // Paths of the train, dev and test files; "" if the corpus has no pairs or translations.
    std::string sentences[3], pairs[3], translations[3];
};

struct CorpusPart {
    std::string stem;  // file name without ending: stem.train.txt, or stem.train.tsv for pairs
    std::string kind;  // "sentences", "pairs" or "translations" (which are also pairs)
    Splits splits;
};

// Writes the files of a corpus and returns a table of their lines, words and bytes. The old SOURCE.json is removed
// first and the new one is written last: if SOURCE.json exists, the folder is complete. `how` is one sentence on how
// the corpus was made.
std::string write_corpus(const std::string& folder, const std::string& name, const std::string& date,
                         const std::string& how, const std::vector<CorpusPart>& parts);

// Reads SOURCE.json. Throws BadInput if the folder holds no corpus.
Corpus read_corpus(const std::string& folder);

}  // namespace masquerade
