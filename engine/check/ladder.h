// SPDX-License-Identifier: MIT
// The test ladder. A row of the table (engine/check/ops_table.cpp) says what an op takes, what it gives and how it
// is called; every check here follows from that row alone, and says what it found wrong by op and tensor:
//   check_calculus   the f64 backward against the complex step of the c128 forward, 1e-12
//   check_precision  f32 and bf16, forward and every gradient, against f64, on every instruction set
//   check_contract   stored and added, written whole, nothing else touched, absent gradients, threads, rows,
//                    errors
// No test framework here: the tests and `inspect gradients` both run it.
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

// The sizes that a row is tried at; each op says in its row what the three numbers are for it.
struct Sizes {
    int rows = 1, columns = 1, other = 1;
};

enum class Role {
    input,      // has a gradient
    constant,   // has none
    output,     // the backward takes its cotangent
    statistic,  // an output that only the backward reads
    updated,    // an output that starts with numbers
};
enum class Kind { storage, arithmetic };  // S or A of ops.h

// Fills the numbers of one operand.
using Draw = std::function<void(std::vector<double>&, Sequence&)>;
double normal(Sequence& random);
Draw uniform(double low, double high);

// One tensor of a call, and what the checks must know of it. The numbers of an output are its cotangent.
struct Operand {
    std::string name, path;
    Role role;
    Shape shape;
    Kind kind;
    Draw draw;
    std::vector<double> numbers;
    bool weight = false;     // the gradient is of type A whatever the values are
    bool rounded = false;    // what it is summed from is rounded to type S on the way
    bool of_row = false;     // row n belongs to row n of the op: alone it gives the bits it gives in a batch
    bool any_rows = false;   // the op cannot tell that there are too many rows,
    bool any_shape = false;  // ... or that the shape is wrong
    double length = 1;       // of the sum behind the output, or behind the gradient of the input
    double factor = 2;       // how many roundings meet at a term of it
    double floor = 0;        // errors are relative to the largest number, at least to this: terms that cancel

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
    // The forward by its function of nn/functions.h. Random numbers are those of the place "ladder".
    std::function<void(const OnTape&)> record;
    // The outputs by the plainest loop, in double: for an op without backward, which no calculus can check.
    std::function<void(const Call&)> definition;
    int rows = 0;  // that by_row operands have

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
    // The rows [begin, end) of everything that goes by rows, the rest as it is.
    Case restricted(int begin, int end) const;

  private:
    Operand& add(const std::string& name, Role role, const Shape& shape, Kind kind);
};

std::vector<Sizes> boundary_sizes();
// beyond the first tile of everything, in the third thousand, and of no multiple of two
std::vector<Sizes> far_sizes();

struct Op {
    std::string name;  // that of ops.h; after a comma, which use of it
    std::function<Case(Sizes)> make;
    std::vector<Sizes> small = {{5, 4, 3}, {2, 7, 6}, {1, 3, 1}};  // by elements
    std::vector<Sizes> middle = {{33, 65, 17}};                    // along directions
    std::vector<Sizes> all = boundary_sizes();                     // everything else
    std::vector<Sizes> far = far_sizes();                          // numbers, and the contract in f32
    bool costly = false;  // its kernels do much for each number: see fits_fibers
};

// The row's case with its numbers drawn.
Case prepared(const Op& op, Sizes sizes);

// Memory of one tensor, with guards on both sides; and as much on the device where its memory is another one.
class Guarded {
  public:
    Guarded(const Shape& shape, DType dtype, const char* path, Device device = Device::cpu);
    const View& view() const { return view_; }  // for the checks
    View there() const;                         // for ops
    void send() const;                          // all of it, guards too, to where ops find it
    void fetch() const;
    void fill(const std::vector<double>& numbers) const;
    void fill_with_nan() const;
    bool guards_intact() const;
    bool has_nan() const;
    std::string bytes() const;  // the numbers, bit by bit

  private:
    static constexpr std::size_t guard = 256;  // bytes
    Buffer memory_, there_;
    View view_;
};

// Whether ops of the device find their tensors in a memory of its own.
bool lies_apart(Device device);

