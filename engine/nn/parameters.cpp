// SPDX-License-Identifier: MIT
#include "engine/nn/parameters.h"

#include <algorithm>
#include <cmath>

#include "engine/base/memory.h"
#include "engine/base/random.h"
#include "engine/math/normal.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/ops/ops.h"
#include "engine/tensor/copy.h"
#include "engine/tensor/numbers.h"

namespace masquerade {
namespace {

// Returns the random number for element `place` of a tensor: standard normal, truncated to [-2, 2]. Each attempt draws
// two numbers, and the first number in [-2, 2] is the result. `attempt` is the index of the attempt to begin with.
float truncated_normal(const Stream& stream, std::uint32_t place, std::uint32_t attempt = 0) {
    for (;; attempt++) {
        Four bits = stream.at(place, attempt, 0);
        float x, y;
        normal_pair(bits[0], bits[1], x, y);
        if (x >= -2 && x <= 2) return x;
        if (y >= -2 && y <= 2) return y;
    }
}

// Writes truncated_normal() times `deviation` to x[begin] .. x[end-1]. The first attempts of a group of elements are
// computed in one loop without branches, for speed.
template <class T>
void truncated_normals(T* x, float deviation, const Stream& stream, std::int64_t begin, std::int64_t end) {
    constexpr int group = 64;
    float first[group], second[group];
    for (std::int64_t start = begin; start < end; start += group) {
        const int count = int(std::min<std::int64_t>(group, end - start));
        for (int i = 0; i < group; i++) {
            Four bits = stream.at(std::uint32_t(start + i), 0, 0);
            normal_pair(bits[0], bits[1], first[i], second[i]);
        }
        for (int i = 0; i < count; i++) {
            float z = std::fabs(first[i]) <= 2 ? first[i] : second[i];
            if (std::fabs(z) > 2) z = truncated_normal(stream, std::uint32_t(start + i), 1);
            x[start + i] = T(deviation * z);
        }
    }
}

template <class T>
void start_values(T* x, const View& view, const Init& init, const Stream& stream, std::uint64_t seed) {
    if (init.kind == Init::made) {
        const std::vector<double> numbers = init.make(seed, 0);
        for (std::size_t i = 0; i < numbers.size(); i++) x[i] = T(float(numbers[i]));
        return;
    }
    parallel_for(view.count(), 16384, [&](std::int64_t begin, std::int64_t end) {
        if (init.kind == Init::normal)
            truncated_normals(x, float(init.deviation), stream, begin, end);
        else
            std::fill(x + begin, x + end, T(init.kind == Init::ones ? 1.f : 0.f));
    });
}

}  // namespace

Tensor* Parameters::add(const std::string& path, const Shape& shape, Init init) {
    Tensor* const known = shares_ ? find(path) : nullptr;
    if (known && known->shape != shape)
        throw Error("parameter ", path, " is ", known->shape, ", and is to be shared as ", shape);
    if (known) return known;
    if (!places_.emplace(path, tensors_.size()).second) throw Error("parameter ", path, " is declared twice");
    tensors_.emplace_back();
    Tensor& t = tensors_.back();
    t.path = path;
    t.shape = shape;
    t.dtype = shape.rank > 1 ? storage_ : dtype_;
    t.device = device_;
    t.parameter = true;
    t.needs_grad = true;
    inits_.push_back(init);
    return &t;
}

Tensor* Parameters::add_state(const std::string& path, const Shape& shape, Init init) {
    Tensor* t = add(path, shape, init);
    t->dtype = dtype_;
    t->needs_grad = false;
    return t;
}

void Parameters::lay_out() {
    starts_.assign(tensors_.size(), 0);
    length_ = 0;
    // Appends the tensors for which belongs() is true to the layout, and returns the new length of the flat views.
    auto place = [&](auto belongs) {
        for (std::size_t i = 0; i < tensors_.size(); i++) {
            if (!belongs(tensors_[i])) continue;
            starts_[i] = length_;
            length_ += rounded_up(tensors_[i].shape.count(), 16);
        }
        return length_;
    };
    matrices_end_ = place([](const Tensor& t) { return t.needs_grad && t.shape.rank > 1; });
    trained_end_ = place([](const Tensor& t) { return t.needs_grad && t.shape.rank <= 1; });
    place([](const Tensor& t) { return !t.needs_grad; });
}

void Parameters::allocate(std::uint64_t seed, bool drawn) {
    lay_out();
    seed_ = seed;
    const std::size_t bytes = length_ * bytes_of(dtype_);
    values_ = Buffer::zeros(bytes, device_);  // the alignment gaps between parameters stay 0
    gradients_ = Buffer::zeros(bytes, device_);
    const OnHost first_values(values());
    if (storage_ != dtype_) rounded_ = Buffer(trained_end_ * bytes_of(storage_), device_);
    for (std::size_t i = 0; i < tensors_.size(); i++) {
        Tensor& t = tensors_[i];
        t.value = (t.dtype == dtype_ ? values() : rounded()).at(starts_[i]);
        t.grad = gradients().at(starts_[i]);
        if (rounded() && t.needs_grad) t.rounded = rounded().at(starts_[i]);
        if (!drawn) continue;
        const View start = slice(first_values.view(), t);
        with_numbers(start, [&](auto* x) { start_values(x, start, inits_[i], make_stream(seed, t.path, 0), seed); });
    }
    first_values.store();
    round();
}

void Parameters::redraw(std::int64_t step) {
    for (std::size_t i = 0; i < tensors_.size(); i++) {
        const int every = inits_[i].every;
        if (every == 0 || step == 0 || step % every) continue;
        const std::vector<double> numbers = inits_[i].make(seed_, std::uint32_t(step / every));
        // The numbers are rounded to f32, so that a model in f64 gets the same numbers as a model in f32.
        const std::vector<float> rounded(numbers.begin(), numbers.end());
        write_numbers(master(tensors_[i]), rounded.data());
    }
}

void Parameters::round() {
    if (const View copies = rounded(); copies.data) convert_forward(trained(values()), copies);
}

void Parameters::thaw() {
    for (Tensor& t : tensors_) t.packed = nullptr;
    packed_.clear();
}

void Parameters::freeze() {
    thaw();
    for (Tensor& t : tensors_)
        if (t.shape.rank == 2 && t.device == Device::cpu) t.packed = &packed_.emplace_back();
}

void Parameters::start_gradients() {
    if (!packed_.empty()) thaw();
    for (Tensor& t : tensors_) t.grad_written = false;
}

void Parameters::finish_gradients() {
    for (Tensor& t : tensors_)
        if (t.needs_grad && !t.grad_written) fill_bytes(t.grad_view(), 0);
}

View Parameters::flat(const Buffer& buffer, const char* path) const {
    return View{buffer.data(), dtype_, buffer.device(), {length_}, path};
}

View Parameters::trained(const View& all) const { return part_of(all, 0, {trained_end_}); }

View Parameters::matrices(const View& all) const { return part_of(all, 0, {matrices_end_}); }

View Parameters::vectors(const View& all) const { return part_of(all, matrices_end_, {trained_end_ - matrices_end_}); }

View Parameters::rounded() const { return View{rounded_.data(), storage_, device_, {trained_end_}, "rounded"}; }

View Parameters::slice(const View& flat_view, const Tensor& parameter) const {
    if (find(parameter.path) != &parameter) throw Error("parameter ", parameter.path, " belongs to another model");
    const std::int64_t start = starts_[places_.at(parameter.path)];
    return View{flat_view.at(start), flat_view.dtype, flat_view.device, parameter.shape, parameter.path.c_str()};
}

Tensor* Parameters::find(const std::string& path) {
    const auto found = places_.find(path);
    return found == places_.end() ? nullptr : &tensors_[found->second];
}

const Tensor* Parameters::find(const std::string& path) const { return const_cast<Parameters*>(this)->find(path); }

std::int64_t Parameters::count() const {
    std::int64_t n = 0;
    for (const Tensor& t : tensors_)
        if (t.needs_grad) n += t.shape.count();
    return n;
}

}  // namespace masquerade
