// SPDX-License-Identifier: MIT
// Builds a corpus from the package catalogue of a Debian or Ubuntu machine: the one-line synopses (sentences), the long
// descriptions with their synopses (pairs), and sentences of descriptions with their German translations (pairs). The
// input consists of Packages, Translation-en and Translation-de files, which apt downloads (format: deb822).
#pragma once
#include "data/text.h"

namespace masquerade {

using TextPairs = std::vector<std::pair<std::string, std::string>>;

struct Package {
    std::string name, source;   // source: source package; equal to `name` if there is no Source field
    std::string synopsis;       // one line
    std::string description;    // long description on one line; may be empty
    TextPairs translated = {};  // English sentences with German translations
};

struct Catalogue {
    std::string name;               // such as "Debian bookworm"; "package catalogue" if no Release file has a name
    std::string date;               // date of the newest Release file, YYYY-MM-DD, or "unknown"
    std::vector<Package> packages;  // sorted by name
};

// Parses the contents of Packages files; packages without a synopsis are skipped. The Translation files provide the
// German description of a package and, if the Packages file lacks the English description, also the English one. A
// description is found by the field Description-md5, a checksum of the English text. The result is sorted by name.
std::vector<Package> parse_packages(const Strings& packages_files, const Strings& translation_files);

// Pairs the sentences of a description with the sentences of its translation. Both texts are split into parts: the
// synopsis, paragraphs and list items. Paragraphs and list items are split into sentences. If the texts have different
// numbers of parts, only the synopsis is used. A part is used only if it has the same number of sentences in both
// texts. A sentence that equals its translation (such as a name) is skipped.
TextPairs aligned_sentences(const std::string& description, const std::string& translation);

// Reads all *_Packages, *_Translation-en, *_Translation-de and *Release files in a folder. Throws BadInput if the
// folder cannot be read or if no package has a synopsis.
Catalogue read_catalogue(const std::string& folder);

// Writes synopses.{train,dev,test}.txt and SOURCE.json. If there are long descriptions, also writes
// titles.{train,dev,test}.tsv (long description and synopsis). If sentences have a German translation, also writes
// translations.{train,dev,test}.tsv. All packages built from one source package are in the same split. Returns a table
// that lists the files.
std::string write_catalogue_corpus(const Catalogue& catalogue, const std::string& folder);

}  // namespace masquerade
