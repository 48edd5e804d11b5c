// SPDX-License-Identifier: MIT
// A value in a JSON file, together with the file's name and the value's key. Error messages name the file and the key,
// and say what was found and what was expected. The template argument is the type of the exceptions.
#pragma once
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "input/input.h"

namespace masquerade {

template <class Failure>
class JsonField {
  public:
    JsonField(const std::string& file, const nlohmann::json& value, std::string name = "")
        : file_(&file), value_(&value), name_(std::move(name)) {}

    // Returns the value of a key of this object; null if the key is absent. Throws if this field is not an object.
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
    // Returns a field with the same file and key but another value. The value must outlive the returned field.
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
    // Sets `value` to this field, which must be true, false or null. If the field is null, `value` does not change.
    template <class Flag>
    void read(Flag& value) const {
        if (!is_null()) value = boolean();
    }
    template <class T = int>
    T number(T least, T most = std::numeric_limits<T>::max()) const {
        constexpr bool whole = std::is_integral_v<T>;
        const bool fits =
            (whole ? value_->is_number_integer() : value_->is_number()) && *value_ >= least && *value_ <= most;
        if (!fits) fail(whole ? "a whole number from " : "a number from ", least, " to ", most);
        return value_->get<T>();
    }
    void expect(const std::string& text) const {
        if (*value_ != text) fail('"', text, '"');
    }

    // Returns the name of the file and the path of the field in it, for messages.
    std::string where() const { return *file_ + ": " + (name_.empty() ? "the whole" : name_); }

    template <class... Parts>
    [[noreturn]] void fail(const Parts&... expected) const {
        std::ostringstream said;
        said << where() << " is " << (value_->is_null() ? "missing or null" : in_words(*value_)) << ", expected ";
        (said << ... << expected);
        throw Failure(said.str());
    }

    // Adds a note for every key of this object that is not in `known`.
    void note_others(std::initializer_list<const char*> known, std::vector<std::string>& notes) const {
        for (const auto& item : value_->items()) {
            bool expected = false;
            for (const char* key : known) expected |= item.key() == key;
            if (!expected) notes.push_back((*this)[item.key()].name_ + " is not known here and was passed over");
        }
    }

  private:
    const std::string* file_;
    const nlohmann::json* value_;
    std::string name_;
};

}  // namespace masquerade
