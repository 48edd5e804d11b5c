// SPDX-License-Identifier: MIT
#include "engine/io/safetensors_header.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "engine/base/log.h"
#include "engine/base/printable.h"
#include "engine/io/checksum.h"

namespace masquerade {
namespace {

// The header contains the checksum. While the checksum is computed, zeros take the place of its digits.
const std::string checksum_key = "masquerade.checksum", no_digits = "0000000000000000";

// Returns the offset of the checksum's digits in a header; npos if the header has no checksum.
std::size_t checksum_offset(const std::string& json) {
    std::string before = "\"" + checksum_key + "\":\"";
    std::size_t at = json.find(before);
    return at == json.npos || at + before.size() + 16 > json.size() ? json.npos : at + before.size();
}

// Returns the bits per number, for dtypes of the safetensors format that Element lacks; 0 if the dtype is unknown.
int bits_per_number(const std::string& dtype) {
    static const std::map<std::string, int> bits = {{"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6},
                                                    {"F8_E5M2", 8},     {"F8_E4M3", 8},     {"F8_E8M0", 8},
                                                    {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8}, {"C64", 64}};
    const auto found = bits.find(dtype);
    return found == bits.end() ? 0 : found->second;
}

class HeaderReader {
  public:
    explicit HeaderReader(const FileReader& file) : file_(file) {}

    SafetensorsHeader read() {
        nlohmann::json all;
        const std::string problem = parse_bounded(read_json_text(), all, 8);
        if (!problem.empty()) refuse("its header ", problem);
        if (!all.is_object()) refuse("its header is ", in_words(all), "; a JSON object is expected");
        if (header_.json[0] == '\xEF') refuse("its header begins with a byte order mark; a brace is expected");
        std::vector<Extent> extents;
        for (const auto& [name, entry] : all.items())
            if (name == "__metadata__")
                read_metadata(entry);
            else
                extents.push_back(read_tensor(name, entry));
        std::sort(extents.begin(), extents.end());
        store_tensors(extents);
        return std::move(header_);
    }

  private:
    struct Extent {
        std::uint64_t begin, end;
        StoredTensor tensor;
        bool operator<(const Extent& other) const {
            return std::tie(begin, end, tensor.name) < std::tie(other.begin, other.end, other.tensor.name);
        }
    };

    template <class... Parts>
    [[noreturn]] void refuse(const Parts&... parts) const {
        // The text is escaped, because a NUL character in a name would end the message.
        throw BadInput(file_.path(), " is not a whole safetensors file: ", printable(text(parts...)));
    }

    const std::string& read_json_text() {
        if (file_.size() == 0) refuse("it is empty");
        if (file_.size() < 8) refuse("it has ", file_.size(), " bytes; its first 8 tell the length of the header");
        std::uint64_t length = 0;  // in the file, the lowest byte comes first, as in the memory of this machine
        file_.read(0, &length, 8);
        if (length > largest_text || length < 2)
            refuse("its first 8 bytes announce a header of ", length, " bytes; 2 to ", largest_text,
                   " are possible. Is it another kind of file?");
        if (length > file_.size() - 8)
            refuse("its header takes ", length, " bytes from byte 8, but it ends at byte ", file_.size(),
                   ". It was cut off: copy or download it again");
        header_.json.resize(length);
        file_.read(8, header_.json.data(), header_.json.size());
        header_.data = 8 + length;
        header_.data_bytes = file_.size() - header_.data;
        return header_.json;
    }

    void read_metadata(const nlohmann::json& entry) {
        if (!entry.is_object()) refuse("__metadata__ is ", in_words(entry), "; an object of strings is expected");
        for (const auto& [key, value] : entry.items()) {
            if (!value.is_string())
                refuse("__metadata__ ", clipped(key), " is ", in_words(value), "; a string is expected");
            header_.metadata[key] = value.get<std::string>();
        }
    }

    Extent read_tensor(const std::string& full_name, const nlohmann::json& entry) const {
        const std::string name = clipped(full_name, 200);  // shortened, for messages
        if (!entry.is_object())
            refuse("tensor ", name, " is described by ", in_words(entry), "; an object is expected");
        auto part = [&](const char* key) -> const nlohmann::json& {
            auto found = entry.find(key);
            if (found == entry.end()) refuse("tensor ", name, " has no \"", key, "\"");
            return *found;
        };
        const nlohmann::json &dtype = part("dtype"), &shape = part("shape"), &offsets = part("data_offsets");
        Extent extent{};
        extent.tensor.name = full_name;
        if (!dtype.is_string())
            refuse("tensor ", name, " has the unknown dtype ", in_words(dtype),
                   "; F32, BF16, F64 and the like are expected");
        const std::string word = dtype.get<std::string>();
        int element = 0;
        while (element <= int(Element::f64) && word != name_of(Element(element))) element++;
        const bool known = element <= int(Element::f64);
        if (known) extent.tensor.element = Element(element);
        std::optional<std::uint64_t> bytes =
            read_shape(name, shape, known ? 8 * int(bytes_of(Element(element))) : bits_per_number(word), extent.tensor);
        if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
            !offsets[1].is_number_unsigned())
            refuse("tensor ", name, " has data_offsets ", in_words(offsets), "; two byte offsets are expected");
        extent.begin = offsets[0].get<std::uint64_t>();
        extent.end = offsets[1].get<std::uint64_t>();
        if (extent.begin > extent.end)
            refuse("tensor ", name, " ends at byte ", extent.end, " of the data, before its begin at ", extent.begin);
        if (bytes && extent.end - extent.begin != *bytes)
            refuse("tensor ", name, " ", in_words_of(shape), " of ", clipped(word), " takes ", *bytes, " bytes, but ",
                   extent.end - extent.begin, " are given to it, from byte ", extent.begin, " of the data");
        if (extent.end > header_.data_bytes)
            refuse("tensor ", name, " ends at byte ", extent.end, " of the data, which has only ", header_.data_bytes,
                   " bytes. It was cut off: copy or download it again");
        if (!known || shape.size() > 4) {
            extent.tensor.unreadable = text(printable(clipped(word)), " ", in_words_of(shape));
            extent.tensor.element = Element::u8;
            extent.tensor.shape = {std::int64_t(extent.end - extent.begin)};
        }
        return extent;
    }

    // Returns the shape as text: "(2,3)".
    static std::string in_words_of(const nlohmann::json& shape) {
        std::string all;
        for (const auto& size : shape) all += (all.empty() ? "" : ",") + size.dump();
        return '(' + clipped(all) + ')';
    }

    // Stores the shape in `tensor` if there are at most four dimensions. Each number of the tensor has `bits` bits;
    // returns the number of bytes of all numbers. If the dtype is unknown, `bits` is 0, and the result is nullopt.
    std::optional<std::uint64_t> read_shape(const std::string& name, const nlohmann::json& shape, int bits,
                                            StoredTensor& tensor) const {
        bool good = shape.is_array();
        if (good)
            for (const auto& size : shape) good = good && size.is_number_unsigned();
        if (!good) refuse("tensor ", name, " has shape ", in_words(shape), "; a list of sizes is expected");
        std::int64_t all = 1;
        bool empty = false, fits = true;
        for (const auto& json_size : shape) {
            std::uint64_t size = json_size.get<std::uint64_t>();
            fits = fits && size <= INT64_MAX && (size == 0 || !__builtin_mul_overflow(all, std::int64_t(size), &all));
            empty = empty || size == 0;
            if (shape.size() <= 4) tensor.shape.size[tensor.shape.rank++] = std::int64_t(size);
        }
        fits = fits && (empty || !__builtin_mul_overflow(all, std::max(bits, 1), &all));
        if (!fits) refuse("tensor ", name, " has shape ", in_words_of(shape), ", more than any file can hold");
        if (bits == 0) return std::nullopt;
        if (!empty && all % 8 != 0)
            refuse("tensor ", name, " ", in_words_of(shape), " takes ", all, " bits, which are no whole bytes");
        return empty ? 0 : std::uint64_t(all) / 8;
    }

    // Checks that every byte of the data belongs to exactly one tensor, and stores the tensors in the header.
    void store_tensors(std::vector<Extent>& extents) {
        std::uint64_t end = 0;
        for (Extent& extent : extents) {
            if (extent.begin < end)
                refuse("tensor ", extent.tensor.name, " begins at byte ", extent.begin, " of the data, inside tensor ",
                       header_.tensors.back().name, ", which ends at byte ", end);
            if (extent.begin > end)
                refuse("bytes ", end, " to ", extent.begin, " of the data, before tensor ", extent.tensor.name,
                       ", belong to no tensor");
            end = extent.end;
            header_.begin.push_back(extent.begin);
            header_.tensors.push_back(std::move(extent.tensor));
        }
        if (end != header_.data_bytes)
            refuse("its tensors end at byte ", end, " of the data, but ", header_.data_bytes,
                   " bytes of data follow the header");
    }

    const FileReader& file_;
    SafetensorsHeader header_;
};

}  // namespace

SafetensorsHeader read_header(const FileReader& file) { return HeaderReader(file).read(); }

std::string make_header(const std::vector<StoredTensor>& tensors, const Metadata& metadata) {
    using Json = nlohmann::ordered_json;
    // Builds the objects from lists, because ordered_json would compare each inserted key with all earlier keys.
    Json::object_t marks = {{checksum_key, no_digits}}, all;
    for (const auto& [key, value] : metadata)
        if (key != checksum_key) marks.push_back({key, value});
    all.push_back({"__metadata__", std::move(marks)});
    std::set<std::string> names;
    std::uint64_t begin = 0;
    for (const StoredTensor& tensor : tensors) {
        if (!names.insert(tensor.name).second) throw Error("tensor ", tensor.name, " is written twice");
        const std::vector<std::int64_t> shape(tensor.shape.size, tensor.shape.size + tensor.shape.rank);
        const std::uint64_t end = begin + tensor.bytes();
        all.push_back(
            {tensor.name, {{"dtype", name_of(tensor.element)}, {"shape", shape}, {"data_offsets", {begin, end}}}});
        begin = end;
    }
    std::string json = Json(std::move(all)).dump(-1, ' ', false, Json::error_handler_t::replace);
    json.append((8 - json.size() % 8) % 8, ' ');
    return json.replace(checksum_offset(json), 16, checksum_found(json, tensors));
}

std::string checksum_said(const std::string& json) {
    std::size_t place = checksum_offset(json);
    return place == json.npos ? "" : json.substr(place, 16);
}

std::string checksum_found(std::string json, const std::vector<StoredTensor>& tensors) {
    json.replace(checksum_offset(json), 16, no_digits);
    std::uint64_t sum = checksum(json.data(), json.size(), 0);
    for (const StoredTensor& tensor : tensors) sum = checksum(tensor.data, tensor.bytes(), sum);
    return hexadecimal(sum);
}

}  // namespace masquerade
