// SPDX-License-Identifier: MIT
// A corpus folder: sentences and pairs in train, dev and test files, and SOURCE.json, which says where they
// come from.
#pragma once
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

struct Corpus {
    std::string name;  // "Debian bookworm package catalogue"
    std::string date;  // YYYY-MM-DD, or a word where there is none
    // paths of train, dev and test; of the last two empty where there are none
    std::string sentences[3], pairs[3], translations[3];
};

struct CorpusPart {
    std::string stem;  // of its files: stem.train.txt, or stem.train.tsv of pairs
    std::string kind;  // sentences, pairs or translations, which are pairs as well
    Splits splits;
};

// Writes the files of a folder and returns a table of them: lines, words, bytes. The old SOURCE.json goes first and the
// new one comes last: where it is, the folder is whole. `how` says in one sentence how the corpus was made.
std::string write_corpus(const std::string& folder, const std::string& name, const std::string& date,
                         const std::string& how, const std::vector<CorpusPart>& parts);

// What SOURCE.json says. Throws BadInput when the folder holds no corpus.
Corpus read_corpus(const std::string& folder);

}  // namespace masquerade
