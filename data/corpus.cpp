// SPDX-License-Identifier: MIT
#include "data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>
#include <unordered_set>

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

// Returns a hash in which each byte of s affects all bits. In the FNV-1a hash, the last byte hardly affects the high
// bits. Similar lines would therefore have similar hashes, and stay neighbours when the lines are sorted by hash.
std::uint64_t mixed_hash(std::string_view s) {
    Stream stream = make_stream(0, s, 0);
    return std::uint64_t(stream.key0) << 32 | stream.key1;
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
    std::unordered_set<std::string> earlier;  // lower-cased sources and targets of the earlier splits
    for (int split = 0; split < 3; split++) {
        std::unordered_set<std::string> here, lines_here;
        Strings& lines = splits.lines[split];
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

std::string write_corpus(const std::string& folder, const std::string& name, const std::string& date,
                         const std::string& how, const std::vector<CorpusPart>& parts) {
    const std::string path = folder + "/SOURCE.json";
    make_folder(folder);
    std::error_code none;
    std::filesystem::remove(path, none);
    nlohmann::ordered_json source{{"name", name}, {"date", date}, {"how", how}}, files;
    std::string table = fmt::format("{:<22} {:>8} {:>10} {:>12}\n", "file", "lines", "words", "bytes");
    for (const CorpusPart& part : parts)
        for (int split = 0; split < 3; split++) {
            const std::string file =
                text(part.stem, '.', split_names[split], part.kind == "sentences" ? ".txt" : ".tsv");
            const Strings& lines = part.splits.lines[split];
            std::string bytes;
            for (const std::string& line : lines) bytes += line + '\n';
            std::istringstream in(bytes);
            const auto words = std::distance(std::istream_iterator<std::string>(in), {});
            replace_file(folder + '/' + file, bytes);
            source[part.kind][split_names[split]] = file;
            files[file] = {{"lines", lines.size()},
                           {"words", words},
                           {"bytes", bytes.size()},
                           {"hash", fmt::format("{:016x}", hash_of(bytes))}};
            table += fmt::format("{:<22} {:>8} {:>10} {:>12}\n", file, lines.size(), words, bytes.size());
        }
    source["files"] = files;
    replace_file(path, source.dump(2) + '\n');
    return table;
}

Corpus read_corpus(const std::string& folder) {
    const std::string path = folder + "/SOURCE.json";
    if (!std::filesystem::exists(path))
        throw BadInput(folder, " holds no corpus: ", path, " is not there; `make data` makes one");
    const auto json = parse_input<BadInput>(read_bytes(path), path);
    try {
        Corpus corpus{json.at("name"), json.at("date"), {}, {}, {}};
        for (int split = 0; split < 3; split++) {
            auto path_of = [&](const char* kind) {
                return folder + '/' + json.at(kind).at(split_names[split]).get<std::string>();
            };
            corpus.sentences[split] = path_of("sentences");
            if (json.contains("pairs")) corpus.pairs[split] = path_of("pairs");
            if (json.contains("translations")) corpus.translations[split] = path_of("translations");
        }
        return corpus;
    } catch (const std::exception&) {  // a key is missing or has the wrong type
        throw BadInput(
            path, " is damaged: a field is missing or of another kind; `make data FORCE=1` builds the corpus again");
    }
}

}  // namespace masquerade
