// SPDX-License-Identifier: MIT
#include "engine/io/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "engine/io/checksum.h"

namespace masquerade {
namespace {

// The checksum is taken with zeros for its own digits, which are then written over them.
const std::string checksum_key = "masquerade.checksum", no_digits = "0000000000000000";

// Where the digits stand in a header; npos when it has none.
std::size_t digits_place(const std::string& json) {
    std::string before = "\"" + checksum_key + "\":\"";
    std::size_t at = json.find(before);
    return at == json.npos || at + before.size() + 16 > json.size() ? json.npos : at + before.size();
}

class HeaderReader {
  public:
    explicit HeaderReader(const FileReader& file) : file_(file) {}

    SafetensorsHeader read() {
        nlohmann::json all;
        const std::string problem = parse_bounded(read_json_text(), all, 8);
        if (!problem.empty()) refuse("its header ", problem);
        if (!all.is_object()) refuse("its header is ", in_words(all), "; a JSON object is expected");
        std::vector<Extent> extents;
        for (const auto& [name, entry] : all.items())
            if (name == "__metadata__")
                read_metadata(entry);
            else
                extents.push_back(read_tensor(name, entry));
        std::sort(extents.begin(), extents.end());
        place(extents);
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
        throw BadInput(text(file_.path(), " is not a whole safetensors file: ", parts...));
    }

    const std::string& read_json_text() {
        if (file_.size() == 0) refuse("it is empty");
        if (file_.size() < 8)
            refuse("it has ", file_.size(), " bytes; its first 8 tell the length of the header");
        unsigned char bytes[8];
        file_.read(0, bytes, 8);
        std::uint64_t length = 0;
        for (int i = 7; i >= 0; i--) length = length << 8 | bytes[i];
        if (length > largest_text || length < 2)
            refuse("its first 8 bytes announce a header of ", length, " bytes; 2 to ", largest_text,
                   " are possible. Is it another kind of file?");
        if (length > file_.size() - 8)
            refuse("its header takes ", length, " bytes from byte 8, but it ends at byte ", file_.size(),
                   ". It was cut off: copy or download it again");
        header_.json.resize(std::size_t(length));
        file_.read(8, header_.json.data(), header_.json.size());
        header_.data = 8 + length;
        header_.data_bytes = file_.size() - header_.data;
        return header_.json;
    }

    void read_metadata(const nlohmann::json& entry) {
        if (!entry.is_object())
            refuse("__metadata__ is ", in_words(entry), "; an object of strings is expected");
        for (const auto& [key, value] : entry.items()) {
            if (!value.is_string())
                refuse("__metadata__ ", clipped(key), " is ", in_words(value), "; a string is expected");
            header_.metadata[key] = value.get<std::string>();
        }
    }

    Extent read_tensor(const std::string& full_name, const nlohmann::json& entry) const {
        const std::string name = clipped(full_name, 200);  // for messages
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
        int element = 0;
        const auto* word = dtype.get_ptr<const std::string*>();
        while (element <= int(Element::f64) && !(word && *word == name_of(Element(element)))) element++;
        if (element > int(Element::f64))
            refuse("tensor ", name, " has the unknown dtype ", in_words(dtype),
                   "; F32, BF16, F64 and the like are expected");
        extent.tensor.element = Element(element);
        std::uint64_t bytes = read_shape(name, shape, extent.tensor);
        if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
            !offsets[1].is_number_unsigned())
            refuse("tensor ", name, " has data_offsets ", in_words(offsets),
                   "; two byte offsets are expected");
        extent.begin = offsets[0].get<std::uint64_t>();
        extent.end = offsets[1].get<std::uint64_t>();
        if (extent.begin > extent.end)
            refuse("tensor ", name, " ends at byte ", extent.end, " of the data, before its begin at ",
                   extent.begin);
        if (extent.end - extent.begin != bytes)
            refuse("tensor ", name, " ", extent.tensor.shape, " of ", name_of(extent.tensor.element),
                   " takes ", bytes, " bytes, but ", extent.end - extent.begin,
                   " are given to it, from byte ", extent.begin, " of the data");
        if (extent.end > header_.data_bytes)
            refuse("tensor ", name, " ends at byte ", extent.end, " of the data, which has only ",
                   header_.data_bytes, " bytes. It was cut off: copy or download it again");
        return extent;
    }

    std::uint64_t read_shape(const std::string& name, const nlohmann::json& shape,
                             StoredTensor& tensor) const {
        bool good = shape.is_array();
        if (good)
            for (const auto& size : shape) good = good && size.is_number_unsigned();
        if (!good) refuse("tensor ", name, " has shape ", in_words(shape), "; a list of sizes is expected");
        if (shape.size() > 4)
            refuse("tensor ", name, " has ", shape.size(), " dimensions; at most 4 can be read");
        std::int64_t bytes = std::int64_t(bytes_of(tensor.element));
        bool empty = false, fits = true;
        for (const auto& json_size : shape) {
            std::uint64_t size = json_size.get<std::uint64_t>();
            fits = fits && size <= INT64_MAX &&
                   (size == 0 || !__builtin_mul_overflow(bytes, std::int64_t(size), &bytes));
            empty = empty || size == 0;
            tensor.shape.size[tensor.shape.rank++] = std::int64_t(size);
        }
        if (!fits) refuse("tensor ", name, " has shape ", tensor.shape, ", more than any file can hold");
        return empty ? 0 : std::uint64_t(bytes);
    }

    // Every byte of the data belongs to exactly one tensor.
    void place(std::vector<Extent>& extents) {
        std::uint64_t end = 0;
        for (Extent& extent : extents) {
            if (extent.begin < end)
                refuse("tensor ", extent.tensor.name, " begins at byte ", extent.begin,
                       " of the data, inside tensor ", header_.tensors.back().name, ", which ends at byte ",
                       end);
            if (extent.begin > end)
                refuse("bytes ", end, " to ", extent.begin, " of the data, before tensor ",
                       extent.tensor.name, ", belong to no tensor");
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
    const auto in_text = [](const auto& value) {
        return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    std::string json = "{\"__metadata__\":{\"" + checksum_key + "\":\"" + no_digits + '"';
    for (const auto& [key, value] : metadata)
        if (key != checksum_key) json += ',' + in_text(key) + ':' + in_text(value);
    json += '}';
    std::set<std::string> names;
    std::uint64_t begin = 0;
    for (const StoredTensor& tensor : tensors) {
        if (!names.insert(tensor.name).second) throw Error(text("tensor ", tensor.name, " is written twice"));
        const std::vector<std::int64_t> shape(tensor.shape.size, tensor.shape.size + tensor.shape.rank);
        const std::uint64_t end = begin + tensor.bytes();
        json += text(',', in_text(tensor.name), ":{\"dtype\":\"", name_of(tensor.element),
                     "\",\"shape\":", in_text(shape), ",\"data_offsets\":[", begin, ',', end, "]}");
        begin = end;
    }
    json += '}';
    json.append((8 - json.size() % 8) % 8, ' ');
    return json.replace(digits_place(json), 16, checksum_found(json, tensors));
}

std::string checksum_said(const std::string& json) {
    std::size_t place = digits_place(json);
    return place == json.npos ? "" : json.substr(place, 16);
}

std::string checksum_found(std::string json, const std::vector<StoredTensor>& tensors) {
    json.replace(digits_place(json), 16, no_digits);
    std::uint64_t sum = checksum(json.data(), json.size(), 0);
    for (const StoredTensor& tensor : tensors) sum = checksum(tensor.data, tensor.bytes(), sum);
    return hexadecimal(sum);
}

}  // namespace masquerade
