// SPDX-License-Identifier: MIT
// The recorded program. A call such as linear(tape, x, w, b, "query") computes at once and leaves a Record behind;
// backward() walks the records in reverse and calls the hand-written backward of each. No calculus lives here.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/tape/inputs.h"
#include "engine/tape/plan.h"
#include "engine/tensor/tensor.h"

namespace masquerade {

// Record("linear").reads({x, w, b}).makes({y}).by(linear_forward, linear_backward)
struct Record {
    using Tensors = std::vector<Tensor*>;

    Record() = default;
    explicit Record(const char* name) : op(name) {}
    Record&& reads(Tensors tensors, const Tensors& more = {}) && {
        in = std::move(tensors);
        in.insert(in.end(), more.begin(), more.end());
        return std::move(*this);
    }
    // The first `gradients` of them carry a gradient to the backward; the others are statistics.
    Record&& makes(Tensors tensors, std::size_t gradients = 1) && {
        out = std::move(tensors);
        differentiable = gradients;
        return std::move(*this);
    }
    // Computed by ops of ops.h, with the attributes of the forward. The record keeps what the backward reads
    // (op_record.h). The backward may be a function as below, or nullptr.
    template <class Forward, class Backward, class... Attributes, class = typename Forward::Parameters>
    Record&& by(Forward, Backward, Attributes...) &&;
    // Computed by two functions; then keeps() names what the backward reads.
    Record&& by(void (*f)(const Record&), void (*b)(const Record&)) && {
        forward = f;
        backward = b;
        return std::move(*this);
    }
    template <class Attributes>
    Record&& by(void (*f)(const Record&), void (*b)(const Record&), Attributes a) && {
        with(std::move(a));
        return std::move(*this).by(f, b);
    }
    // These alone; null: what is absent.
    Record&& keeps(const Tensors& tensors) && {
        keep.clear();
        for (Tensor* t : tensors)
            if (t) keep.push_back(t);
        return std::move(*this);
    }
    // The attributes that the two functions need beside tensors; as() gives them back. Error if they are of another
    // type.
    template <class Attributes>
    void with(Attributes a) {
        attributes = std::make_shared<const Attributes>(std::move(a));
        attributes_type = &typeid(Attributes);
    }
    template <class T>
    const T& as() const {
        if (!attributes || *attributes_type != typeid(T))
            throw Error(text(op, " ", path, ": its attributes are of another type"));
        return *static_cast<const T*>(attributes.get());
    }

    const char* op = "";
    std::string path;
    Tensors in, out;
    Tensors keep;  // values that the backward reads
    std::size_t differentiable = 1;
    void (*forward)(const Record&) = nullptr;
    void (*backward)(const Record&) = nullptr;  // null: nothing flows through
    std::shared_ptr<const void> attributes;
    const std::type_info* attributes_type = nullptr;

    View x(int i = 0) const { return in[std::size_t(i)] ? in[std::size_t(i)]->view() : View{}; }
    View y(int i = 0) const { return out[std::size_t(i)]->view(); }
    View dy(int i = 0) const { return out[std::size_t(i)]->grad_view(); }
    // Where the backward writes the gradient of input i; absent if nobody wants it. Counts as the write.
    Grad dx(int i = 0) const;
};

// Sees every record as it is computed: NaN trace, dump, timing (tape/trace.h).
struct Observer {
    virtual ~Observer() = default;
    virtual void before(const Record&, bool /*backward*/) {}
    virtual void after(const Record&, bool /*backward*/) {}
};

class Tape {
  public:
    struct Segment {
        std::string name;
        std::size_t begin, end;  // records
    };
    // Names everything made while it lives: path prefix "name.".
    class Scope {
      public:
        Scope(Tape& tape, const std::string& name);
        ~Scope();
        Scope(const Scope&) = delete;

      private:
        Tape& tape_;
        std::string outer_;
        std::size_t begin_;
    };

    // `storage` is the type of activations; they lie where the arena does.
    Tape(Arena& arena, DType storage)
        : dtype(storage), device(arena.device()), arena_(arena), inputs_(arena.device()) {}

    // Starts a step: forgets the last one. `bucket` names all sizes that may differ between steps.
    void begin(const std::string& bucket, std::uint64_t seed = 0, std::uint32_t step = 0, bool training = false);
    // The same for a rehearsal; false: nothing is to be rehearsed, the memory of this bucket is planned or never will
    // be.
    bool begin_rehearsal(const std::string& bucket, std::uint64_t seed, std::uint32_t step);
    void end() { arena_.end_step(); }

    Scope scope(const std::string& name) { return Scope(*this, name); }
    const std::string& prefix() const { return prefix_; }
    // The random numbers of the place `name` at this step.
    Stream stream(const std::string& name) const { return make_stream(seed_, prefix_ + name, step_); }
    bool training() const { return training_; }

    // A tensor without memory yet, to be an output of run().
    Tensor* declare(const std::string& name, const Shape& shape, DType type);
    // A tensor of numbers given by the caller, converted to `type`; nothing flows into it.
    Tensor* constant(const std::string& name, const Shape& shape, DType type, const double* numbers);
    Tensor* constant(const std::string& name, const Shape& shape, DType type, const float* numbers);
    // The caller's numbers where the ops can read them; they must outlive the step.
    Ints ints(const std::vector<int>& numbers) { return inputs_.ints(numbers); }

    // A value that lives until the next step begins: what ops read of a caller that ends before they do.
    template <class T>
    const T& hold(T value) {
        const auto held = std::make_shared<const T>(std::move(value));
        held_.push_back(held);
        return *held;
    }

    // The value may be read until the end of the step; without this its memory is reused after its last op.
    void retain(Tensor* tensor) {
        tensor->retained = true;
        arena_.retain(tensor->value_block);
    }

    // Computes the record and keeps it; returns its first output.
    Tensor* run(Record record);
    // d loss / d everything, from d loss / d loss = 1. loss is (1).
    void backward(Tensor* loss);
    // The two halves of backward, for labs that walk through it scope by scope.
    void seed_gradient(Tensor* loss);
    void replay(std::size_t begin, std::size_t end);

    // Scopes whose full name matches ("decoder.layer.*", * any run of characters) are computed again in the backward
    // instead of kept.
    void recompute(const std::string& pattern) { recompute_.push_back(pattern); }
    void observe(Observer* observer) { observers_.push_back(observer); }
    void ignore(Observer* observer);
    bool observed() const { return !observers_.empty(); }
    // Whether the memory of this step was planned by an earlier one of its bucket.
    bool planned() const { return arena_.planned(); }

    const std::vector<Record>& records() const { return records_; }
    const std::vector<Segment>& segments() const { return segments_; }
    // One line a record: number, op, path, inputs -> output and its shape.
    std::string program() const;

    const DType dtype;
    const Device device;

  private:
    void forget_step(std::uint64_t seed, std::uint32_t step, bool training);
    void compute(const Record& record);
    void allocate_gradient(Tensor* tensor);
    const Segment* recomputed_segment(std::size_t record) const;

    Arena& arena_;
    Inputs inputs_;
    std::deque<Tensor> tensors_;
    std::vector<std::shared_ptr<const void>> held_;
    std::vector<Record> records_;
    std::vector<Segment> segments_;
    std::vector<std::string> recompute_;
    std::vector<Observer*> observers_;
    std::string prefix_;
    std::uint64_t seed_ = 0;
    std::uint32_t step_ = 0;
    bool training_ = false;
};

// "decoder.layer.*" style patterns.
bool matches(const std::string& pattern, const std::string& name);

}  // namespace masquerade
