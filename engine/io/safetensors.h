// SPDX-License-Identifier: MIT
// Files of named tensors in the safetensors format: 8 bytes with the length of a JSON header, the header, the
// numbers.
//
//   {"__metadata__": {text: text}, "name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0, 24]}, ...}
//
// Everything in a file is checked before any of it is used. Files written here also carry a checksum of all
// their bytes in the metadata, so that a single flipped bit is found; files made elsewhere need none.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/tensor/buffer.h"
#include "engine/tensor/view.h"

namespace masquerade {

// The type of the numbers of a stored tensor. A View holds f32, bf16 or f64; the other types are for states and
// other people's files.
enum class Element : unsigned char { boolean, u8, i8, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64 };
const char* name_of(Element element);  // as the format spells it: "F32"
std::size_t bytes_of(Element element);
Element element_of(DType dtype);

struct StoredTensor {
    std::string name;
    Element element = Element::f32;
    Shape shape;
    const void* data = nullptr;  // need not be aligned in other people's files
    // "C64 (2,3)" of a tensor in other people's files that no View can hold: here it is a row of bytes. Asking for it
    // is BadInput.
    std::string unreadable = {};
    std::size_t bytes() const { return std::size_t(shape.count()) * bytes_of(element); }
};

// A tensor to write, on the CPU (OnHost brings it there). The memory is the caller's and must outlive the writing call.
StoredTensor stored(const std::string& name, const View& view);
StoredTensor stored(const std::string& name, const std::vector<std::uint64_t>& numbers);
StoredTensor stored(const std::string& name, const std::vector<double>& numbers);

using Metadata = std::map<std::string, std::string>;

// Writes the file and flushes it to the disk. Wide elements come first, so that all of them are aligned.
void write_safetensors(const std::string& path, std::vector<StoredTensor> tensors, const Metadata& metadata = {});

// A file read into memory. Throws BadInput: the path, the tensor, the byte, what was expected, what was
// found.
class TensorFile {
  public:
    explicit TensorFile(const std::string& path);

    const std::string& path() const { return path_; }
    const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in the order of the file
    const Metadata& metadata() const { return metadata_; }
    const StoredTensor* find(const std::string& name) const;  // null when there is none
    const StoredTensor& at(const std::string& name) const;

    // BadInput unless the tensor is there in this shape and type.
    const StoredTensor& expect(const std::string& name, const Shape& shape, DType dtype) const;
    // The same element type and shape are demanded: a checkpoint goes back bit by bit, onto any device.
    void copy_to(const std::string& name, const View& to) const;
    // Any of F16, BF16, F32, F64 into any View of real numbers, for other people's weights.
    void convert_to(const std::string& name, const View& to) const;
    // Real numbers none of which is NaN or infinite in the type that computes with them; BadInput names the place.
    void expect_finite(const std::string& name, DType type = DType::f32) const;
    std::vector<std::uint64_t> integers(const std::string& name) const;  // of a U64 tensor
    std::vector<double> reals(const std::string& name) const;            // of an F64 tensor

  private:
    const StoredTensor& shaped(const std::string& name, const Shape& shape) const;
    std::string path_;
    std::vector<StoredTensor> tensors_;
    std::map<std::string, std::size_t> places_;
    Metadata metadata_;
    Buffer data_;
};

// All checks but the checksum, reading no more than the header: is this file whole?
void check_safetensors(const std::string& path);

}  // namespace masquerade
