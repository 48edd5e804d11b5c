// SPDX-License-Identifier: MIT
// The test ladder: checks that every op must pass. One row of the op table (engine/check/ops_table.cpp) describes the
// operands and the calls of an op; the checks need nothing else, and report faults by op and tensor:
//   check_calculus   the f64 backward equals the complex step of the c128 forward, up to 1e-12
//   check_precision  f32 and bf16 agree with f64, forward and every gradient, on every instruction set
//   check_contract   the op keeps the contract of ops.h: gradients are stored or added, outputs are fully written, no
//                    other memory is changed, wrong sizes and indices are refused. The results for a row do not depend
//                    on which gradients are requested, on the number of threads, or on the other rows of the batch
// The ladder uses no test framework, because the command `inspect gradients` of the program runs it, too.
#pragma once
#include "engine/base/random.h"
#include "engine/ops/ops.h"
#include "engine/tensor/buffer.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace masquerade::ladder {

// The sizes at which an op is checked. Each row of the op table defines what the three numbers mean.
struct Sizes {
    int rows = 1, columns = 1, other = 1;
    operator std::vector<int>() const { return {rows, columns, other}; }
};

enum class Role {
    input,      // an input that has a gradient
    constant,   // an input that has no gradient
    output,     // an output y that has a cotangent dy (the gradient of a loss), which the backward reads
    statistic,  // an output that has no cotangent; the backward may read its value
    updated,    // an output that the op changes in place: the op reads or keeps some old numbers
};
enum class Kind { storage, arithmetic };  // storage type S and arithmetic type A of ops.h (A is f32 if S is bf16)

// Fills an operand with random numbers.
using Draw = std::function<void(std::vector<double>&, Sequence&)>;
// Sets each number of the operand to number(random) or, with its index i, to number(i, random).
Draw each(const std::function<double(Sequence&)>& number);
Draw by_index(const std::function<double(int i, Sequence&)>& number);
Draw uniform(double low, double high);

// One tensor of a call and how to check it. `numbers` is the value of a tensor that the op reads, or the cotangent of a
// tensor with Role::output.
struct Operand {
    std::string name, path;
    Role role = Role::input;
    Shape shape;
    Kind kind = Kind::storage;
    Draw draw;
    std::vector<double> numbers;
    bool weight = false;     // the gradient has type A (f32 in a bf16 model), even if the value has type S
    bool rounded = false;    // the op rounds an intermediate value to the storage type, which adds one rounding error
    bool biased = false;     // the op adds a bias, which a GPU rounds to the storage type; this adds one rounding error
    bool any_order = false;  // a GPU may sum the gradient in another order if it also computes other gradients
    bool of_row = false;     // row n of the tensor belongs to row n of the batch; its bits depend on no other row
    bool any_rows = false;   // the op cannot detect a surplus row, so the ladder does not try one
    bool any_shape = false;  // the op cannot detect a wrong shape, so the ladder does not try one
    double length = 1;       // number of terms in the sum that gives one number of an output or of a gradient
    double factor = 2;       // number of roundings for each term of the sum that gives one number of the tensor
    double floor = 0;        // errors are divided by at least this number; needed if large terms of a sum can cancel

    Operand& from_rounded() {
        rounded = true;
        return *this;
    }
    Operand& by_row() {
        of_row = true;
        return *this;
    }
    Operand& with_any_rows() {
        any_rows = true;
        return *this;
    }
    Operand& with_any_shape() {
        any_shape = true;
        return *this;
    }
    Operand& drawn(Draw d) {
        draw = std::move(d);
        return *this;
    }
    Operand& sums(double n, double times = 2) {
        length = n;
        factor = times;
        return *this;
    }
    Operand& at_least(double size) {
        floor = size;
        return *this;
    }
    bool written() const { return role == Role::output || role == Role::statistic || role == Role::updated; }
};

struct Indices {
    std::string name;
    std::vector<int> numbers;
    bool of_row = false;
};

class Call;
class OnTape;

// An op at one size: its operands, and functions that call it.
struct Case {
    std::vector<Operand> operands;
    std::vector<Indices> indices;
    std::function<void(const Call&)> forward, backward;
    // Calls the function of nn/functions.h that records the op on a tape. If the op draws random numbers, their stream
    // is named "ladder".
    std::function<void(const OnTape&)> record;
    int rows = 0;   // number of rows of the operands with of_row = true
    Operand usual;  // default properties of the operands that are declared next

