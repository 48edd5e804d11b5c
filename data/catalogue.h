// SPDX-License-Identifier: MIT
// The package catalogue of a Debian or Ubuntu machine as a corpus: one-line synopses (sentences), long description ->
// synopsis (pairs), and sentences of descriptions with their German translation. Lists are deb822 stanzas: Packages
// files, and Translation-en and Translation-de files.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace masquerade {

struct Package {
    std::string name, source;  // the source package is the name where no Source field differs
    std::string synopsis;      // one line
    std::string description;   // the long one, as one line; may be empty
    std::vector<std::pair<std::string, std::string>> translated = {};  // sentences of both, English and German
};

struct Catalogue {
    std::string name;               // "Debian bookworm", or "package catalogue" where no Release file tells
    std::string date;               // of the newest Release file, YYYY-MM-DD, or "unknown"
    std::vector<Package> packages;  // sorted by name, whatever the order of the lists
};

// The packages of Packages files, given as text; English and German descriptions are looked up by Description-md5, that
// of the English text, in Translation files.
std::vector<Package> parse_packages(const std::vector<std::string>& packages_files,
                                    const std::vector<std::string>& translation_files);

// Sentence for sentence, what a description and its translation say. Both are cut into the synopsis, paragraphs and
// items of lists, and those into sentences: only parts of as many sentences are taken, and if the descriptions have not
// as many parts, the synopsis alone. Sentences that are equal (names) are left out.
std::vector<std::pair<std::string, std::string>> aligned_sentences(const std::string& description,
                                                                   const std::string& translation);

// Reads *_Packages, *_Translation-en, *_Translation-de and *Release of a folder. Throws BadInput when no package has a
// synopsis.
Catalogue read_catalogue(const std::string& folder);

// synopses.{train,dev,test}.txt, titles.{train,dev,test}.tsv where there are long descriptions,
// translations.{train,dev,test}.tsv where there are German ones, and SOURCE.json, and a table of them; held out by
// source package.
std::string write_catalogue_corpus(const Catalogue& catalogue, const std::string& folder);

}  // namespace masquerade
