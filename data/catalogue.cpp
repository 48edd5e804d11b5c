// SPDX-License-Identifier: MIT
#include "data/catalogue.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iomanip>
#include <locale>
#include <sstream>
#include <tuple>
#include <unordered_map>

#include "data/text.h"
#include "engine/base/error.h"

namespace masquerade {
namespace {

struct Description {
    std::string synopsis, body;
};

using Stanza = std::unordered_map<std::string, std::string>;  // field -> value, continuation lines after '\n'

bool ends_with(std::string_view s, std::string_view end) {
    return s.size() >= end.size() && s.substr(s.size() - end.size()) == end;
}

// Calls visit(stanza) for every stanza; only the fields that a corpus needs are kept.
template <class Visit>
void each_stanza(const std::string& file, Visit visit) {
    static const std::string wanted[] = {"Package", "Source", "Description", "Description-en",
                                         "Description-md5"};
    Stanza stanza;
    std::string* field = nullptr;
    std::istringstream in(file);
    for (std::string line; std::getline(in, line);) {
        if (line.find_first_not_of(" \t\r") == line.npos) {
            if (!stanza.empty()) visit(stanza);
            stanza.clear();
            field = nullptr;
        } else if (line[0] == ' ' || line[0] == '\t') {
            if (field) *field += '\n' + line.substr(1);
        } else if (std::size_t colon = line.find(':'); colon != line.npos) {
            std::string name = line.substr(0, colon);
            bool keep = std::find(std::begin(wanted), std::end(wanted), name) != std::end(wanted);
            field = keep ? &(stanza[name] = line.substr(colon + 1)) : nullptr;
        }
    }
    if (!stanza.empty()) visit(stanza);
}

std::string one_line(std::string_view value) {
    TextCounts ignored;
    return collapse_space(clean_line(value, value.size(), ignored));
}

// The first line is the synopsis; the others are the body, where a line of one dot ends a paragraph.
Description parse_description(const std::string& value) {
    std::size_t end = std::min(value.find('\n'), value.size());
    std::istringstream in(value.substr(end));
    std::string body;
    for (std::string line; std::getline(in, line);)
        if (one_line(line) != ".") body += line + ' ';
    return {one_line(value.substr(0, end)), one_line(body)};
}

// "Sat, 17 May 2025 08:52:57 UTC" -> "2025-05-17"; empty when it is something else.
std::string iso_date(const std::string& date) {
    std::tm time{};
    std::istringstream in(date);
    in.imbue(std::locale::classic());
    in >> std::get_time(&time, " %a, %d %b %Y");
    return in ? text(std::put_time(&time, "%Y-%m-%d")) : "";
}

// The value of a field at the start of a line of a Release file.
std::string release_field(const std::string& release, const std::string& field) {
    std::size_t at = release.find('\n' + field + ": ");
    if (at == release.npos) return "";
    at += field.size() + 3;
    return one_line(release.substr(at, release.find('\n', at) - at));
}

}  // namespace

std::vector<Package> parse_packages(const std::vector<std::string>& packages_files,
                                    const std::vector<std::string>& translation_files) {
    std::unordered_map<std::string, Description> translations;  // by Description-md5
    for (const std::string& file : translation_files)
        each_stanza(file, [&](Stanza& stanza) {
            auto md5 = stanza.find("Description-md5");
            if (md5 == stanza.end()) return;
            translations[one_line(md5->second)] = parse_description(stanza["Description-en"]);
        });
    std::vector<Package> packages;
    for (const std::string& file : packages_files)
        each_stanza(file, [&](Stanza& stanza) {
            Package package;
            package.name = one_line(stanza["Package"]);
            package.source = one_line(stanza["Source"]);
            package.source.resize(std::min(package.source.find(" ("), package.source.size()));  // its version
            if (package.source.empty()) package.source = package.name;
            auto own = stanza.find("Description") != stanza.end() ? "Description" : "Description-en";
            Description description = parse_description(stanza[own]);
            auto translation = translations.find(one_line(stanza["Description-md5"]));
            if (translation != translations.end()) {
                if (description.synopsis.empty()) description.synopsis = translation->second.synopsis;
                if (description.body.empty()) description.body = translation->second.body;
            }
            package.synopsis = std::move(description.synopsis);
            package.description = std::move(description.body);
            if (!package.name.empty() && !package.synopsis.empty()) packages.push_back(std::move(package));
        });
    std::sort(packages.begin(), packages.end(), [](const Package& a, const Package& b) {
        return std::tie(a.name, a.source, a.synopsis, a.description) <
               std::tie(b.name, b.source, b.synopsis, b.description);
    });
    return packages;
}

Catalogue read_catalogue(const std::string& folder) {
    std::vector<std::string> packages, translations;
    Catalogue catalogue{"", "", {}};
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        std::string path = entry.path().string();
        if (ends_with(path, "_Packages")) packages.push_back(read_bytes(path));
        if (ends_with(path, "_Translation-en")) translations.push_back(read_bytes(path));
        if (!ends_with(path, "Release")) continue;
        std::string release = '\n' + read_bytes(path);
        std::string name = release_field(release, "Origin") + ' ' + release_field(release, "Codename");
        // bookworm < bookworm-security
        if (catalogue.name.empty() || name < catalogue.name) catalogue.name = name;
        catalogue.date = std::max(catalogue.date, iso_date(release_field(release, "Date")));
    }
    if (error) throw BadInput(text(folder, " cannot be read: ", error.message()));
    if (catalogue.name.empty()) catalogue.name = "package catalogue";
    if (catalogue.date.empty()) catalogue.date = "unknown";
    catalogue.packages = parse_packages(packages, translations);
    if (catalogue.packages.empty())
        throw BadInput(text(folder, ": no package with a description in ", packages.size(),
                            " lists; apt's *_Packages are expected (data/fetch_catalogue.sh)"));
    return catalogue;
}

Corpus write_catalogue_corpus(const Catalogue& catalogue, const std::string& folder) {
    std::vector<Entry> synopses, titles;
    for (const Package& package : catalogue.packages) {
        synopses.push_back({package.source, package.synopsis, ""});
        if (package.description.empty()) continue;
        TextCounts ignored;  // a description as long as a book is cut as a reader would cut it
        titles.push_back({package.source, clean_line(package.description, TextOptions{}.longest, ignored),
                          package.synopsis});
    }
    CorpusWriter writer(folder, catalogue.name + " package catalogue", catalogue.date,
                        "synopses of packages, and long descriptions with their synopsis; "
                        "held out by hash of the source package");
    writer.add("synopses", "txt", make_splits(std::move(synopses)));
    if (!titles.empty()) writer.add("titles", "tsv", make_splits(std::move(titles)));
    return writer.finish();
}

}  // namespace masquerade