    Operand& input(const std::string& name, const Shape& shape, Kind kind = Kind::storage) {
        return add(name, Role::input, shape, kind);
    }
    Operand& constant(const std::string& name, const Shape& shape, Kind kind = Kind::storage) {
        return add(name, Role::constant, shape, kind);
    }
    Operand& output(const std::string& name, const Shape& shape, Kind kind = Kind::storage) {
        return add(name, Role::output, shape, kind);
    }
    Operand& statistic(const std::string& name, const Shape& shape, Kind kind = Kind::arithmetic) {
        return add(name, Role::statistic, shape, kind);
    }
    Operand& updated(const std::string& name, const Shape& shape, Kind kind = Kind::arithmetic) {
        return add(name, Role::updated, shape, kind);
    }
    void ints(const std::string& name, std::vector<int> numbers, bool of_row = true) {
        indices.push_back({name, std::move(numbers), of_row});
    }

    Operand& add(const std::string& name, Role role, const Shape& shape, Kind kind);
    // The operand with this name, and its index. Both throw Error if there is none.
    Operand& operator[](const std::string& name) { return operands[find(name)]; }
    std::size_t find(const std::string& name) const;
    void remove(const std::string& name) { operands.erase(operands.begin() + find(name)); }

    bool has_storage() const;
    bool has_gradient(const Operand& o) const { return backward && o.role == Role::input; }
    // Returns the case with only rows [begin, end) of the operands and index lists with of_row = true. The other
    // operands and lists are unchanged.
    Case restricted(int begin, int end) const;
};

std::vector<Sizes> boundary_sizes();
// Returns sizes in which one number is 2571. This number is larger than the tiles of every kernel, and not a multiple
// of any tile size.
std::vector<Sizes> far_sizes();

struct Op {
    std::string name;  // name in ops.h and, after a comma, the special case that this row covers: "linear, no bias"
    std::function<Case(Sizes)> make;
    // The sizes at which the checks run:
    //   small    check_calculus(), with one derivative for each number
    //   middle   check_calculus(), with derivatives along random directions
    //   all      check_precision() and check_contract()
    //   far      check_precision(), check_contract() in f32 and, if the op is not costly, check_calculus()
    // tests/ops/records_test.cpp uses small and middle, too.
    std::vector<Sizes> small = {{5, 4, 3}, {2, 7, 6}, {1, 3, 1}};
    std::vector<Sizes> middle = {{33, 65, 17}};
    std::vector<Sizes> all = boundary_sizes();
    std::vector<Sizes> far = far_sizes();
    bool costly = false;  // the op needs many operations per number, so check_calculus() leaves out the far sizes
};

// Returns the case of a row of the op table at the given sizes, with random numbers.
Case prepared(const Op& op, Sizes sizes);

// Host memory for one tensor, with guard bytes on both sides. If the device has separate memory, a Guarded also has a
// block of the same size on the device.
class Guarded {
  public:
    Guarded(const Shape& shape, DType dtype, const char* path, Device device = Device::cpu);
    const View& view() const { return view_; }  // the tensor on the host, for the checks
    View there() const;                         // the tensor on the device, for the ops
    void send() const;                          // copies tensor and guards to the device
    void fetch() const;                         // copies tensor and guards back to the host
    void fill(const std::vector<double>& numbers) const;
    void fill_with_nan() const;
    bool guards_intact() const;
    bool has_nan() const;
    std::string bytes() const;  // the bytes of the numbers, without guards

  private:
    static constexpr std::size_t guard = 256;  // size in bytes of the guard on each side of the tensor
    Buffer memory_, there_;
    View view_;
};

// True if the device has memory of its own, separate from the host's.
bool lies_apart(Device device);

complex number(const View& view, std::int64_t i);
void set_number(const View& view, std::int64_t i, complex x);
// Returns x rounded to `type`; x itself for f64 and c128.
double rounded(double x, DType type);

// Sets `worst` to `error` if `error` is larger than `worst` or NaN.
void keep_largest(double& worst, double error);
// Returns the largest absolute error of `found`, divided by the largest absolute value in `exact` or by `floor`,
// whichever is larger. Returns NaN if any error is NaN.
double error_of(const View& found, const View& exact, double floor);

// The tensors of one case, in one type. The functions of the case receive a Call. Before the op runs, the tensors that
// the op reads contain the numbers of the case, rounded to the type `like`. A tensor of Kind::arithmetic contains
// numbers rounded to the arithmetic type of `like`. All other tensors contain NaN.
class Call {
  public:
    Call(const Case& of, DType type, DType like, Device device = Device::cpu);
    Call(const Case& of, DType type) : Call(of, type, type) {}

