// SPDX-License-Identifier: MIT
// The parameters of a model: named slices of one buffer, their gradients the same slices of another. The optimiser,
// clipping and checkpoints see the whole at once.
//
// With storage type bf16 the buffers stay f32: they are the master weights. Matrices are then read through a rounded
// copy, which round() renews after every update; a step of less than a 256th of a weight is not lost.
//                                                            Micikevicius et al. 2018, section 3.1
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/tensor/buffer.h"
#include "engine/tensor/tensor.h"

namespace masquerade {

// How a parameter starts: zeros, ones, normal numbers of a standard deviation, cut off at two of them, or as made of
// the seed.
// Numbers that are made may be made anew every so many steps, by the number of the draw.
struct Init {
    enum Kind { zeros, ones, normal, made } kind = zeros;
    double deviation = 0;
    std::function<std::vector<double>(std::uint64_t seed, std::uint32_t draw)> make = {};
    int every = 0;  // 0: never
};

class Parameters {
  public:
    // `storage` is the type in which the ops read matrices.
    explicit Parameters(DType storage = DType::f32, Device device = Device::cpu)
        : storage_(storage), dtype_(arithmetic_of(storage)), device_(device) {}

    // Declares a parameter; weights of rank 2 take part in weight decay, biases and norms do not.
    Tensor* add(const std::string& path, const Shape& shape, Init init);
    // Declares a state: what a step changes by another rule than the optimiser's, such as a codebook or its running
    // counts.
    // Kept in checkpoints as parameters are; without gradient, never rounded.
    Tensor* add_state(const std::string& path, const Shape& shape, Init init);
    // Gives all of them memory and first values, 0 unless they are drawn. What a value is depends on (seed, path,
    // place) alone: the same model in double starts from the same numbers.
    void allocate(std::uint64_t seed, bool drawn = true);

    // Makes anew the states whose turn this step of the training is, by (seed, path, draw) alone.
    void redraw(std::int64_t step);

    // Gradients: after start the next backward stores; finish zeroes those that no backward reached.
    void start_gradients();
    void finish_gradients();

    // Renews the rounded copies of the matrices from their master weights, where something else than the optimiser,
    // which does it on its way, has changed them; nothing to do unless storage is bf16.
    void round();

    // Everything as one row of masters, for the optimiser. flat() shows a buffer of the same length: a moment.
    View values() const { return flat(values_, "parameters"); }
    View gradients() const { return flat(gradients_, "gradients"); }
    View flat(const Buffer& buffer, const char* path) const;
    // Its two trained parts: parameters of rank 2, in the order they were declared, then the others. States follow.
    View matrices(const View& flat_view) const;
    View vectors(const View& flat_view) const;
    // The copies that the ops read, of the shape of matrices(); no data unless storage is bf16.
    View rounded() const;
    // The part of a flat view that belongs to one parameter.
    View slice(const View& flat_view, const Tensor& parameter) const;
    // The values that are trained and kept: the parameter itself, or the values that its rounded copy is made from.
    View master(const Tensor& parameter) const { return slice(values(), parameter); }

    std::deque<Tensor>& all() { return tensors_; }
    const std::deque<Tensor>& all() const { return tensors_; }
    Tensor* find(const std::string& path);  // null where there is none
    const Tensor* find(const std::string& path) const;
    std::int64_t count() const;  // numbers of parameters, without the gaps of alignment and the states
    std::int64_t length() const { return length_; }  // of the flat row, with them
    DType storage() const { return storage_; }       // of matrices, as the ops read them
    DType dtype() const { return dtype_; }           // of masters, gradients and moments
    Device device() const { return device_; }

  private:
    void lay_out();

    DType storage_, dtype_;
    Device device_;
    std::deque<Tensor> tensors_;
    std::unordered_map<std::string, std::size_t> places_;  // of the paths, in tensors_
    std::deque<Init> inits_;
    std::deque<std::int64_t> starts_;
    std::int64_t length_ = 0, matrices_ = 0, trained_ = 0;
    std::uint64_t seed_ = 0;
    Buffer values_, gradients_, rounded_;
};

}  // namespace masquerade
