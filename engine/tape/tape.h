// SPDX-License-Identifier: MIT
// The list of the ops of a step. A call such as linear(tape, x, w, b, "query") computes its result at once and
// appends a Record. backward() goes through the records in reverse order and calls the hand-written backward of each
// op. The tape itself contains no derivatives.
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
#include "engine/tensor/numbers.h"
#include "engine/tensor/tensor.h"

namespace masquerade {

// One computed op: its inputs, outputs, attributes, forward and backward. A record is built like this:
//     Record("linear").reads({x, w, b}).makes({y}).by(linear_forward, linear_backward)
struct Record {
    using Tensors = std::vector<Tensor*>;

    Record() = default;
    explicit Record(const char* name) : op(name) {}
    Record&& reads(Tensors tensors, const Tensors& more = {}) && {
        in = std::move(tensors);
        in.insert(in.end(), more.begin(), more.end());
        return std::move(*this);
    }
    // Sets the outputs. The backward receives gradients for the first `gradients` outputs. The remaining outputs,
    // such as the mean of a layer norm, have no gradient.
    Record&& makes(Tensors tensors, std::size_t gradients = 1) && {
        out = std::move(tensors);
        differentiable = gradients;
        return std::move(*this);
    }
    // Sets two ops of engine/ops/ops.h as forward and backward, and the attributes of the forward. Also fills `keep`
    // with the tensors that the backward reads (op_record.h). Instead of an op, the backward may be a function
    // void(const Record&) or nullptr; `keep` is then not filled.
    template <class Forward, class Backward, class... Attributes, class = typename Forward::Parameters>
    Record&& by(Forward, Backward, Attributes...) &&;
    // Sets two functions as forward and backward. The caller must fill `keep` with the tensors that the backward reads,
    // for example by keeps().
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
    // Replaces the list of tensors whose values the backward reads. Null pointers are skipped.
    Record&& keeps(const Tensors& tensors) && {
        keep.clear();
        for (Tensor* t : tensors)
            if (t) keep.push_back(t);
        return std::move(*this);
    }
    // Stores the attributes: what the forward and the backward need besides tensors. as() returns the attributes, or
    // throws Error if they are of another type.
    template <class Attributes>
    void with(Attributes a) {
        attributes = std::make_shared<const Attributes>(std::move(a));
        attributes_type = &typeid(Attributes);
    }
    template <class T>
    const T& as() const {
        if (!attributes || *attributes_type != typeid(T))
            throw Error(op, " ", path, ": its attributes are of another type");
        return *static_cast<const T*>(attributes.get());
    }

    const char* op = "";
    std::string path;
    Tensors in, out;
    Tensors keep;  // tensors whose values the backward reads
    std::size_t differentiable = 1;
    void (*forward)(const Record&) = nullptr;
    void (*backward)(const Record&) = nullptr;  // null: no gradient flows through this op
    std::shared_ptr<const void> attributes;
    const std::type_info* attributes_type = nullptr;

    View x(int i = 0) const { return in[i] ? in[i]->view() : View{}; }
    View y(int i = 0) const { return out[i]->view(); }
    View dy(int i = 0) const { return out[i]->grad_view(); }
    // Returns the gradient of input i for the backward to write, and marks this gradient as written. Returns an empty
    // Grad if the gradient is not needed. The gradient of a parameter may be finished late (Grad::late), unless the
    // record reads the parameter twice.
    Grad dx(int i = 0) const;
};

// The tape calls before() and after() around each forward and each backward of a record. engine/tape/trace.h defines
// three observers: a NaN trace, a dump and a clock.
struct Observer {
    virtual ~Observer() = default;
    virtual void before(const Record&, bool /*backward*/) {}
    virtual void after(const Record&, bool /*backward*/) {}
};

class Tape {
  public:
    struct Segment {
        std::string name;
        std::size_t begin, end;  // the records [begin, end)
    };
    // A Scope appends its name and a dot to prefix() for as long as the Scope exists. The paths of new tensors begin
    // with prefix(). The records that are appended while the Scope exists become a segment. Scopes can be nested.
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

    // `storage` is the type of activations. The arena provides the memory of the tape's tensors.
    Tape(Arena& arena, DType storage)
        : dtype(storage), device(arena.device()), arena_(arena), inputs_(arena.device()) {}

