// SPDX-License-Identifier: MIT
#include "engine/io/config.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/io/file.h"
#include "engine/io/nearest.h"

namespace masquerade {
namespace {

std::string trimmed(std::string_view s) {
    std::size_t begin = s.find_first_not_of(" \t\r"), end = s.find_last_not_of(" \t\r");
    return begin == s.npos ? "" : std::string(s.substr(begin, end + 1 - begin));
}

// The shortest text that reads back as the same number.
template <class T>
std::string number_text(T x) {
    char digits[64];
    return {digits, std::to_chars(digits, digits + sizeof digits, x).ptr};
}

template <class T>
bool read_number(const std::string& s, T& x) {
    const char *begin = s.data() + (s.size() > 1 && s[0] == '+' && s[1] != '-'), *end = s.data() + s.size();
    auto [stop, error] = std::from_chars(begin, end, x);
    return error == std::errc() && stop == end;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
    return all;
}

template <class... F>
struct overload : F... {
    using F::operator()...;
};
template <class... F>
overload(F...) -> overload<F...>;

}  // namespace

void Config::declare(const std::string& key, const std::string& help, Field field) {
    if (find(key)) throw Error(text("setting ", key, " is declared twice"));
    std::string start = text_of(field);
    entries_.push_back({key, help, start, std::move(field)});
}

void Config::add(const std::string& key, int* value, const std::string& help, int low, int high) {
    declare(key, help, Number<int>{value, low, high});
}
void Config::add(const std::string& key, std::int64_t* value, const std::string& help, std::int64_t low,
                 std::int64_t high) {
    declare(key, help, Number<std::int64_t>{value, low, high});
}
void Config::add(const std::string& key, std::uint64_t* value, const std::string& help, std::uint64_t low,
                 std::uint64_t high) {
    declare(key, help, Number<std::uint64_t>{value, low, high});
}
void Config::add(const std::string& key, double* value, const std::string& help, double low, double high) {
    declare(key, help, Number<double>{value, low, high});
}
void Config::add(const std::string& key, bool* value, const std::string& help) {
    declare(key, help, Flag{value});
}
void Config::add(const std::string& key, std::string* value, const std::string& help) {
    declare(key, help, Word{value, {}});
}
void Config::add(const std::string& key, std::string* value, const std::string& help,
                 std::vector<std::string> choices) {
    declare(key, help, Word{value, std::move(choices)});
}

std::string Config::text_of(const Field& field) {
    return std::visit(overload{[](const Flag& f) { return std::string(*f.target ? "true" : "false"); },
                               [](const Word& f) { return *f.target; },
                               [](const Enumeration& f) { return f.choices[f.chosen()]; },
                               [](const auto& f) { return number_text(*f.target); }},
                      field);
}

// "a whole number from 1 to 65536"; bounds that no value can pass are not worth a word
std::string Config::expected_of(const Field& field) {
    auto number = [](const auto& f) {
        using T = std::decay_t<decltype(f.low)>;
        bool low = std::is_unsigned_v<T> || f.low != std::numeric_limits<T>::lowest(),
             high = f.high != std::numeric_limits<T>::max();
        std::string kind = std::is_same_v<T, double> ? "a number" : "a whole number";
        if (low && high) return text(kind, " from ", number_text(f.low), " to ", number_text(f.high));
        if (low) return text(kind, ", at least ", number_text(f.low));
        if (high) return text(kind, ", at most ", number_text(f.high));
        return kind;
    };
    auto words = [](const auto& f) { return f.choices.empty() ? "text" : joined(f.choices, "|"); };
    return std::visit(overload{[](const Flag&) { return std::string("true or false"); },
                               [&](const Word& f) { return std::string(words(f)); },
                               [&](const Enumeration& f) { return std::string(words(f)); }, number},
                      field);
}

// False, and nothing is changed, when the value is not one of those expected.
bool Config::assign(const Field& field, const std::string& value) {
    auto number = [&](const auto& f) {
        std::decay_t<decltype(f.low)> x{};
        if (!read_number(value, x) || !(x >= f.low && x <= f.high)) return false;  // NaN is refused too
        *f.target = x;
        return true;
    };
    auto flag = [&](const Flag& f) {
        bool yes = value == "true" || value == "1" || value == "yes" || value == "on";
        if (!yes && value != "false" && value != "0" && value != "no" && value != "off") return false;
        *f.target = yes;
        return true;
    };
    auto word = [&](const Word& f) {
        bool known = f.choices.empty() || std::count(f.choices.begin(), f.choices.end(), value) > 0;
        if (known) *f.target = value;
        return known;
    };
    auto enumeration = [&](const Enumeration& f) {
        std::size_t i = std::size_t(std::find(f.choices.begin(), f.choices.end(), value) - f.choices.begin());
        if (i < f.choices.size()) f.choose(i);
        return i < f.choices.size();
    };
    return std::visit(overload{flag, word, enumeration, number}, field);
}

const Config::Entry* Config::find(const std::string& key) const {
    for (const Entry& entry : entries_)
        if (entry.key == key) return &entry;
    return nullptr;
}

const Config::Entry& Config::at(const std::string& key) const {
    if (const Entry* entry = find(key)) return *entry;
    std::string meant = nearest(clipped(key), keys());
    throw BadUsage(
        text("unknown setting ", clipped(key),
             meant.empty() ? "; there are " + joined(keys(), ", ") : "; did you mean " + meant + "?"));
}

void Config::set(const std::string& key, const std::string& value) {
    const Entry& entry = at(key);
    if (!assign(entry.field, value))
        throw BadUsage(text(key, "=", clipped(value), ": ", expected_of(entry.field), " is expected (",
                            entry.help, ")"));
}

void Config::set(const std::string& pair) {
    std::size_t equals = pair.find('=');
    if (equals == pair.npos || equals == 0)
        throw BadUsage(text("\"", clipped(pair), "\" is not a setting; key=value is expected"));
    set(trimmed(pair.substr(0, equals)), trimmed(pair.substr(equals + 1)));
}

void Config::load(const std::string& path) {
    std::string bytes = read_file(path);
    std::size_t first = bytes.find_first_not_of(" \t\r\n");
    if (first != bytes.npos && bytes[first] == '{')
        return from_json(parse_input<BadInput>(bytes, path), path);
    int number = 0;
    for (std::size_t begin = 0; begin < bytes.size(); number++) {
        std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
        std::string line = " " + bytes.substr(begin, end - begin);
        begin = end + 1;
        line = trimmed(line.substr(0, std::min(line.find(" #"), line.find("\t#"))));
        if (line.empty()) continue;
        try {
            set(line);
        } catch (const BadUsage& e) {
            throw BadInput(text(path, ":", number + 1, ": ", e.what()));
        }
    }
}

void Config::from_json(const nlohmann::json& object, const std::string& path) {
    if (!object.is_object())
        throw BadInput(text(path, ": an object of settings is expected, found ", in_words(object)));
    for (const auto& [key, value] : object.items()) {
        if (!value.is_primitive() || value.is_null())
            throw BadInput(text(path, ": ", clipped(key), " is ", in_words(value),
                                "; text, a number, true or false is expected"));
        try {
            set(key, value.is_string() ? value.get<std::string>() : value.dump());
        } catch (const BadUsage& e) {
            throw BadInput(text(path, ": ", e.what()));
        }
    }
}

nlohmann::json Config::to_json() const {
    nlohmann::json object = nlohmann::json::object();
    for (const Entry& entry : entries_)
        std::visit(overload{[&](const Enumeration& f) { object[entry.key] = f.choices[f.chosen()]; },
                            [&](const auto& f) { object[entry.key] = *f.target; }},
                   entry.field);
    return object;
}

std::string Config::value(const std::string& key) const { return text_of(at(key).field); }

std::vector<std::string> Config::keys() const {
    std::vector<std::string> all;
    for (const Entry& entry : entries_) all.push_back(entry.key);
    return all;
}

std::string Config::table() const {
    std::size_t key_width = 0, value_width = 0;
    for (const Entry& entry : entries_) {
        key_width = std::max(key_width, entry.key.size());
        value_width = std::max(value_width, text_of(entry.field).size());
    }
    auto padded = [](std::string s, std::size_t width) {
        return s.append(width - std::min(width, s.size()), ' ');
    };
    std::string all;
    for (const Entry& entry : entries_) {
        std::string value = text_of(entry.field);
        bool changed = value != entry.start;
        all += text(padded(entry.key, key_width), "  ", padded(value, value_width), changed ? " * " : "   ",
                    entry.help, " (", expected_of(entry.field));
        if (changed) all += ", default " + (entry.start.empty() ? "none" : entry.start);
        all += ")\n";
    }
    return all;
}

}  // namespace masquerade
