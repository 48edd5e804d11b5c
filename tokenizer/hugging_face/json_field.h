// SPDX-License-Identifier: MIT
// A value of a JSON file that knows where it stands, so that what is wrong with it can be said: the file, the
// field, what was found and what was expected.
#pragma once
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "input/input.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {

class JsonField {
  public:
    JsonField(const std::string& file, const nlohmann::json& value, std::string name = "")
        : file_(&file), value_(&value), name_(std::move(name)) {}

    // null where there is no such key; the object itself must be one.
    JsonField operator[](const std::string& key) const {
        static const nlohmann::json null;
        if (!value_->is_object()) fail("an object");
        auto found = value_->find(key);
        return {*file_, found == value_->end() ? null : *found,
                name_.empty() ? clipped(key) : name_ + '.' + clipped(key)};
    }
    std::vector<JsonField> list() const {
        if (!value_->is_array()) fail("a list");
        std::vector<JsonField> items;
        for (const nlohmann::json& item : *value_)
            items.emplace_back(*file_, item, name_ + '[' + std::to_string(items.size()) + ']');
        return items;
    }
    // The same place, another value, which must stay.
    JsonField with(const nlohmann::json& value) const { return {*file_, value, name_}; }
    bool is_null() const { return value_->is_null(); }
    bool is_string() const { return value_->is_string(); }
    const nlohmann::json& value() const { return *value_; }
    std::string type() const { return (*this)["type"].string(); }

    const std::string& string() const {
        if (!value_->is_string()) fail("a string");
        return value_->get_ref<const std::string&>();
    }
    bool boolean() const {
        if (!value_->is_boolean()) fail("true or false");
        return value_->get<bool>();
    }
    int integer(int least) const {
        constexpr int most = std::numeric_limits<int>::max();
        bool fits = value_->is_number_integer() && *value_ >= least && *value_ <= most;
        if (!fits) fail("a whole number from " + std::to_string(least) + " to " + std::to_string(most));
        return value_->get<int>();
    }
    void expect(const std::string& text) const {
        if (*value_ != text) fail('"' + text + '"');
    }

    // The file and the field.
    std::string where() const { return *file_ + ": " + (name_.empty() ? "the whole" : name_); }

    [[noreturn]] void fail(const std::string& expected) const {
        std::string found = value_->is_null() ? "missing or null" : in_words(*value_);
        throw TokenizerError(where() + " is " + found + ", expected " + expected);
    }

    // Keys that nobody asks for, a note each.
    void note_others(std::initializer_list<const char*> known, std::vector<std::string>& notes) const {
        for (const auto& item : value_->items()) {
            bool expected = false;
            for (const char* key : known) expected |= item.key() == key;
            if (!expected)
                notes.push_back((*this)[item.key()].name_ + " is not known here and was passed over");
        }
    }

  private:
    const std::string* file_;
    const nlohmann::json* value_;
    std::string name_;
};

inline nlohmann::json read_json_file(const std::string& path) {
    return parse_input<TokenizerError>(read_input<TokenizerError>(path, std::size_t(1) << 30), path);
}

}  // namespace masquerade
