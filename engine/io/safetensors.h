// SPDX-License-Identifier: MIT
// Files of named tensors in the safetensors format: 8 bytes with the length of a JSON header, the header, the data.
//
//   {"__metadata__": {text: text}, "name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0, 24]}, ...}
//
// A file is checked completely before any of its data is used. Files that write_safetensors() writes also have a
// checksum of all their bytes in the metadata, so that a single flipped bit is detected. Files from other programs need
// no checksum.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/tensor/buffer.h"
#include "engine/tensor/view.h"

namespace masquerade {

// The element type of a stored tensor. f32, bf16 and f64 are the types that a View can have, too. The other types occur
// in checkpoints (u64) and in files from other programs.
enum class Element : unsigned char { boolean, u8, i8, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64 };
const char* name_of(Element element);  // the spelling of the safetensors format: "F32"
std::size_t bytes_of(Element element);
Element element_of(DType dtype);

struct StoredTensor {
    std::string name;
    Element element = Element::f32;
    Shape shape;
    const void* data = nullptr;  // may be unaligned in files from other programs
    // Empty if the tensor can be read. If Element lacks the dtype of the tensor, or if the tensor has more than four
    // dimensions, the tensor cannot be read. In this case, `unreadable` is the dtype and the shape as text, such as
    // "C64 (2,3)", `shape` and `element` describe a row of bytes, and TensorFile::at() throws BadInput.
    std::string unreadable = {};
    std::size_t bytes() const { return std::size_t(shape.count()) * bytes_of(element); }
};

// Describes a tensor to be written. The tensor must be on the CPU (see OnHost), and its memory must exist until the
// file is written.
StoredTensor stored(const std::string& name, const View& view);
StoredTensor stored(const std::string& name, const std::vector<std::uint64_t>& numbers);
StoredTensor stored(const std::string& name, const std::vector<double>& numbers);

using Metadata = std::map<std::string, std::string>;

// Writes the file and flushes it to disk. Tensors are sorted by element size, largest first, so that all of them are
// aligned.
void write_safetensors(const std::string& path, std::vector<StoredTensor> tensors, const Metadata& metadata = {});

// A safetensors file in memory. Its functions throw BadInput if the file is not as expected. The message names the
// path, the tensor, and what was expected and found.
class TensorFile {
  public:
    explicit TensorFile(const std::string& path);

    const std::string& path() const { return path_; }
    const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in the order of their data in the file
    const Metadata& metadata() const { return metadata_; }
    const StoredTensor* find(const std::string& name) const;  // null if there is no such tensor
    const StoredTensor& at(const std::string& name) const;

    // Returns the tensor. Throws BadInput if the file has no tensor with this name, shape and type.
    const StoredTensor& expect(const std::string& name, const Shape& shape, DType dtype) const;
    // Copies the tensor unchanged, to any device. The shape and the element type must match.
    void copy_to(const std::string& name, const View& to) const;
    // Converts F16, BF16, F32 or F64 into a View of real numbers with the same shape, for weights from other programs.
    void convert_to(const std::string& name, const View& to) const;
    // Throws BadInput if a number is NaN, or if it is infinite after conversion to `type`, the type in which the model
    // computes. The message names the index of the number.
    void expect_finite(const std::string& name, DType type = DType::f32) const;
    std::vector<std::uint64_t> integers(const std::string& name) const;  // the tensor must be U64
    std::vector<double> reals(const std::string& name) const;            // the tensor must be F64

  private:
    const StoredTensor& shaped(const std::string& name, const Shape& shape) const;
    const StoredTensor& typed(const StoredTensor& tensor, Element element) const;
    std::string path_;
    std::vector<StoredTensor> tensors_;
    std::map<std::string, std::size_t> places_;
    Metadata metadata_;
    Buffer data_;
};

// Throws BadInput if the header of a file contradicts itself or the file's size. Reads only the header, so the checksum
// is not checked.
void check_safetensors(const std::string& path);

}  // namespace masquerade
