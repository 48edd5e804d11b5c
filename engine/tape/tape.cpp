// SPDX-License-Identifier: MIT
#include "engine/tape/tape.h"

#include <fnmatch.h>

#include <algorithm>
#include <sstream>

#include "engine/tensor/copy.h"

namespace masquerade {

Grad Record::dx(int i) const {
    Tensor* t = in[i];
    if (!t || !t->needs_grad) return Grad{};
    bool add = t->grad_written;
    t->grad_written = true;
    Grad gradient{t->grad_view(), add};
    gradient.late = t->parameter && std::count(in.begin(), in.end(), t) == 1;
    return gradient;
}

Tape::Scope::Scope(Tape& tape, const std::string& name)
    : tape_(tape), outer_(tape.prefix_), begin_(tape.records_.size()) {
    tape.prefix_ += name + ".";
}

Tape::Scope::~Scope() {
    std::string name = std::move(tape_.prefix_);
    tape_.prefix_ = std::move(outer_);
    if (std::uncaught_exceptions() > 0) return;  // the exception may be std::bad_alloc, so nothing is allocated
    name.pop_back();
    tape_.segments_.push_back(Segment{std::move(name), begin_, tape_.records_.size()});
}

void Tape::begin(const std::string& bucket, std::uint64_t seed, std::uint32_t step, bool training, bool rehearsal) {
    tensors_.clear();
    held_.clear();
    records_.clear();
    segments_.clear();
    prefix_.clear();
    seed_ = seed;
    step_ = step;
    training_ = training;
    inputs_.begin_step();
    forget_late_sums(device);
    arena_.begin_step(bucket, rehearsal);
}

void Tape::ignore(Observer* observer) {
    observers_.erase(std::remove(observers_.begin(), observers_.end(), observer), observers_.end());
}

Tensor* Tape::declare(const std::string& name, const Shape& shape, DType type) {
    tensors_.emplace_back();
    Tensor& t = tensors_.back();
    t.path = prefix_ + name;
    t.shape = shape;
    t.dtype = type;
    t.device = device;
    return &t;
}

void Tape::compute(const Record& record) {
    arena_.tick();
    for (Tensor* t : record.out) {
        t->value = arena_.take(t->bytes(), &t->value_block);
        if (t->retained) arena_.retain(t->value_block);
    }
    for (Tensor* t : record.in)
        if (t) arena_.touch(t->value_block);
    for (Observer* o : observers_) o->before(record, false);
    record.forward(record);
    for (Observer* o : observers_) o->after(record, false);
}

Tensor* Tape::run(Record record) {
    record.path = record.out[0]->path;
    if (record.backward)
        for (Tensor* t : record.in)
            for (std::size_t i = 0; t && t->needs_grad && i < record.differentiable; i++)
                record.out[i]->needs_grad = true;
    compute(record);
    records_.push_back(std::move(record));
    return records_.back().out[0];
}

void Tape::allocate_gradient(Tensor* t) {
    if (!t || !t->needs_grad) return;
    if (!t->grad) t->grad = arena_.take(t->bytes(), &t->grad_block);
    arena_.touch(t->grad_block);
}

void Tape::seed_gradient(Tensor* loss) {
    if (loss->shape.count() != 1) throw Error("backward starts from one number, ", loss->path, " is ", loss->shape);
    if (!loss->needs_grad) throw Error("backward from ", loss->path, ": no parameter lies upstream of it");
    arena_.tick();
    allocate_gradient(loss);
    const double one = 1;
    write_numbers(loss->grad_view(), &one);
    loss->grad_written = true;
}

void Tape::backward(Tensor* loss) {
    for (const std::string& pattern : recompute_)
        if (std::none_of(segments_.begin(), segments_.end(),
                         [&](const Segment& s) { return matches(pattern, s.name); }))
            throw BadUsage("recompute=", pattern, ": no scope of this step has such a name; expected one such as ",
                           segments_.empty() ? "layer.0" : segments_[0].name, " (* stands for any characters)");
    seed_gradient(loss);
    replay(0, records_.size());
}

// Returns the outermost scope that is to be recomputed and whose last record is `record`; null if there is none.
const Tape::Segment* Tape::recomputed_segment(std::size_t record) const {
    const Segment* found = nullptr;
    for (const Segment& s : segments_) {
        if (s.end != record + 1 || s.begin == s.end || (found && s.begin >= found->begin)) continue;
        for (const std::string& pattern : recompute_)
            if (matches(pattern, s.name)) found = &s;
    }
    return found;
}

void Tape::replay(std::size_t begin, std::size_t end) {
    std::size_t recomputed_from = records_.size();
    for (std::size_t i = end; i-- > begin;) {
        if (!recompute_.empty() && i < recomputed_from)
            if (const Segment* s = recomputed_segment(i)) {
                for (std::size_t j = s->begin; j < s->end; j++) compute(records_[j]);
                recomputed_from = s->begin;
            }
        const Record& r = records_[i];
        const auto end_of_gradients = r.out.begin() + std::ptrdiff_t(r.differentiable);
        const auto reached = [](const Tensor* t) { return t->grad_written; };
        if (!r.backward || std::none_of(r.out.begin(), end_of_gradients, reached)) continue;
        arena_.tick();
        for (auto t = r.out.begin(); t != end_of_gradients; ++t) {
            allocate_gradient(*t);
            if (!(*t)->grad_written) fill_bytes((*t)->grad_view(), 0);  // the loss does not depend on this output
        }
        for (Tensor* t : r.keep) arena_.touch(t->value_block);
        for (Tensor* t : r.in) {
            allocate_gradient(t);
            if (t && t->parameter && t->grad_written) add_late_sums(device, t->grad);
        }
        for (Observer* o : observers_) o->before(r, true);
        r.backward(r);
        if (observed()) add_late_sums(device);
        for (Observer* o : observers_) o->after(r, true);
    }
    add_late_sums(device);
}

std::string Tape::program() const {
    std::ostringstream out;
    for (std::size_t i = 0; i < records_.size(); i++) {
        const Record& r = records_[i];
        out << '#' << (i < 10 ? "0" : "") << i << ' ' << r.op
            << std::string(std::max<int>(1, 14 - int(std::string(r.op).size())), ' ');
        for (std::size_t k = 0; k < r.in.size(); k++)
            if (r.in[k]) out << (k ? " " : "") << r.in[k]->path;
        out << " -> " << r.out[0]->path << ' ' << r.out[0]->shape << '\n';
    }
    return out.str();
}

bool matches(const std::string& pattern, const std::string& name) {
    return fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace masquerade
