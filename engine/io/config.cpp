// SPDX-License-Identifier: MIT
#include "engine/io/config.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/named.h"
#include "engine/io/file.h"
#include "engine/io/nearest.h"
#include "input/lines.h"
#include "input/number.h"

namespace masquerade {
namespace {

std::string trimmed(std::string_view s) {
    std::size_t begin = s.find_first_not_of(" \t\r"), end = s.find_last_not_of(" \t\r");
    return begin == s.npos ? "" : std::string(s.substr(begin, end + 1 - begin));
}

// Returns the shortest text that is read back as exactly the number x.
template <class T>
std::string number_text(T x) {
    char digits[64];
    return {digits, std::to_chars(digits, digits + sizeof digits, x).ptr};
}

// Describes the expected numbers: "a whole number from 1 to 65536". A bound that is the smallest or largest number of
// type T is left out, except the lower bound of an unsigned type.
template <class T>
std::string expected_number(T low, T high) {
    const bool from = std::is_unsigned_v<T> || low != std::numeric_limits<T>::lowest(),
               to = high != std::numeric_limits<T>::max();
    const std::string kind = std::is_same_v<T, double> ? "a number" : "a whole number";
    if (from && to) return text(kind, " from ", number_text(low), " to ", number_text(high));
    if (from) return text(kind, ", at least ", number_text(low));
    return to ? text(kind, ", at most ", number_text(high)) : kind;
}

template <class T>
auto putter(const T* value) {
    return [value](nlohmann::json& to) { to = *value; };
}

}  // namespace

void Config::declare(Entry entry) {
    if (find(entry.key)) throw Error("setting ", entry.key, " is declared twice");
    entry.topic = topic_;
    entries_.push_back(std::move(entry));
}

template <class T, class>
void Config::add(const std::string& key, T* value, const std::string& help, Bound<T> low, Bound<T> high) {
    const auto assign = [=](const std::string& word) {
        T x{};
        if (!read_number(word, x) || !(x >= low && x <= high)) return false;
        *value = x;
        return true;
    };
    declare({key, help, expected_number<T>(low, high), [value] { return number_text(*value); }, assign, putter(value)});
}
template void Config::add(const std::string&, int*, const std::string&, int, int);
template void Config::add(const std::string&, std::int64_t*, const std::string&, std::int64_t, std::int64_t);
template void Config::add(const std::string&, std::uint64_t*, const std::string&, std::uint64_t, std::uint64_t);
template void Config::add(const std::string&, double*, const std::string&, double, double);

void Config::add(const std::string& key, bool* value, const std::string& help) {
    const auto assign = [value](const std::string& word) {
        const bool yes = word == "true" || word == "1" || word == "yes" || word == "on";
        if (!yes && word != "false" && word != "0" && word != "no" && word != "off") return false;
        *value = yes;
        return true;
    };
    declare({key, help, "true or false", [value] { return *value ? "true" : "false"; }, assign, putter(value)});
}

void Config::add(const std::string& key, std::string* value, const std::string& help,
                 const std::vector<std::string>& choices) {
    const auto assign = [=](const std::string& word) {
        const bool known = choices.empty() || contains(choices, word);
        if (known) *value = word;
        return known;
    };
    const std::string expected = choices.empty() ? "text" : joined(choices, "|");
    declare({key, help, expected, [value] { return *value; }, assign, nullptr});
}

void Config::add_path(const std::string& key, std::string* value, const std::string& help,
                      const std::vector<std::string>& names) {
    const auto assign = [=](const std::string& word) {
        if (!word.empty()) *value = contains(names, word) ? word : std::filesystem::absolute(word).string();
        return !word.empty();
    };
    declare({key, help, joined(names, "|") + "|PATH", [value] { return *value; }, assign, nullptr});
}

void Config::add_words(const std::string& key, std::string* value, const std::string& help,
                       const std::vector<std::string>& names, std::function<void(const std::string&)> read) {
    const auto assign = [=](const std::string& words) {
        const bool name = contains(names, words);
        if (!name && words.find(' ') == words.npos) return false;
        if (!name) read(words);
        *value = words;
        return true;
    };
    declare({key, help, joined(names, "|") + "|WORDS", [value] { return *value; }, assign, nullptr});
}

const Config::Entry* Config::find(const std::string& key) const {
    for (const Entry& entry : entries_)
        if (entry.key == key) return &entry;
    return nullptr;
}

const Config::Entry& Config::at(const std::string& key) const {
    if (const Entry* entry = find(key)) return *entry;
    const std::string meant = did_you_mean(clipped(key), keys());
    if (!meant.empty()) throw BadUsage("unknown setting ", clipped(key), meant);
    throw BadUsage("unknown setting ", clipped(key), "; the nearest are ", joined(nearest(clipped(key), keys(), 3)),
                   "; ./train MODEL --help lists all");
}

void Config::follows(const std::string& key, std::function<void()> write) { at(key).follow = std::move(write); }

void Config::set(const std::string& key, const std::string& value) {
    Entry& entry = at(key);
    if (!entry.assign(value))
        throw BadUsage(key, "=", clipped(value), ": ", entry.expected, " is expected (", entry.help, ")");
    entry.follow = nullptr;
    for (const Entry& other : entries_)
        if (other.follow) other.follow();
}

void Config::set(const std::string& pair) {
    std::size_t equals = pair.find('=');
    if (equals == pair.npos || equals == 0)
        throw BadUsage("\"", clipped(pair), "\" is not a setting; key=value is expected");
    set(trimmed(pair.substr(0, equals)), trimmed(pair.substr(equals + 1)));
}

void Config::load(const std::string& path) {
    const std::string bytes = read_file(path);
    const std::string_view all = without_mark(bytes);
    const std::size_t first = all.find_first_not_of(" \t\r\n");
    if (first != all.npos && all[first] == '{') return from_json(parse_input<BadInput>(bytes, path), path);
    TextLines lines(bytes);
    for (std::string_view each; lines.next(each);) {
        std::string line = text(" ", each);
        line = trimmed(line.substr(0, std::min(line.find(" #"), line.find("\t#"))));
        if (line.empty()) continue;
        try {
            set(line);
        } catch (const BadUsage& e) {
            throw BadInput(path, ":", lines.number(), ": ", e.what());
        }
    }
}

void Config::from_json(const nlohmann::json& object, const std::string& path) {
    if (!object.is_object()) throw BadInput(path, ": an object of settings is expected, found ", in_words(object));
    for (const auto& [key, value] : object.items()) {
        if (!value.is_primitive() || value.is_null())
            throw BadInput(path, ": ", clipped(key), " is ", in_words(value),
                           "; text, a number, true or false is expected");
        try {
            set(key, value.is_string() ? name_in_json(value.get<std::string>()) : value.dump());
        } catch (const BadUsage& e) {
            throw BadInput(path, ": ", e.what());
        }
    }
}

nlohmann::json Config::to_json() const {
    nlohmann::json object = nlohmann::json::object();
    for (const Entry& entry : entries_)
        if (entry.put)
            entry.put(object[entry.key]);
        else
            object[entry.key] = json_name(entry.text());
    return object;
}

std::string Config::value(const std::string& key) const { return at(key).text(); }

std::vector<std::string> Config::keys() const {
    std::vector<std::string> all;
    for (const Entry& entry : entries_) all.push_back(entry.key);
    return all;
}

std::vector<Config::Setting> Config::settings() const {
    std::vector<Setting> all;
    for (const Entry& e : entries_) all.push_back({e.topic, e.key, e.text(), e.help, e.expected});
    return all;
}

}  // namespace masquerade
