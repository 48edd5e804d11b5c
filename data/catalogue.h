// SPDX-License-Identifier: MIT
// The package catalogue of a Debian or Ubuntu machine as a corpus: one-line synopses (sentences) and long
// description -> synopsis (pairs). Lists are deb822 stanzas: Packages files, and Translation-en files for
// what those leave out.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace masquerade {

struct Package {
    std::string name, source;  // the source package is the name where no Source field differs
    std::string synopsis;      // one line
    std::string description;   // the long one, as one line; may be empty
};

struct Catalogue {
    std::string name;  // "Debian bookworm", or "package catalogue" where no Release file tells
    std::string date;  // of the newest Release file, YYYY-MM-DD, or "unknown"
    std::vector<Package> packages;  // sorted by name, whatever the order of the lists
};

// The packages of Packages files, given as text; descriptions are looked up by Description-md5 in
// Translation-en files.
std::vector<Package> parse_packages(const std::vector<std::string>& packages_files,
                                    const std::vector<std::string>& translation_files);

// Reads *_Packages, *_Translation-en and *Release of a folder. Throws BadInput when no package has a
// synopsis.
Catalogue read_catalogue(const std::string& folder);

// synopses.{train,dev,test}.txt, titles.{train,dev,test}.tsv where there are long descriptions, and
// SOURCE.json, and a table of them; held out by source package.
std::string write_catalogue_corpus(const Catalogue& catalogue, const std::string& folder);

}  // namespace masquerade
