// SPDX-License-Identifier: MIT
// Builds a corpus from the package catalogue of a Debian or Ubuntu machine: the one-line synopses (sentences), the long
// descriptions with their synopses (pairs), and sentences of descriptions with their German translations (pairs). The
// input are Packages, Translation-en and Translation-de files, which consist of deb822 stanzas.
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
    std::vector<Package> packages;  // sorted by name
};

// Parses the text of Packages files. English and German descriptions are looked up in the Translation files by
// Description-md5, the checksum of the English text.
std::vector<Package> parse_packages(const std::vector<std::string>& packages_files,
                                    const std::vector<std::string>& translation_files);

// Pairs the sentences of a description with the sentences of its translation. Both texts are split into the synopsis,
// paragraphs and list items; paragraphs and list items are split into sentences. A part is used only if it has equally
// many sentences in both texts. If the numbers of parts differ, only the synopsis is used. A sentence that equals its
// translation (such as a name) is skipped.
std::vector<std::pair<std::string, std::string>> aligned_sentences(const std::string& description,
                                                                   const std::string& translation);

// Reads *_Packages, *_Translation-en, *_Translation-de and *Release in a folder. Throws BadInput if no package has a
// synopsis.
Catalogue read_catalogue(const std::string& folder);

// Writes synopses.{train,dev,test}.txt; titles.{train,dev,test}.tsv (description and synopsis) if there are long
// descriptions; translations.{train,dev,test}.tsv if there are German descriptions; and SOURCE.json. All packages of
// one source package are in the same split. Returns a table of the files.
std::string write_catalogue_corpus(const Catalogue& catalogue, const std::string& folder);

}  // namespace masquerade
