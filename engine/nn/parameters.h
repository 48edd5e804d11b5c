// SPDX-License-Identifier: MIT
// The parameters of a model: named slices of one buffer. The gradients are the same slices of another buffer. The
// optimiser, clipping and checkpoints work on whole buffers.
//
// If the storage type is bf16, the buffers stay f32 and hold the master weights; the ops read matrices from a rounded
// copy, which the optimiser renews with every update. A change of less than a 256th of a weight is therefore not lost.
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

// The initial values of a parameter: zeros, ones, normal numbers (`deviation`, truncated at two deviations), or numbers
// that the function `make` returns. If `every` is not 0, make() is called again every `every` steps, each time with
// another `draw`.
struct Init {
    enum Kind { zeros, ones, normal, made } kind = zeros;
    double deviation = 0;
    std::function<std::vector<double>(std::uint64_t seed, std::uint32_t draw)> make = {};
    int every = 0;  // 0: never again
};

class Parameters {
  public:
    // `storage` is the type of the matrices that the ops read.
    explicit Parameters(DType storage = DType::f32, Device device = Device::cpu)
        : storage_(storage), dtype_(arithmetic_of(storage)), device_(device) {}

    // Declares a parameter. Weight decay applies to parameters of rank 2, not to biases and norms.
    Tensor* add(const std::string& path, const Shape& shape, Init init);
    // Declares a state: a tensor that a step changes, but not the optimiser, such as a codebook or its running counts.
    // A state is stored in checkpoints like a parameter, has no gradient, and is never rounded.
    Tensor* add_state(const std::string& path, const Shape& shape, Init init);
    // Allocates all tensors, with initial values or, if `drawn` is false, zeros. A value depends only on (seed, path,
    // index): the same model in double starts from the same numbers.
    void allocate(std::uint64_t seed, bool drawn = true);

    // Draws those states again whose Init::every divides this training step. The numbers depend only on (seed, path,
    // draw).
    void redraw(std::int64_t step);

    // After start_gradients(), the next backward stores each gradient instead of adding to it. finish_gradients() sets
    // the gradients to 0 that no backward has written.
    void start_gradients();
    void finish_gradients();

    // Renews the rounded copies of the matrices from their master weights. Only needed if something other than the
    // optimiser, which renews the copies itself, has changed the weights. Does nothing unless storage is bf16.
    void round();

    // All master values as one row, for the optimiser. flat() returns a view of another buffer of the same length, such
    // as a moment.
    View values() const { return flat(values_, "parameters"); }
    View gradients() const { return flat(gradients_, "gradients"); }
    View flat(const Buffer& buffer, const char* path) const;
    // The two trained parts of a flat view: parameters of rank 2 in the order of declaration, then the other
    // parameters. The states follow.
    View matrices(const View& flat_view) const;
    View vectors(const View& flat_view) const;
    // The rounded copies that the ops read, in the layout of matrices(); no data unless storage is bf16.
    View rounded() const;
    // The part of a flat view that belongs to one parameter.
    View slice(const View& flat_view, const Tensor& parameter) const;
    // The values that are trained and stored: the parameter itself or, if the parameter is a rounded copy, its master
    // weights.
    View master(const Tensor& parameter) const { return slice(values(), parameter); }

    std::deque<Tensor>& all() { return tensors_; }
    const std::deque<Tensor>& all() const { return tensors_; }
    Tensor* find(const std::string& path);  // null if there is none
    const Tensor* find(const std::string& path) const;
    std::int64_t count() const;                      // number of trained values, without states and alignment gaps
    std::int64_t length() const { return length_; }  // of a flat row, with states and gaps
    DType storage() const { return storage_; }       // type of the matrices that the ops read
    DType dtype() const { return dtype_; }           // type of master weights, gradients and moments
    Device device() const { return device_; }

  private:
    void lay_out();

    DType storage_, dtype_;
    Device device_;
    std::deque<Tensor> tensors_;
    std::unordered_map<std::string, std::size_t> places_;  // index of each path in tensors_
    std::deque<Init> inits_;
    std::deque<std::int64_t> starts_;
    std::int64_t length_ = 0, matrices_ = 0, trained_ = 0;
    std::uint64_t seed_ = 0;
    Buffer values_, gradients_, rounded_;
};

}  // namespace masquerade