complex number(const View& view, std::int64_t i);
void set_number(const View& view, std::int64_t i, complex x);
// x as `type` keeps it; doubles stay.
double rounded(double x, DType type);

// The largest error of `found`, relative to the largest number of `exact`, at least to `floor`; or NaN.
double error_of(const View& found, const View& exact, double floor);

// The memory of one case in one type, and what the op's functions are called with. Inputs hold the case's
// numbers as `like` would hold them, outputs NaN.
class Call {
  public:
    Call(const Case& of, DType type, DType like, Device device = Device::cpu);
    Call(const Case& of, DType type) : Call(of, type, type) {}

    // For the rows of the table.
    View operator()(const std::string& name) const;  // the value
    View d(const std::string& name) const;           // the cotangent of an output
    Grad grad(const std::string& name) const;        // of an input
    Ints ints(const std::string& name) const;
    RowNames rows() const;                    // by the lists "document" and "position", if there are any
    bool has(const std::string& name) const;  // a tensor of this name

    void forward() const { run(op.forward); }
    void backward() const { run(op.backward); }
    void want(std::size_t operand, bool wanted) { unwanted_[operand] = !wanted; }
    void add(std::size_t operand, bool added = true) { added_[operand] = added; }

    const Case& op;
    // Indexed by operand: the value; the cotangent (outputs) or the gradient (inputs), null if there is none.
    std::vector<Guarded> values;
    std::vector<std::unique_ptr<Guarded>> others;
    mutable std::set<std::string> asked;  // what the op's function took: "x", "d y", "grad x", "ints ids"

  private:
    std::size_t find(const std::string& name) const;
    void run(const std::function<void(const Call&)>& ops) const;
    std::vector<bool> unwanted_, added_;
    std::vector<Buffer> lists_;  // the indices on the device
};

// The largest allowed error of an output's values or an input's gradient, relative to their largest number:
// storage rounds once, and so do the numbers that it is summed from; arithmetic rounds with every term of the sum.
double bound_of(const Operand& operand, DType type);
std::string at(Sizes sizes);  // " at 5x4x3"

// The worst relative errors of one tensor; -1 where a check does not apply.
struct Errors {
    double complex_step = -1, f32 = -1, bf16 = -1;
    double share = 0;  // the largest of them as a share of what it may be
};

struct Findings {
    std::string op;
    std::vector<std::pair<std::string, Errors>> tensors;  // "y", "dx", in the order of the row
    std::vector<std::string> faults;                      // "layernorm dx: complex step 0.03 > 1e-12 at 5x4x3"
    long checks = 0;

    Errors& of(const std::string& tensor);
    // Counts a check; the first failure of every kind becomes a fault: "<op> <tensor>: <kind> <details>".
    void expect(bool good, const std::string& tensor, const std::string& kind, const std::string& details);
    // Runs a check; an exception is a fault, too.
    void attempt(Sizes sizes, const std::function<void()>& check);

  private:
    std::set<std::string> kinds_;
};

void check_calculus(const Op& op, Findings& findings);
void check_precision(const Op& op, Findings& findings);
void check_contract(const Op& op, Findings& findings);
// How the rows of an op alone compare with the same rows in a batch: bit by bit; or within the bound of the op, where
// cuBLASLt multiplies, which may take another algorithm for another number of rows.
enum class RowsAlone { same_bits, near };
// The same of the ops that answer for Device::cuda, in the memory that they have, compared with the CPU's f64.
void check_cuda_precision(const Op& op, Findings& findings);
void check_cuda_contract(const Op& op, Findings& findings, RowsAlone rows = RowsAlone::same_bits);
// MASQUERADE_SMALL_LADDER is set: those two only climb the smallest sizes, as is fit where every access is watched.
bool small_ladder();
// Whether kernels that run as fibers climb with these sizes: those of a costly op only where rows x columns x other is
// at most this, and rows at most 300; a GPU takes all.
bool fits_fibers(const Op& op, Sizes sizes, std::int64_t most);

// All rows of the table (engine/check/ops_table.cpp).
const std::vector<Op>& ops_table();

}  // namespace masquerade::ladder
