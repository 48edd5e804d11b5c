// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "input/input.h"

namespace masquerade {
namespace {

using nlohmann::json;

// Builds the value. A parser with a callback would go over all that an object holds whenever a part of it ends.
class Builder : public nlohmann::json_sax<json> {
  public:
    Builder(const std::string& text, json& root, std::size_t offset)
        : text_(text), in_(text), root_(root), offset_(offset) {}

    std::string run() {
        if (text_.find_first_not_of(" \t\r\n") == text_.npos) return "is empty; JSON is expected";
        json::sax_parse(in_, this);
        return problem_;
    }

    bool null() override { return put(nullptr); }
    bool boolean(bool value) override { return put(value); }
    bool number_integer(std::int64_t value) override { return put(value); }
    bool number_unsigned(std::uint64_t value) override { return put(value); }
    bool number_float(double value, const std::string&) override { return put(value); }
    bool string(std::string& value) override { return put(std::move(value)); }
    bool binary(json::binary_t&) override { return false; }  // never in text
    bool start_object(std::size_t) override { return open(json::object()); }
    bool start_array(std::size_t) override { return open(json::array()); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(std::string& name) override {
        auto [place, fresh] = open_.back()->get_ref<json::object_t&>().emplace(name, nullptr);
        slot_ = &place->second;
        if (!fresh)
            problem_ =
                "has " + in_words(name) + " twice in one object, at" + byte() + "; each key once is expected";
        return fresh;
    }
    bool parse_error(std::size_t position, const std::string&, const json::exception& error) override {
        constexpr int number_too_large = 406;
        if (error.id == number_too_large)
            problem_ = "is not JSON: the number before" + byte() + " is larger than any that can be held";
        else if (position > text_.size())
            problem_ = "is not JSON: it ends in the middle, at" + byte();
        else
            problem_ = "is not JSON:" + byte() + " cannot be read";
        return false;
    }

  private:
    // As far as the parser has read.
    std::string byte() {
        const auto read = in_.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in);
        return " byte " + std::to_string(offset_ + std::size_t(read)) + " of the file";
    }
    bool put(json value) {
        json* in = open_.empty() ? nullptr : open_.back();
        if (in && in->is_array()) {
            auto& list = in->get_ref<json::array_t&>();
            list.push_back(std::move(value));
            slot_ = &list.back();
        } else {
            if (!in) slot_ = &root_;
            *slot_ = std::move(value);
        }
        return true;
    }
    bool open(json value) {
        if (open_.size() == deepest_json) {
            problem_ = "nests lists and objects deeper than " + std::to_string(deepest_json) + ", at" +
                       byte() + "; is it another kind of file?";
            return false;
        }
        put(std::move(value));
        open_.push_back(slot_);
        return true;
    }
    bool close() {
        open_.pop_back();
        return true;
    }

    const std::string& text_;
    std::istringstream in_;
    json& root_;
    std::size_t offset_;
    std::vector<json*> open_;  // the lists and objects around the next value
    json* slot_ = nullptr;     // of the last key, or the last value
    std::string problem_;
};

}  // namespace

std::string parse_bounded(const std::string& text, json& value, std::size_t offset) {
    return Builder(text, value, offset).run();
}

std::string clipped(const std::string& text, std::size_t most) {
    if (text.size() <= most) return text;
    std::size_t end = most - 3;
    while (end > 0 && (text[end] & 0xC0) == 0x80) end--;
    return text.substr(0, end) + "...";
}

std::string in_words(const json& value) {
    if (value.is_object() && value.contains("type") && value["type"].is_string())
        return "an object of type " + in_words(value["type"]);
    if (value.is_object()) return "an object";
    if (value.is_array()) return "a list of " + std::to_string(value.size());
    if (!value.is_string()) return value.dump();
    return json(clipped(value.get_ref<const std::string&>()))
        .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace masquerade