    // Called by the functions of the op table:
    View operator()(const std::string& name) const;  // the value of the operand `name`
    View d(const std::string& name) const;           // the cotangent of the output `name`
    Grad grad(const std::string& name) const;        // the gradient of the input `name`
    Ints ints(const std::string& name) const;
    RowNames rows() const;                    // the lists "document" and "position"; empty if the case has none
    bool has(const std::string& name) const;  // true if a tensor has this name

    void forward() const { run(op.forward); }
    void backward() const { run(op.backward); }
    void both() const {  // runs the backward only if there is one
        forward();
        if (op.backward) backward();
    }
    void want(std::size_t operand, bool wanted) { unwanted_[operand] = !wanted; }
    void add(std::size_t operand, bool added = true) { added_[operand] = added; }

    const Case& op;
    // values[i] is the value of operand i. gradients[i] is its gradient if it is an input, or its cotangent if it is an
    // output; null if the operand has neither.
    std::vector<Guarded> values;
    std::vector<std::unique_ptr<Guarded>> gradients;
    mutable std::set<std::string> asked;  // names of the tensors and lists that the op has used so far: "x", "dy"

  private:
    void run(const std::function<void(const Call&)>& ops) const;
    std::vector<bool> unwanted_, added_;
    std::vector<Buffer> lists_;  // copies of the index lists in device memory; empty if the device uses host memory
};

// Calls f(operand, tensor name, memory in a, memory in b) for every result of the op: outputs and gradients.
template <class F>
void each_result(const Call& a, const Call& b, F f) {
    for (std::size_t i = 0; i < a.op.operands.size(); i++) {
        const Operand& o = a.op.operands[i];
        if (o.written()) f(o, o.name, a.values[i], b.values[i]);
        if (a.op.has_gradient(o)) f(o, "d" + o.name, *a.gradients[i], *b.gradients[i]);
    }
}

// Returns the largest error allowed for an output's values or an input's gradient, relative to the largest absolute
// value of this tensor. The arithmetic may cause an error of operand.factor * (2 + sqrt(operand.length)) times the
// rounding error of the arithmetic type (f32 if `type` is bf16). The reason for the square root is that the errors of
// the terms of a sum partly cancel. If `type` is bf16, one bf16 rounding error is added if the tensor is stored in
// bf16, one more if operand.rounded is set, and one more on a GPU if operand.biased is set.
double bound_of(const Operand& operand, DType type, Device device = Device::cpu);
std::string at(Sizes sizes);  // " at 5x4x3"

// The largest relative errors that the checks found in one tensor; -1 if a check does not apply to it.
struct Errors {
    double complex_step = -1, f32 = -1, bf16 = -1;
};

struct Findings {
    std::string op;
    std::vector<std::pair<std::string, Errors>> tensors;  // by name, "y" or "dx", in the order of their first checks
    std::vector<std::string> faults;                      // such as "layernorm dx: complex step 0.03 > 1e-12 at 5x4x3"
    long checks = 0;

    Errors& of(const std::string& tensor);
    // Counts a check. For each tensor, the first failure of each kind is recorded as a fault: "<op> <tensor>: <kind>
    // <details>".
    void expect(bool good, const std::string& tensor, const std::string& kind, const std::string& details);
    // Runs a check; an exception is recorded as a fault.
    void attempt(Sizes sizes, const std::function<void()>& check);

  private:
    std::set<std::string> kinds_;
};

void check_calculus(const Op& op, Findings& findings);
void check_precision(const Op& op, Findings& findings);
void check_contract(const Op& op, Findings& findings);
// Says how exactly two results of an op must agree: the results for some rows alone, and the results for the same rows
// in a batch. They must agree in all bits, or within the allowed errors. `near` is for cuBLASLt, whose algorithm may
// depend on the number of rows and on whether it also computes the gradient of the bias (Operand::any_order).
enum class RowsAlone { same_bits, near };
// check_precision() and check_contract() on a device. Precision is checked in f32 and bf16 against f64 on the CPU. In
// each backward, check_contract_on() requests one set of gradients, and the other gradients are absent. If `far` is
// true (for large `sizes`), it tries only two such sets, because each call takes long.
void check_precision_on(Device device, const Op& op, Sizes sizes, Findings& findings);
void check_contract_on(Device device, const Op& op, std::vector<Sizes> sizes, const std::vector<DType>& types,
                       Findings& findings, RowsAlone rows = RowsAlone::same_bits, bool far = false);

// Returns all rows of the op table.
const std::vector<Op>& ops_table();

}  // namespace masquerade::ladder
