// SPDX-License-Identifier: MIT
#include "engine/io/safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/named.h"
#include "engine/tensor/copy.h"
#include "engine/tensor/numbers.h"
#include "engine/io/nearest.h"
#include "engine/io/safetensors_header.h"

namespace masquerade {
namespace {

struct ElementName {
    const char* name;
    std::size_t bytes;
};
// Names and sizes in bytes of the element types, in the order of enum Element.
constexpr ElementName element_names[] = {{"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"U16", 2}, {"I16", 2},
                                         {"F16", 2},  {"BF16", 2}, {"U32", 4}, {"I32", 4}, {"F32", 4},
                                         {"U64", 8},  {"I64", 8},  {"F64", 8}};

// IEEE half precision: 1 sign, 5 exponent, 10 fraction bits.
struct float16 {
    std::uint16_t bits;
    operator float() const {
        std::uint32_t sign = std::uint32_t(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
        if (rest >= 0x7c00u) return __builtin_bit_cast(float, sign | 0x7f800000u | (rest & 0x3ffu) << 13);
        // Multiplying by 2^112 changes the bias of the exponent from 15 to 127, also for subnormal numbers.
        float size = __builtin_bit_cast(float, rest << 13) * 0x1p112f;
        return sign ? -size : size;
    }
};

// Converts numbers of type S to type T. `from` may be unaligned, because files of other programs may contain unaligned
// data.
template <class S, class T>
void convert_elements(const void* from, std::int64_t count, T* to) {
    const char* at = static_cast<const char*>(from);
    for (std::int64_t i = 0; i < count; i++, at += sizeof(S)) {
        S x;
        std::memcpy(&x, at, sizeof x);
        if constexpr (std::is_same_v<S, double>)
            to[i] = T(x);
        else
            to[i] = T(float(x));
    }
}

// Throws BadInput unless the tensor holds floating-point numbers.
void expect_real(const std::string& path, const StoredTensor& tensor) {
    switch (tensor.element) {
        case Element::f16:
        case Element::bf16:
        case Element::f32:
        case Element::f64: return;
        default:
            throw BadInput(path, ": tensor ", tensor.name, " ", tensor.shape, " holds ", name_of(tensor.element),
                           "; real numbers are expected: F16, BF16, F32 or F64");
    }
}

template <class T>
void convert(const std::string& path, const StoredTensor& tensor, T* to) {
    expect_real(path, tensor);
    std::int64_t count = tensor.shape.count();
    switch (tensor.element) {
        case Element::f16: return convert_elements<float16>(tensor.data, count, to);
        case Element::bf16: return convert_elements<bfloat16>(tensor.data, count, to);
        case Element::f32: return convert_elements<float>(tensor.data, count, to);
        case Element::f64: return convert_elements<double>(tensor.data, count, to);
        default: return;
    }
}

template <class T>
std::vector<T> values_of(const StoredTensor& tensor) {
    std::vector<T> all(tensor.shape.count());
    if (!all.empty()) std::memcpy(all.data(), tensor.data, tensor.bytes());
    return all;
}

}  // namespace

const char* name_of(Element element) { return element_names[int(element)].name; }
std::size_t bytes_of(Element element) { return element_names[int(element)].bytes; }

Element element_of(DType dtype) {
    switch (dtype) {
        case DType::f32: return Element::f32;
        case DType::bf16: return Element::bf16;
        case DType::f64: return Element::f64;
        case DType::c128: break;
    }
    throw Error("complex numbers cannot be stored in a safetensors file");
}

StoredTensor stored(const std::string& name, const View& view) {
    if (view.device != Device::cpu)
        throw Error("tensor ", name, " lies on ", name_of(view.device), "; copy it to the cpu first");
    return {name, element_of(view.dtype), view.shape, view.data};
}

StoredTensor stored(const std::string& name, const std::vector<std::uint64_t>& numbers) {
    return {name, Element::u64, {std::int64_t(numbers.size())}, numbers.data()};
}

StoredTensor stored(const std::string& name, const std::vector<double>& numbers) {
    return {name, Element::f64, {std::int64_t(numbers.size())}, numbers.data()};
}

void write_safetensors(const std::string& path, std::vector<StoredTensor> tensors, const Metadata& metadata) {
    std::stable_sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
        return bytes_of(a.element) > bytes_of(b.element);
    });
    const std::string header = make_header(tensors, metadata);
    const std::uint64_t length = header.size();
    FileWriter file(path);
    file.write(&length, 8);
    file.write(header.data(), header.size());
    for (const StoredTensor& tensor : tensors) file.write(tensor.data, tensor.bytes());
    file.finish();
}

TensorFile::TensorFile(const std::string& path) : path_(path) {
    FileReader file(path);
    SafetensorsHeader header = read_header(file);
    data_ = Buffer(std::size_t(header.data_bytes));
    file.read(header.data, data_.data(), data_.bytes());
    tensors_ = std::move(header.tensors);
    metadata_ = std::move(header.metadata);
    for (std::size_t i = 0; i < tensors_.size(); i++) {
        tensors_[i].data = data_.at(header.begin[i]);
        places_[tensors_[i].name] = i;
    }
    std::string said = checksum_said(header.json);
    if (said.empty()) return;
    std::string found = checksum_found(header.json, tensors_);
    if (said != found)
        throw BadInput(path, " is damaged: its bytes add up to the checksum ", found, ", its header says ", said,
                       ". Use another checkpoint, or copy it again. (If another program has changed the tensors on "
                       "purpose, it must leave out masquerade.checksum from the metadata)");
}

const StoredTensor* TensorFile::find(const std::string& name) const {
    auto found = places_.find(name);
    return found == places_.end() ? nullptr : &tensors_[found->second];
}

const StoredTensor& TensorFile::at(const std::string& name) const {
    if (const StoredTensor* tensor = find(name)) {
        if (!tensor->unreadable.empty())
            throw BadInput(path_, ": tensor ", name, " is ", tensor->unreadable,
                           "; at most 4 dimensions of F16, BF16, F32, F64, integers or BOOL can be read");
        return *tensor;
    }
    const std::vector<std::string> names = names_of(tensors_);
    throw BadInput(path_, " has no tensor ", name, " among its ", names.size(), did_you_mean(name, names));
}

const StoredTensor& TensorFile::shaped(const std::string& name, const Shape& shape) const {
    const StoredTensor& tensor = at(name);
    if (tensor.shape != shape)
        throw BadInput(path_, ": tensor ", name, " is ", tensor.shape, "; ", shape,
                       " is expected. Was it made with other settings?");
    return tensor;
}

const StoredTensor& TensorFile::typed(const StoredTensor& tensor, Element element) const {
    if (tensor.element != element)
        throw BadInput(path_, ": tensor ", tensor.name, " ", tensor.shape, " holds ", name_of(tensor.element), "; ",
                       name_of(element), " is expected");
    return tensor;
}

const StoredTensor& TensorFile::expect(const std::string& name, const Shape& shape, DType dtype) const {
    return typed(shaped(name, shape), element_of(dtype));
}

void TensorFile::copy_to(const std::string& name, const View& to) const {
    const StoredTensor& tensor = expect(name, to.shape, to.dtype);
    copy_bytes(tensor.data, Device::cpu, to.data, to.device, tensor.bytes());
}

void TensorFile::convert_to(const std::string& name, const View& to) const {
    const StoredTensor& tensor = shaped(name, to.shape);
    if (to.dtype == DType::c128) throw Error("tensor ", name, " is read into complex numbers; real ones are expected");
    const OnHost here = OnHost::to_write(to);
    with_numbers(here.view(), [&](auto* numbers) { convert(path_, tensor, numbers); });
    here.store();
}

void TensorFile::expect_finite(const std::string& name, DType type) const {
    const StoredTensor& tensor = at(name);
    expect_real(path_, tensor);
    std::vector<double> row(1 << 12);
    const std::int64_t count = tensor.shape.count(), most = std::int64_t(row.size());
    for (std::int64_t begin = 0; begin < count; begin += most) {
        StoredTensor part = tensor;
        part.shape = {std::min(most, count - begin)};
        part.data = static_cast<const char*>(tensor.data) + std::size_t(begin) * bytes_of(tensor.element);
        convert(path_, part, row.data());
        for (std::int64_t i = 0; i < part.shape[0]; i++)
            if (const double x = row[i]; !std::isfinite(type == DType::f64 ? x : double(float(x))))
                throw BadInput(path_, ": tensor ", name, " ", tensor.shape, " holds ", x, " as number ", begin + i,
                               " of 0 to ", count - 1, "; weights are finite",
                               std::isfinite(x) ? ", and at most 3.4e38 in float" : "", ". Use another checkpoint");
    }
}

std::vector<std::uint64_t> TensorFile::integers(const std::string& name) const {
    return values_of<std::uint64_t>(typed(at(name), Element::u64));
}

std::vector<double> TensorFile::reals(const std::string& name) const {
    return values_of<double>(typed(at(name), Element::f64));
}

void check_safetensors(const std::string& path) { read_header(FileReader(path)); }

}  // namespace masquerade
