// SPDX-License-Identifier: MIT
// A corpus folder: sentences and pairs in train, dev and test files, and SOURCE.json, which records their origin.
#pragma once
#include "data/text.h"

namespace masquerade {

inline constexpr const char* split_names[3] = {"train", "dev", "test"};

// One line of a corpus. Lines of one group (such as the packages of one source package) can be similar to each other,
// so all lines of a group are put in the same split.
struct Entry {
    std::string group, source, target;  // target: empty if the entry is a sentence, not a pair
};

// Returns the split of a group: 0 for train (96 % of groups), 1 for dev (2 %) or 2 for test (2 %). The split depends
// only on a hash of the group's name, so a group stays in its split when the corpus grows.
int split_of(std::string_view group);

struct Splits {
    Strings lines[3];  // the lines of train, dev and test; a line is source, or source<TAB>target
};

// Makes splits without duplicate lines. Drops each entry of dev whose source or target occurs in train, and each
// entry of test whose source or target occurs in train or dev. Texts that differ only in ASCII case count as equal.
// The lines of a split are sorted by hash, so the order of the entries does not matter.
Splits make_splits(std::vector<Entry> entries);

struct Corpus {
    std::string name;  // such as "Debian bookworm package catalogue"
    std::string date;  // YYYY-MM-DD, or words such as "unknown" if there is no date
    // Paths of the train, dev and test files; "" if the corpus has no files of this kind.
    std::string sentences[3], pairs[3], translations[3];
};

struct CorpusPart {
    std::string stem;  // first part of the file names: stem.train.txt, or stem.train.tsv for pairs
    std::string kind;  // "sentences", "pairs" or "translations" (pairs of a text and its translation)
    Splits splits;
};

// Writes the files of a corpus and returns a table with the number of lines, words and bytes of each file. The old
// SOURCE.json is removed first and the new one is written last, so a folder that contains SOURCE.json is complete.
// `how` describes in one sentence how the corpus was made.
std::string write_corpus(const std::string& folder, const std::string& name, const std::string& date,
                         const std::string& how, const std::vector<CorpusPart>& parts);

// Reads SOURCE.json in a corpus folder. Throws BadInput if SOURCE.json is missing or damaged.
Corpus read_corpus(const std::string& folder);

}  // namespace masquerade
