// SPDX-License-Identifier: MIT
#include "data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>

#include "data/text.h"
#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/base/write_file.h"

namespace masquerade {
namespace {

std::string lower(std::string s) {
    for (char& c : s)
        if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    return s;
}

// FNV's last byte hardly reaches its high bits: alike names would share a split, alike lines be neighbours.
std::uint64_t mixed_hash(std::string_view s) {
    Stream stream = make_stream(0, s, 0);
    return std::uint64_t(stream.key0) << 32 | stream.key1;
}

std::string hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

std::uint64_t count_words(const std::string& line) {
    std::string collapsed = collapse_space(line);
    return collapsed.empty() ? 0 : std::uint64_t(std::count(collapsed.begin(), collapsed.end(), ' ')) + 1;
}

CorpusFile write_lines(const std::string& path, const std::string& name,
                       const std::vector<std::string>& lines) {
    CorpusFile file{name, lines.size()};
    std::string bytes;
    for (const std::string& line : lines) {
        bytes += line + '\n';
        file.words += count_words(line);
    }
    file.bytes = bytes.size();
    file.hash = hash_of(bytes);
    replace_file(path, bytes);
    return file;
}

}  // namespace

int split_of(std::string_view group) {
    std::uint64_t place = mixed_hash(group) % 50;
    return place < 48 ? 0 : place == 48 ? 1 : 2;
}

Splits make_splits(std::vector<Entry> entries) {
    auto order = [](const Entry& a, const Entry& b) {
        return std::tie(a.group, a.source, a.target) < std::tie(b.group, b.source, b.target);
    };
    std::sort(entries.begin(), entries.end(), order);
    Splits splits;
    std::unordered_set<std::string> earlier;  // texts of the splits already made
    for (int split = 0; split < 3; split++) {
        std::unordered_set<std::string> here, lines_here;
        std::vector<std::string>& lines = splits.lines[split];
        for (const Entry& e : entries) {
            if (split_of(e.group) != split) continue;
            std::string source = lower(e.source), target = lower(e.target);
            if (earlier.count(source) || earlier.count(target)) continue;
            if (!lines_here.insert(source + '\t' + target).second) continue;
            lines.push_back(e.target.empty() ? e.source : e.source + '\t' + e.target);
            here.insert(source);
            if (!target.empty()) here.insert(target);
        }
        earlier.merge(here);
        std::sort(lines.begin(), lines.end(), [](const std::string& a, const std::string& b) {
            std::uint64_t x = mixed_hash(a), y = mixed_hash(b);
            return x != y ? x < y : a < b;
        });
    }
    return splits;
}

CorpusWriter::CorpusWriter(std::string folder, std::string name, std::string date, std::string how)
    : folder_(std::move(folder)) {
    corpus_.name = std::move(name);
    corpus_.date = std::move(date);
    corpus_.how = std::move(how);
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) throw BadInput(text(folder_, " cannot be made: ", error.message()));
    std::filesystem::remove(folder_ + "/SOURCE.json", error);
}

void CorpusWriter::add(const std::string& stem, const std::string& extension, const Splits& splits) {
    for (int split = 0; split < 3; split++) {
        std::string name = stem + '.' + split_names[split] + '.' + extension, path = folder_ + '/' + name;
        corpus_.files.push_back(write_lines(path, name, splits.lines[split]));
        (extension == "tsv" ? corpus_.pairs : corpus_.sentences)[split] = path;
    }
}

Corpus CorpusWriter::finish() {
    nlohmann::ordered_json json{{"name", corpus_.name}, {"date", corpus_.date}, {"how", corpus_.how}};
    auto names = [](const std::string (&paths)[3]) {
        nlohmann::ordered_json of_split;
        for (int split = 0; split < 3; split++)
            of_split[split_names[split]] = std::filesystem::path(paths[split]).filename().string();
        return of_split;
    };
    json["sentences"] = names(corpus_.sentences);
    if (!corpus_.pairs[0].empty()) json["pairs"] = names(corpus_.pairs);
    for (const CorpusFile& file : corpus_.files)
        json["files"][file.name] = {
            {"lines", file.lines}, {"words", file.words}, {"bytes", file.bytes}, {"hash", hex(file.hash)}};
    std::string path = folder_ + "/SOURCE.json";
    replace_file(path, json.dump(2) + '\n');
    return corpus_;
}

Corpus read_corpus(const std::string& folder) {
    std::string path = folder + "/SOURCE.json";
    if (!std::filesystem::exists(path))
        throw BadInput(text(folder, " holds no corpus: ", path, " is not there; `make data` makes one"));
    const std::string bytes = read_bytes(path);
    Corpus corpus;
    try {
        parse_input<BadInput>(bytes, path);  // within bounds; what keeps the order of the files has none
        auto json = nlohmann::ordered_json::parse(bytes);
        corpus.name = json.at("name");
        corpus.date = json.at("date");
        corpus.how = json.at("how");
        for (int split = 0; split < 3; split++) {
            auto path_of = [&](const char* kind) {
                return folder + '/' + json.at(kind).at(split_names[split]).get<std::string>();
            };
            corpus.sentences[split] = path_of("sentences");
            if (json.contains("pairs")) corpus.pairs[split] = path_of("pairs");
        }
        for (const auto& [name, file] : json.at("files").items())
            corpus.files.push_back({name, file.at("lines"), file.at("words"), file.at("bytes"),
                                    std::stoull(file.at("hash").get<std::string>(), nullptr, 16)});
    } catch (const BadInput&) {
        throw;
    } catch (const std::exception&) {  // a key that is missing, or of another type
        throw BadInput(
            text(path, " is damaged: it does not hold what a corpus has; `make data FORCE=1` makes it anew"));
    }
    return corpus;
}

std::string table_of(const Corpus& corpus) {
    std::string table = fmt::format("{:<22} {:>8} {:>10} {:>12}\n", "file", "lines", "words", "bytes");
    for (const CorpusFile& file : corpus.files)
        table += fmt::format("{:<22} {:>8} {:>10} {:>12}\n", file.name, file.lines, file.words, file.bytes);
    return table;
}

}  // namespace masquerade
