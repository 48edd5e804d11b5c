// SPDX-License-Identifier: MIT
// The parameters of a model: named slices of one buffer. Their gradients are the corresponding slices of a second
// buffer. The optimiser, gradient clipping and checkpoints work on whole buffers.
//
// If the storage type is bf16, both buffers are still f32, and the first buffer holds the master weights. The optimiser
// renews a copy in bf16 at every update. The ops read matrices from this copy, and vectors from the first buffer; only
// products on a GPU read the copy of a bias. An update often changes a weight by less than a 256th of its value. The
// master weights accumulate such changes; in bf16, rounding would undo most of them.
//                                                            Micikevicius et al. 2018, section 3.1
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/tensor/buffer.h"
#include "engine/tensor/packed_copy.h"
#include "engine/tensor/tensor.h"

namespace masquerade {

// The initial values of a parameter or state. `normal` means normal random numbers with mean 0 and standard deviation
// `deviation`; a number beyond two deviations is drawn again. `made` means the numbers that make() returns. If `every`
// is not 0, make() is called again every `every` training steps, with `draw` = 1, 2, 3 ...; the first call has `draw` =
// 0.
struct Init {
    enum Kind { zeros, ones, normal, made } kind = zeros;
    double deviation = 0;
    std::function<std::vector<double>(std::uint64_t seed, std::uint32_t draw)> make = {};
    int every = 0;  // 0: make() is called only by Parameters::allocate()
};

class Parameters {
  public:
    // `storage` is the type of the matrices that the ops read. All other values, and the gradients, have the
    // arithmetic type of `storage`: f32 if `storage` is bf16, else `storage` itself.
    explicit Parameters(DType storage = DType::f32, Device device = Device::cpu)
        : storage_(storage), dtype_(arithmetic_of(storage)), device_(device) {}

    // Declares a parameter. Weight decay applies to parameters with two or more dimensions, not to biases and norms.
    Tensor* add(const std::string& path, const Shape& shape, Init init);
    // Lets two parts of a model share parameters. While a Shared with on=true exists, add() and add_state() return the
    // existing tensor if its path is already declared. While none exists, declaring a path twice is an error.
    class Shared {
      public:
        Shared(Parameters& parameters, bool on) : parameters_(parameters), before_(parameters.shares_) {
            parameters_.shares_ |= on;
        }
        ~Shared() { parameters_.shares_ = before_; }
        Shared(const Shared&) = delete;
        Shared& operator=(const Shared&) = delete;

      private:
        Parameters& parameters_;
        const bool before_;
    };
    // Declares a state: a tensor that training may change, but not through the optimiser, such as a codebook or random
    // features. A state is stored in checkpoints like a parameter, has no gradient, and is never rounded to bf16.
    Tensor* add_state(const std::string& path, const Shape& shape, Init init);
    // Allocates all tensors. The tensors get their initial values or, if `drawn` is false, zeros. A random value
    // depends only on the seed, the path and the index in the tensor, so a model starts from the same numbers in f32
    // and f64.
    void allocate(std::uint64_t seed, bool drawn = true);

    // Calls make() again for each parameter or state whose Init::every is not 0 and divides `step`, the number of the
    // training step, and stores the new numbers. Step 0 changes nothing. make() gets `draw` = step / every.
    void redraw(std::int64_t step);

    // Says that the values do not change any more, until start_gradients(). Products on the CPU then keep a copy of
    // each matrix in their own layout; otherwise a product of few rows spends most of its time on this layout. The
    // copies need as much memory again as the matrices. Call freeze() again if the values have changed after all.
    void freeze();

    // Call start_gradients() before a backward and finish_gradients() after it. The first op that writes a gradient
    // then stores it instead of adding to the gradient of the previous step, and gradients that no op has written
    // become 0.
    void start_gradients();
    void finish_gradients();

    // Renews the bf16 copies from the master weights. The optimiser renews the copies itself; call this
    // function after any other change of the weights. Does nothing if the storage type is not bf16.
    void round();

    // Flat views: the values or gradients of all parameters and states (add_state()) as one vector of length() numbers.
    // The alignment gaps between the tensors stay 0. A state has no gradient, so its part of gradients() is not used.
    // flat() returns a flat view of another buffer of length() numbers, such as the optimiser's moments.
    View values() const { return flat(values_, "parameters"); }
    View gradients() const { return flat(gradients_, "gradients"); }
    View flat(const Buffer& buffer, const char* path) const;
    // The part of a flat view that the optimiser updates, without the states that follow it.
    View trained(const View& flat_view) const;
    // The two pieces of trained(): first the parameters with two or more dimensions, then all other parameters, each in
    // the order of declaration.
    View matrices(const View& flat_view) const;
    View vectors(const View& flat_view) const;
    // The bf16 copies, in the layout of trained(). If the storage type is not bf16, there are no copies, and the view
    // has no data.
    View rounded() const;
    // The part of a flat view that belongs to one parameter.
    View slice(const View& flat_view, const Tensor& parameter) const;
    // The values of a parameter or a state that are saved in checkpoints: the tensor itself or, if the tensor is a bf16
    // copy, its master weights.
    View master(const Tensor& parameter) const { return slice(values(), parameter); }

    std::deque<Tensor>& all() { return tensors_; }
    const std::deque<Tensor>& all() const { return tensors_; }
    Tensor* find(const std::string& path);  // null if no parameter or state has this path
    const Tensor* find(const std::string& path) const;
    std::int64_t count() const;                      // number of trained values, without states and alignment gaps
    std::int64_t length() const { return length_; }  // length of values(), with states and alignment gaps
    DType storage() const { return storage_; }       // type of the matrices that the ops read
    DType dtype() const { return dtype_; }           // type of master weights, gradients and moments
    Device device() const { return device_; }

  private:
    void lay_out();
    void thaw();  // ends freeze()

    bool shares_ = false;  // true while a Shared with on=true exists
    DType storage_, dtype_;
    Device device_;
    std::deque<Tensor> tensors_;
    std::unordered_map<std::string, std::size_t> places_;  // the index in tensors_ of each path
    std::deque<Init> inits_;
    std::deque<std::int64_t> starts_;
    std::int64_t length_ = 0;
    // The ends of matrices() and of vectors() in a flat view, counted in numbers. The states follow after trained_end_.
    std::int64_t matrices_end_ = 0, trained_end_ = 0;
    std::uint64_t seed_ = 0;
    Buffer values_, gradients_, rounded_;
    std::deque<PackedCopy> packed_;  // of freeze()
};

}  // namespace masquerade
