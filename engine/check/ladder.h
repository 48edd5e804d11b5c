// SPDX-License-Identifier: MIT
// The test ladder. One row of the table (engine/check/ops_table.cpp) describes the operands and the calls of an op.
// Every check here is derived from that row alone and reports faults by op and tensor:
//   check_calculus   the f64 backward against the complex step of the c128 forward, 1e-12
//   check_precision  f32 and bf16 against f64, forward and every gradient, on every instruction set
//   check_contract   gradients stored and added, outputs fully written, nothing else changed, absent gradients,
//                    threads, rows, errors
// Uses no test framework, because the tests and `inspect gradients` both run it.
#pragma once
#include "engine/base/random.h"
#include "engine/ops/ops.h"
#include "engine/tensor/buffer.h"

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace masquerade::ladder {

// The sizes of one check. Each op's row defines what the three numbers mean.
struct Sizes {
    int rows = 1, columns = 1, other = 1;
};

enum class Role {
    input,      // has a gradient
    constant,   // has no gradient
    output,     // has a cotangent, which the backward reads
    statistic,  // an output without cotangent, for the backward to read
    updated,    // an output that is read before it is written
};
enum class Kind { storage, arithmetic };  // types S and A of ops.h

// Fills an operand with random numbers.
using Draw = std::function<void(std::vector<double>&, Sequence&)>;
double normal(Sequence& random);
Draw uniform(double low, double high);

// One tensor of a call and how to check it. For an output, `numbers` is the cotangent.
struct Operand {
    std::string name, path;
    Role role;
    Shape shape;
    Kind kind;
    Draw draw;
    std::vector<double> numbers;
    bool weight = false;     // the gradient has type A, whatever the type of the value
    bool rounded = false;    // intermediate values are rounded to type S
    bool of_row = false;     // row n of the op depends only on its rows n: equal bits alone and in a batch
    bool any_rows = false;   // the op cannot detect surplus rows
    bool any_shape = false;  // the op cannot detect a wrong shape
    double length = 1;       // terms of the sum behind the output or the gradient
    double factor = 2;       // roundings per term of the sum
    double floor = 0;        // errors are relative to the largest number or to this, for terms that cancel

    Operand& as_weight() {
        weight = true;
        return *this;
    }
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

// An op at one size.
struct Case {
    std::vector<Operand> operands;
    std::vector<Indices> indices;
    std::function<void(const Call&)> forward, backward;
    // Calls the function of nn/functions.h that records the op. Its random stream is named "ladder".
    std::function<void(const OnTape&)> record;
    // Computes the outputs by plain loops in double. For ops without a backward, which the calculus check cannot cover.
    std::function<void(const Call&)> definition;
    int rows = 0;  // rows of the operands marked by_row

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

    bool has_storage() const;
    // The case with only rows [begin, end) of the operands and indices that go by row; all others are unchanged.
    Case restricted(int begin, int end) const;

  private:
    Operand& add(const std::string& name, Role role, const Shape& shape, Kind kind);
};

std::vector<Sizes> boundary_sizes();
// Sizes with 2571: beyond the first tile of every kernel, and odd, so that no tile size divides it.
std::vector<Sizes> far_sizes();

struct Op {
    std::string name;  // name in ops.h; after a comma, the use
    std::function<Case(Sizes)> make;
    std::vector<Sizes> small = {{5, 4, 3}, {2, 7, 6}, {1, 3, 1}};  // for the calculus check by elements
    std::vector<Sizes> middle = {{33, 65, 17}};                    // for the calculus check by directions
    std::vector<Sizes> all = boundary_sizes();                     // for all other checks
    std::vector<Sizes> far = far_sizes();                          // for precision, and for the contract in f32
    bool costly = false;                                           // many operations per number: see fits_fibers
};

// Makes the case of a row at the given sizes and draws its numbers.
Case prepared(const Op& op, Sizes sizes);

// Host memory for one tensor, with guard bytes on both sides. If the device has separate memory, also an equal block
// there.
class Guarded {
  public:
    Guarded(const Shape& shape, DType dtype, const char* path, Device device = Device::cpu);
    const View& view() const { return view_; }  // for the checks, on the host
    View there() const;                         // for ops, on the device
    void send() const;                          // copies everything, with guards, to the device
    void fetch() const;
    void fill(const std::vector<double>& numbers) const;
    void fill_with_nan() const;
    bool guards_intact() const;
    bool has_nan() const;
    std::string bytes() const;  // the bytes of the numbers

  private:
    static constexpr std::size_t guard = 256;  // bytes on each side
    Buffer memory_, there_;
    View view_;
};

// Whether the device has memory separate from the host.
bool lies_apart(Device device);

complex number(const View& view, std::int64_t i);
void set_number(const View& view, std::int64_t i, complex x);
// x rounded to `type`; unchanged for f64.
double rounded(double x, DType type);

// The largest absolute error of `found`, divided by the largest number of `exact` or `floor`; NaN if any error is NaN.
double error_of(const View& found, const View& exact, double floor);

// The memory of one case in one type, passed to the functions of the row. Before the op runs, inputs hold the case's
// numbers rounded to the type `like`, and outputs hold NaN.
class Call {
  public:
    Call(const Case& of, DType type, DType like, Device device = Device::cpu);
    Call(const Case& of, DType type) : Call(of, type, type) {}

    // Called by the rows of the table:
    View operator()(const std::string& name) const;  // the value
    View d(const std::string& name) const;           // the cotangent of an output
    Grad grad(const std::string& name) const;        // the gradient of an input
    Ints ints(const std::string& name) const;
    RowNames rows() const;                    // from the lists "document" and "position", if present
    bool has(const std::string& name) const;  // whether a tensor has this name

    void forward() const { run(op.forward); }
    void backward() const { run(op.backward); }
    void want(std::size_t operand, bool wanted) { unwanted_[operand] = !wanted; }
    void add(std::size_t operand, bool added = true) { added_[operand] = added; }

    const Case& op;
    // For each operand: the value; then the cotangent (outputs) or the gradient (inputs), null if there is none.
    std::vector<Guarded> values;
    std::vector<std::unique_ptr<Guarded>> others;
    mutable std::set<std::string> asked;  // names that the row's function asked for: "x", "dy"

  private:
    std::size_t find(const std::string& name) const;
    void run(const std::function<void(const Call&)>& ops) const;
    std::vector<bool> unwanted_, added_;
    std::vector<Buffer> lists_;  // the index lists on the device
};

// The largest error allowed for an output's values or an input's gradient, relative to the largest number. Storage and
// rounded intermediate values count one rounding each; arithmetic counts a rounding for each term of the sum.
double bound_of(const Operand& operand, DType type);
std::string at(Sizes sizes);  // " at 5x4x3"

// The largest relative errors of one tensor; -1 if a check does not apply.
struct Errors {
    double complex_step = -1, f32 = -1, bf16 = -1;
    double share = 0;  // the largest ratio of an error to its bound
};

struct Findings {
    std::string op;
    std::vector<std::pair<std::string, Errors>> tensors;  // "y", "dx", in the order of the row
    std::vector<std::string> faults;                      // "layernorm dx: complex step 0.03 > 1e-12 at 5x4x3"
    long checks = 0;

    Errors& of(const std::string& tensor);
    // Counts a check. The first failure of each kind is recorded as a fault: "<op> <tensor>: <kind> <details>".
    void expect(bool good, const std::string& tensor, const std::string& kind, const std::string& details);
    // Runs a check; an exception is recorded as a fault.
    void attempt(Sizes sizes, const std::function<void()>& check);

  private:
    std::set<std::string> kinds_;
};

void check_calculus(const Op& op, Findings& findings);
void check_precision(const Op& op, Findings& findings);
void check_contract(const Op& op, Findings& findings);
// How an op's results for some rows alone must compare with its results for these rows in a batch: equal bits, or
// within the op's bound. The bound is for cuBLASLt, which may choose another algorithm for another number of rows.
enum class RowsAlone { same_bits, near };
// The checks for ops on Device::cuda in device memory, against f64 on the CPU.
void check_cuda_precision(const Op& op, Findings& findings);
void check_cuda_contract(const Op& op, Findings& findings, RowsAlone rows = RowsAlone::same_bits);
// Whether MASQUERADE_SMALL_LADDER is set: the two CUDA checks then use only the smallest sizes, for tools that watch
// every memory access.
bool small_ladder();
// Whether a check at these sizes is fast enough for kernels that run as fibers. For a costly op, rows x columns x other
// may be at most `most`, and rows at most 300. A GPU runs all sizes.
bool fits_fibers(const Op& op, Sizes sizes, std::int64_t most);

// All rows of the table (engine/check/ops_table.cpp).
const std::vector<Op>& ops_table();

}  // namespace masquerade::ladder
