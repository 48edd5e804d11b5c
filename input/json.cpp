// SPDX-License-Identifier: MIT
#include <charconv>
#include <istream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <streambuf>
#include <vector>

#include "input/input.h"
#include "input/utf8.h"

namespace masquerade {
namespace {

using nlohmann::json;

// A stream buffer that reads the text in place. A string stream would copy the text, which doubles the memory.
struct TextBuffer : std::streambuf {
    explicit TextBuffer(std::string_view text) {
        char* const begin = const_cast<char*>(text.data());  // safe, because the stream only reads
        setg(begin, begin, begin + text.size());
    }
    std::size_t read() const { return gptr() - eback(); }
};

// Builds the JSON value from the events of the library's parser, and checks the limits and the keys on the way. The
// library's own builder could make these checks in a callback, but would be slower: each time an object ends, it visits
// all members of the object or list around it.
class Builder : public nlohmann::json_sax<json> {
  public:
    Builder(std::string_view text, json& root, std::size_t offset, std::size_t most)
        : text_(text), buffer_(text), root_(root), offset_(offset), most_(most) {}

    std::string run() {
        if (text_.find_first_not_of(" \t\r\n") == text_.npos) return "is empty; JSON is expected";
        std::istream in(&buffer_);
        json::sax_parse(in, this);
        // The parser treats a NUL byte as the end of the text, so what follows it would be ignored.
        const std::size_t nul = problem_.empty() ? text_.find('\0') : text_.npos;
        if (nul != text_.npos) problem_ = "is not JSON:" + byte(nul + 1) + " cannot be read";
        return problem_;
    }

    bool null() override { return put(nullptr); }
    bool boolean(bool value) override { return put(value); }
    bool number_integer(std::int64_t value) override { return put(value); }
    bool number_unsigned(std::uint64_t value) override { return put(value); }
    bool number_float(double value, const std::string&) override { return put(value); }
    bool string(std::string& value) override { return put(std::move(value)); }
    bool binary(json::binary_t&) override { return false; }  // binary values do not occur in JSON text
    bool start_object(std::size_t) override { return open(json::object()); }
    bool start_array(std::size_t) override { return open(json::array()); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(std::string& name) override {
        auto [place, fresh] = open_.back()->get_ref<json::object_t&>().emplace(name, nullptr);
        slot_ = &place->second;
        return fresh ||
               refuse("has ", in_words(name), " twice in one object, at", byte(), "; each key once is expected");
    }
    bool parse_error(std::size_t position, const std::string&, const json::exception& error) override {
        constexpr int number_too_large = 406;
        if (error.id == number_too_large)
            return refuse("is not JSON: the number before", byte(), " is larger than any that can be held");
        if (position > text_.size()) return refuse("is not JSON: it ends in the middle, at", byte());
        return refuse("is not JSON:", byte(), " cannot be read");
    }

  private:
    template <class... Parts>
    bool refuse(const Parts&... parts) {
        std::ostringstream all;
        (all << ... << parts);
        problem_ = all.str();
        return false;
    }
    // Returns the position up to which the parser has read, in words for messages.
    std::string byte() const { return byte(buffer_.read()); }
    std::string byte(std::size_t place) const { return " byte " + std::to_string(offset_ + place) + " of the file"; }
    bool put(json value) {
        if (count_++ == most_)
            return refuse("holds more than ", most_, " values, the most that are read; is it another kind of file?");
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
        if (open_.size() == deepest_json)
            return refuse("nests lists and objects deeper than ", deepest_json, ", at", byte(),
                          "; is it another kind of file?");
        if (!put(std::move(value))) return false;
        open_.push_back(slot_);
        return true;
    }
    bool close() {
        open_.pop_back();
        return true;
    }

    const std::string_view text_;
    TextBuffer buffer_;
    json& root_;
    const std::size_t offset_, most_;
    std::size_t count_ = 0;    // number of JSON values read so far
    std::vector<json*> open_;  // lists and objects that have not ended, the innermost last
    json* slot_ = nullptr;     // key() sets it to the place for the key's value; put() sets it to the stored value
    std::string problem_;
};

}  // namespace

std::string parse_bounded(std::string_view text, json& value, std::size_t offset, std::size_t most) {
    return Builder(text, value, offset, most).run();
}

constexpr const char* uri = "file://";

std::string json_name(const std::string& bytes) {
    if (bytes.rfind(uri, 0) != 0 && is_utf8(bytes)) return bytes;
    std::string text = uri;
    for (const char c : bytes) {
        const bool plain = c > ' ' && c < 0x7F && c != '%';
        constexpr const char* digits = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(c);
        text += plain ? std::string(1, c) : std::string{'%', digits[byte >> 4], digits[byte & 15]};
    }
    return text;
}

std::string name_in_json(const std::string& text) {
    if (text.rfind(uri, 0) != 0) return text;
    std::string bytes;
    for (std::size_t at = std::string(uri).size(); at < text.size(); at++) {
        unsigned byte = 0;
        const char* const digits = text.data() + at + 1;
        const bool coded =
            text[at] == '%' && at + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
        bytes += coded ? char(byte) : text[at];
        at += coded ? 2 : 0;
    }
    return bytes;
}

std::string clipped(const std::string& text, std::size_t most) {
    if (text.size() <= most) return text;
    std::size_t end = most - 3;
    while (end > 0 && !starts_code_point(text[end])) end--;
    return text.substr(0, end) + "...";
}

std::string in_words(const json& value) {
    if (value.is_object() && value.contains("type") && value["type"].is_string())
        return "an object of type " + in_words(value["type"]);
    if (value.is_object()) return "an object";
    if (value.is_array()) return "a list of " + std::to_string(value.size());
    if (!value.is_string()) return value.dump();
    return json(clipped(value.get_ref<const std::string&>())).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace masquerade
