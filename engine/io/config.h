// SPDX-License-Identifier: MIT
// Settings as key=value, for every program. A struct of options declares each field in one line; what it
// holds then is the default:
//
//   config.add("width", &options.width, "C, model width", 1, 65536);
//   config.set("width=256");
//
// The struct must outlive the Config, which writes into it. Unknown keys, bad values and impossible sizes are
// refused with what was expected: BadUsage from the command line, BadInput from a file.
#pragma once
#include <cfloat>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/error.h"

namespace masquerade {

class Config {
  public:
    void add(const std::string& key, int* value, const std::string& help, int low = INT32_MIN,
             int high = INT32_MAX);
    void add(const std::string& key, std::int64_t* value, const std::string& help,
             std::int64_t low = INT64_MIN, std::int64_t high = INT64_MAX);
    void add(const std::string& key, std::uint64_t* value, const std::string& help, std::uint64_t low = 0,
             std::uint64_t high = UINT64_MAX);
    void add(const std::string& key, double* value, const std::string& help, double low = -DBL_MAX,
             double high = DBL_MAX);
    void add(const std::string& key, bool* value, const std::string& help);
    void add(const std::string& key, std::string* value, const std::string& help);  // any text
    void add(const std::string& key, std::string* value, const std::string& help,
             std::vector<std::string> choices);
    // One of the named values of an enumeration: add("gelu", &gelu, "...", {{"erf", GeluKind::erf}, ...})
    template <class E, class = std::enable_if_t<std::is_enum_v<E>>>
    void add(const std::string& key, E* value, const std::string& help,
             const std::vector<std::pair<std::string, E>>& choices);

    void set(const std::string& pair);                           // "key=value"; BadUsage
    void set(const std::string& key, const std::string& value);  // BadUsage
    // Lines `key = value` with # comments, or a JSON object; BadInput names the file and the line.
    void load(const std::string& path);
    void from_json(const nlohmann::json& object, const std::string& path);  // path: for messages; BadInput
    nlohmann::json to_json() const;

    bool has(const std::string& key) const { return find(key) != nullptr; }
    std::string value(const std::string& key) const;  // as text, as set() takes it
    std::vector<std::string> keys() const;            // in the order of declaration
    // By the type it was declared with: get<int>("width"). Throws Error.
    template <class T>
    const T& get(const std::string& key) const;

    // key, value (* where it is not the default), what it means and may be; aligned, one line each.
    std::string table() const;

  private:
    template <class T>
    struct Number {
        T* target;
        T low, high;
    };
    struct Word {
        std::string* target;
        std::vector<std::string> choices;  // none: any text
    };
    struct Enumeration {
        std::vector<std::string> choices;
        std::function<std::size_t()> chosen;
        std::function<void(std::size_t)> choose;
    };
    struct Flag {
        bool* target;
    };
    using Field = std::variant<Number<int>, Number<std::int64_t>, Number<std::uint64_t>, Number<double>, Flag,
                               Word, Enumeration>;
    struct Entry {
        std::string key, help, start;  // start: the default, as text
        Field field;
    };

    void declare(const std::string& key, const std::string& help, Field field);
    const Entry* find(const std::string& key) const;
    const Entry& at(const std::string& key) const;  // BadUsage with the nearest known key
    static std::string text_of(const Field& field);
    static std::string expected_of(const Field& field);
    static bool assign(const Field& field, const std::string& value);

    std::vector<Entry> entries_;
};

template <class E, class>
void Config::add(const std::string& key, E* value, const std::string& help,
                 const std::vector<std::pair<std::string, E>>& choices) {
    Enumeration field;
    std::vector<E> values;
    for (const auto& choice : choices) {
        field.choices.push_back(choice.first);
        values.push_back(choice.second);
    }
    field.chosen = [value, values] {
        std::size_t i = 0;
        while (i + 1 < values.size() && values[i] != *value) i++;
        return i;
    };
    field.choose = [value, values](std::size_t i) { *value = values[i]; };
    declare(key, help, field);
}

template <class T>
const T& Config::get(const std::string& key) const {
    const T* found = nullptr;
    std::visit(
        [&](const auto& field) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(field)>, Enumeration>)
                if constexpr (std::is_same_v<decltype(field.target), T*>) found = field.target;
        },
        at(key).field);
    if (!found) throw Error(text("setting ", key, " is read as another type than it was declared with"));
    return *found;
}

}  // namespace masquerade
