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

#include "data/corpus.h"
#include "engine/base/error.h"

namespace masquerade {
namespace {

using Stanza = std::unordered_map<std::string, std::string>;  // field -> value, whose lines are separated by '\n'

bool ends_with(std::string_view s, std::string_view end) {
    return s.size() >= end.size() && s.substr(s.size() - end.size()) == end;
}

template <class Visit>
void each_stanza(const std::string& file, Visit visit) {
    Stanza stanza;
    std::string* field = nullptr;
    std::istringstream in(file + "\n\n");
    for (std::string line; std::getline(in, line);) {
        const std::size_t colon = line.find(':');
        if (line.find_first_not_of(" \t\r") == line.npos) {
            if (!stanza.empty()) visit(stanza);
            stanza.clear();
            field = nullptr;
        } else if (line[0] == ' ' || line[0] == '\t') {
            if (field) *field += '\n' + line.substr(1);
        } else {
            field = colon == line.npos ? nullptr : &(stanza[line.substr(0, colon)] = line.substr(colon + 1));
        }
    }
}

std::string one_line(std::string_view value) {
    TextCounts ignored;
    return collapse_space(clean_line(value, value.size(), ignored));
}

// Sets the synopsis and the long description if the package lacks them. `value` is a Description field: its first line
// is the synopsis, and the other lines are the long description. In the long description, a line with a single dot
// separates paragraphs.
void describe(Package& package, const std::string& value) {
    const std::size_t end = std::min(value.find('\n'), value.size());
    std::istringstream in(value.substr(end));
    std::string body;
    for (std::string line; std::getline(in, line);)
        if (one_line(line) != ".") body += line + ' ';
    if (package.synopsis.empty()) package.synopsis = one_line(value.substr(0, end));
    if (package.description.empty()) package.description = one_line(body);
}

// Splits a paragraph at each space after . ! ? or : unless a lower-case ASCII letter or a digit follows the space.
Strings sentences_of(const std::string& paragraph) {
    Strings sentences = {""};
    for (std::size_t i = 0; i < paragraph.size(); i++) {
        const char next = i + 1 < paragraph.size() ? paragraph[i + 1] : '\0';
        const bool ended =
            i > 0 && paragraph[i] == ' ' && std::string_view(".!?:").find(paragraph[i - 1]) != std::string_view::npos;
        if (ended && !(next >= 'a' && next <= 'z') && !(next >= '0' && next <= '9'))
            sentences.emplace_back();
        else
            sentences.back() += paragraph[i];
    }
    return sentences;
}

// Returns the parts of a package's description, each as a list of sentences: first the synopsis (one sentence), then
// the paragraphs and list items.
std::vector<Strings> parts_of(const std::string& description) {
    std::vector<Strings> parts;
    std::istringstream in(description + "\n.");
    std::string part;
    for (std::string line; std::getline(in, line);) {
        const std::size_t sign = std::min(line.find_first_not_of(' '), line.size());
        const bool item = sign > 0 && sign + 1 < line.size() && line[sign + 1] == ' ' &&
                          std::string_view("*+-o").find(line[sign]) != std::string_view::npos;
        if (parts.empty())
            parts.push_back({one_line(line)});  // the first line is the synopsis
        else if (item || one_line(line) == ".") {
            if (const std::string whole = one_line(part); !whole.empty()) parts.push_back(sentences_of(whole));
            part = item ? line.substr(sign + 1) : "";
        } else
            part += ' ' + line;
    }
    return parts;
}

// Converts a date such as "Sat, 17 May 2025 08:52:57 UTC" to "2025-05-17". Returns "" if the date has another form.
std::string iso_date(const std::string& date) {
    std::tm time{};
    std::istringstream in(date);
    in.imbue(std::locale::classic());
    in >> std::get_time(&time, " %a, %d %b %Y");
    return in ? text(std::put_time(&time, "%Y-%m-%d")) : "";
}

}  // namespace

TextPairs aligned_sentences(const std::string& description, const std::string& translation) {
    const auto english = parts_of(description), german = parts_of(translation);
    TextPairs pairs;
    for (std::size_t part = 0; part < (english.size() == german.size() ? english.size() : 1); part++)
        for (std::size_t i = 0; english[part].size() == german[part].size() && i < english[part].size(); i++)
            if (const std::string& e = english[part][i], &g = german[part][i]; !e.empty() && !g.empty() && e != g)
                pairs.emplace_back(e, g);
    return pairs;
}

std::vector<Package> parse_packages(const Strings& packages_files, const Strings& translation_files) {
    std::unordered_map<std::string, std::string> translations, german;  // English and German texts, by Description-md5
    for (const std::string& file : translation_files)
        each_stanza(file, [&](Stanza& stanza) {
            const auto md5 = stanza.find("Description-md5");
            if (md5 == stanza.end()) return;
            if (stanza.count("Description-en")) translations[one_line(md5->second)] = stanza["Description-en"];
            if (stanza.count("Description-de")) german[one_line(md5->second)] = stanza["Description-de"];
        });
    std::vector<Package> packages;
    for (const std::string& file : packages_files)
        each_stanza(file, [&](Stanza& stanza) {
            Package package;
            package.name = one_line(stanza["Package"]);
            package.source = one_line(stanza["Source"]);
            package.source.resize(std::min(package.source.find(" ("), package.source.size()));  // removes " (VERSION)"
            if (package.source.empty()) package.source = package.name;
            const std::string md5 = one_line(stanza["Description-md5"]),
                              &own = stanza[stanza.count("Description") ? "Description" : "Description-en"];
            describe(package, own);
            describe(package, translations[md5]);
            if (german.count(md5))
                package.translated =
                    aligned_sentences(translations[md5].empty() ? own : translations[md5], german[md5]);
            if (!package.name.empty() && !package.synopsis.empty()) packages.push_back(std::move(package));
        });
    std::sort(packages.begin(), packages.end(), [](const Package& a, const Package& b) {
        return std::tie(a.name, a.source, a.synopsis, a.description) <
               std::tie(b.name, b.source, b.synopsis, b.description);
    });
    return packages;
}

Catalogue read_catalogue(const std::string& folder) {
    Strings packages, translations;
    Catalogue catalogue;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        std::string path = entry.path().string();
        if (ends_with(path, "_Packages")) packages.push_back(read_bytes(path));
        if (ends_with(path, "_Translation-en") || ends_with(path, "_Translation-de"))
            translations.push_back(read_bytes(path));
        if (!ends_with(path, "Release")) continue;
        each_stanza(read_bytes(path), [&](Stanza& release) {
            if (!release.count("Origin")) return;
            const std::string name = one_line(release["Origin"]) + ' ' + one_line(release["Codename"]);
            // Takes the alphabetically first name: "Debian bookworm", not "Debian bookworm-security".
            if (catalogue.name.empty() || name < catalogue.name) catalogue.name = name;
            catalogue.date = std::max(catalogue.date, iso_date(one_line(release["Date"])));
        });
    }
    if (error) throw BadInput(folder, " cannot be read: ", error.message());
    if (catalogue.name.empty()) catalogue.name = "package catalogue";
    if (catalogue.date.empty()) catalogue.date = "unknown";
    catalogue.packages = parse_packages(packages, translations);
    if (catalogue.packages.empty())
        throw BadInput(folder, ": no package with a description in ", packages.size(),
                       " lists; apt's *_Packages are expected (data/fetch_catalogue.sh)");
    return catalogue;
}

std::string write_catalogue_corpus(const Catalogue& catalogue, const std::string& folder) {
    std::vector<Entry> synopses, titles, translations;
    for (const Package& package : catalogue.packages) {
        synopses.push_back({package.source, package.synopsis, ""});
        for (const auto& [english, german] : package.translated)
            translations.push_back({package.source, english, german});
        if (package.description.empty()) continue;
        // Cuts a very long description. Otherwise, read_text() would cut it and log a warning each time it reads the
        // corpus.
        TextCounts ignored;
        titles.push_back(
            {package.source, clean_line(package.description, longest_sentence, ignored), package.synopsis});
    }
    std::vector<CorpusPart> parts = {{"synopses", "sentences", make_splits(std::move(synopses))}};
    if (!titles.empty()) parts.push_back({"titles", "pairs", make_splits(std::move(titles))});
    if (!translations.empty()) parts.push_back({"translations", "translations", make_splits(std::move(translations))});
    return write_corpus(
        folder, catalogue.name + " package catalogue", catalogue.date,
        "synopses of packages, long descriptions with their synopsis, and sentences of descriptions with their German "
        "translation; held out by hash of the source package",
        parts);
}

}  // namespace masquerade