    // Begins a step and forgets the previous step. Steps with an equal `bucket` must run the same ops, and have the
    // same tensor sizes unless the arena allows other sizes (enum class Blocks).
    // If `rehearsal` is true, the step computes nothing and only plans the memory (rehearsal.h). rehearses() is false
    // if there is nothing to rehearse: this bucket already has a plan, or the arena never makes plans.
    void begin(const std::string& bucket, std::uint64_t seed = 0, std::uint32_t step = 0, bool training = false,
               bool rehearsal = false);
    bool rehearses() const { return arena_.rehearses(); }
    void end() { arena_.end_step(); }

    Scope scope(const std::string& name) { return Scope(*this, name); }
    const std::string& prefix() const { return prefix_; }
    // Returns the stream of random numbers for this step and for the path that consists of the prefix and `name`.
    Stream stream(const std::string& name) const { return make_stream(seed_, prefix_ + name, step_); }
    bool training() const { return training_; }

    // Creates a tensor without memory, for use as an output of a record; run() allocates the memory.
    Tensor* declare(const std::string& name, const Shape& shape, DType type);
    // Creates a tensor with the caller's numbers, converted to `type`. The tensor receives no gradient.
    template <class Number>
    Tensor* constant(const std::string& name, const Shape& shape, DType type, const Number* numbers) {
        Tensor* t = declare(name, shape, type);
        t->value = arena_.take(t->bytes(), &t->value_block);
        write_numbers(t->view(), numbers);
        return t;
    }
    // Returns the array in memory that ops can read (Inputs::ints). A vector that is passed by reference must outlive
    // the step; a temporary vector is stored by the tape.
    Ints ints(const std::vector<int>& numbers) { return inputs_.ints(numbers); }
    Ints ints(std::vector<int>&& numbers) { return ints(hold(std::move(numbers))); }

    // Stores a value until the next step begins, and returns a reference to it. Needed for masks and index lists that
    // the backward reads after the calling function has returned.
    template <class T>
    const T& hold(T value) {
        const auto held = std::make_shared<const T>(std::move(value));
        held_.push_back(held);
        return *held;
    }

    // Keeps the value of a tensor readable until the end of the step. Without this call, other tensors may get the
    // memory of the value as soon as the last op that uses the value has run.
    void retain(Tensor* tensor) {
        tensor->retained = true;
        arena_.retain(tensor->value_block);
    }

    // Notes that code outside the ops reads the value of a tensor now, after the ops that have run so far. Until then,
    // no other tensor gets its memory.
    void touch(const Tensor& tensor) { arena_.touch(tensor.value_block); }

    // Computes the forward of a record, appends the record to the tape, and returns its first output.
    Tensor* run(Record record);
    // Computes the gradient of the loss, a single number, with respect to every tensor that needs a gradient.
    void backward(Tensor* loss);
    // The two parts of backward(). seed_gradient() sets the gradient of the loss to 1. replay() runs the backward of
    // the records [begin, end), from the last to the first. A caller may also replay a single scope; segments() gives
    // the records of each scope.
    void seed_gradient(Tensor* loss);
    void replay(std::size_t begin, std::size_t end);

    // Activation checkpointing: scopes whose full name matches the pattern are computed again during the backward, so
    // that their values need no memory between forward and backward. In "decoder.layer.*", * stands for any characters.
    void recompute(const std::string& pattern) { recompute_.push_back(pattern); }
    void observe(Observer* observer) { observers_.push_back(observer); }
    void ignore(Observer* observer);
    bool observed() const { return !observers_.empty(); }
    // True if the memory of this step follows a plan. An earlier step of the same bucket, or a rehearsal (a run without
    // computing), has made the plan.
    bool planned() const { return arena_.planned(); }

    const std::vector<Record>& records() const { return records_; }
    const std::vector<Segment>& segments() const { return segments_; }
    // Returns a text with one line per record: number, op, paths of the inputs, "->", path and shape of the first
    // output.
    std::string program() const;

    const DType dtype;
    const Device device;

  private:
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

// True if the name matches a shell pattern such as "decoder.layer.*" (fnmatch). * stands for any characters.
bool matches(const std::string& pattern, const std::string& name);

}  // namespace masquerade
