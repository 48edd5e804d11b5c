// SPDX-License-Identifier: MIT
// Builds a corpus from the package catalogue of a Debian or Ubuntu machine: one-line synopses (sentences), long
// description -> synopsis (pairs), and sentences of descriptions with their German translation. The input is in deb822
// stanzas: Packages, Translation-en and Translation-de files.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace masquerade {

struct Package {
    std::string name, source;  // source package; equals name if there is no Source field
    std::string synopsis;      // one line
    std::string description;   // long description on one line; may be empty
    std::vector<std::pair<std::string, std::string>> translated = {};  // English and German sentences
};

struct Catalogue {
    std::string name;               // "Debian bookworm"; "package catalogue" if no Release file names it
    std::string date;               // date of the newest Release file, YYYY-MM-DD, or "unknown"
    std::vector<Package> packages;  // sorted by name, whatever the order of the files
};

// Parses the text of Packages files. English and German descriptions are looked up in the Translation files by
// Description-md5, the checksum of the English text.
std::vector<Package> parse_packages(const std::vector<std::string>& packages_files,
                                    const std::vector<std::string>& translation_files);

// Pairs the sentences of a description with the sentences of its translation. Both are split into synopsis, paragraphs
// and list items, and each of these parts into sentences. A part is used only if both sides have the same number of
// sentences. If the numbers of parts differ, only the synopsis is used. Equal sentences (names) are skipped.
std::vector<std::pair<std::string, std::string>> aligned_sentences(const std::string& description,
                                                                   const std::string& translation);

// Reads *_Packages, *_Translation-en, *_Translation-de and *Release in a folder. Throws BadInput if no package has a
// synopsis.
Catalogue read_catalogue(const std::string& folder);

// Writes synopses.{train,dev,test}.txt; titles.{train,dev,test}.tsv if there are long descriptions;
// translations.{train,dev,test}.tsv if there are German ones; and SOURCE.json. Dev and test are chosen by source
// package. Returns a table of the files.
std::string write_catalogue_corpus(const Catalogue& catalogue, const std::string& folder);

}  // namespace masquerade
