// SPDX-License-Identifier: MIT
// Settings as key=value, shared by all programs. A setting is a field of a struct of options, and is declared in one
// line. The value that the field has when it is declared becomes the default:
//
//   config.add("width", &options.width, "C, model width", 1, 65536);
//   config.set("width=256");
//
// The struct must outlive the Config, which writes into the struct. An unknown key, a malformed value or a value out of
// range is refused with a message that says what was expected: BadUsage from the command line, BadInput from a file.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace masquerade {

class Config {
    template <class T>
    using If = std::enable_if_t<T::value>;
    template <class T>
    using Bound = std::common_type_t<T>;  // T is not deduced from a parameter of this type

  public:
    // The topic of the settings that are declared after this call, such as "Attention". Help texts list settings by
    // topic.
    void topic(const std::string& title) { topic_ = title; }
    // Declares a number: int, std::int64_t, std::uint64_t or double.
    template <class T, class = If<std::is_arithmetic<T>>>
    void add(const std::string& key, T* value, const std::string& help, Bound<T> low = std::numeric_limits<T>::lowest(),
             Bound<T> high = std::numeric_limits<T>::max());
    void add(const std::string& key, bool* value, const std::string& help);
    // Declares a text. It must be one of the choices, or may be any text if there are no choices.
    void add(const std::string& key, std::string* value, const std::string& help,
             const std::vector<std::string>& choices = {});
    // Declares a text: either one of the names, or several words separated by spaces. `read` is called with the words.
    // If the words are malformed, `read` must throw BadUsage with a message that says what is expected.
    void add_words(const std::string& key, std::string* value, const std::string& help,
                   const std::vector<std::string>& names, std::function<void(const std::string&)> read);
    // Declares a text: one of the names, or a path. A relative path is stored as an absolute one, because a later
    // program may run in another folder.
    void add_path(const std::string& key, std::string* value, const std::string& help,
                  const std::vector<std::string>& names);
    // Declares a value of an enumeration: add("gelu", &gelu, "...", {{"erf", GeluKind::erf}, ...})
    template <class E, class = If<std::is_enum<E>>>
    void add(const std::string& key, E* value, const std::string& help,
             const std::vector<std::pair<std::string, E>>& choices);

    // Makes the value of `key` depend on other settings: `write` is called after each change of another setting, until
    // `key` itself is set. `write` may change the value of `key`.
    void follows(const std::string& key, std::function<void()> write);

    void set(const std::string& pair);                           // `pair` is "key=value"; may throw BadUsage
    void set(const std::string& key, const std::string& value);  // may throw BadUsage
    // Reads a file of lines `key = value`, or a JSON object. In a file of lines, a # at the start of a line or after a
    // space or tab begins a comment. If the file is wrong, throws BadInput. The message names the file and, unless the
    // file is JSON, the line.
    void load(const std::string& path);
    void from_json(const nlohmann::json& object, const std::string& path);  // may throw BadInput, which names `path`
    nlohmann::json to_json() const;

    bool has(const std::string& key) const { return find(key) != nullptr; }
    std::string value(const std::string& key) const;  // the value as text, in the form that set() accepts
    std::vector<std::string> keys() const;            // all keys, in the order of declaration

    // A setting as a help text shows it. `expected` describes the values that set() accepts: "a whole number from 1 to
    // 65536", or the choices with | between them.
    struct Setting {
        std::string topic, key, value, help, expected;
    };
    std::vector<Setting> settings() const;  // all settings, in the order of declaration

  private:
    struct Entry {
        std::string key, help, expected;
        std::function<std::string()> text;
        std::function<bool(const std::string&)> assign;  // returns false and changes nothing if the value is not valid
        // Stores the value as a JSON number or boolean. If `put` is null, text() is stored instead.
        std::function<void(nlohmann::json&)> put;
        std::string topic = {};
        std::function<void()> follow = {};  // the function given to follows(), until the key is set; else null
    };

    void declare(Entry entry);
    const Entry* find(const std::string& key) const;
    const Entry& at(const std::string& key) const;  // if `key` is unknown, throws BadUsage with the nearest known key
    Entry& at(const std::string& key) { return const_cast<Entry&>(std::as_const(*this).at(key)); }

    std::string topic_;
    std::vector<Entry> entries_;
};

template <class E, class>
void Config::add(const std::string& key, E* value, const std::string& help,
                 const std::vector<std::pair<std::string, E>>& choices) {
    std::string expected;
    for (const auto& choice : choices) expected += (expected.empty() ? "" : "|") + choice.first;
    const auto text = [=] {
        for (const auto& [name, one] : choices)
            if (one == *value) return name;
        return choices.back().first;
    };
    const auto assign = [=](const std::string& word) {
        for (const auto& [name, one] : choices)
            if (name == word) return *value = one, true;
        return false;
    };
    declare({key, help, expected, text, assign, nullptr});
}

}  // namespace masquerade
