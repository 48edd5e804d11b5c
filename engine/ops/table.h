// SPDX-License-Identifier: MIT
// The declarations and tables that are generated from the OP lines of ops.h, and the small types of op arguments.
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/random.h"
#include "engine/ops/segments.h"
#include "engine/tensor/view.h"

namespace masquerade {

enum class GeluKind : int { erf, tanh };
enum class GateKind : int { silu, gelu, gelu_tanh };
enum class FeatureKind : int;  // defined in engine/math/features.h

// The name of each row of an activation tensor: the document (training example) of the row, and its position in the
// document. Random numbers depend on the name of a row, never on where the row lies in the batch.
struct RowNames {
    Ints document, position;
};

struct DropoutRule {
    float rate = 0;  // probability that a number is dropped, in [0, 1)
    Stream stream;
};

struct AttentionRule {
    int heads = 1;
    // Dropout rate of the attention probabilities. The random numbers depend on the stream, the document and position
    // of the query row, the head, and the channel of the key. The channel is a number that each key has; it is
    // explained at AttentionDropout (ops/attention.h) and, for lsh_attention, at LshRule.
    float dropout = 0;
    Stream stream;
    RowNames rows;  // document and position of each query row; only needed for dropout
};

// Attention through a state of R slots (engine/math/state.h). The pack of a key is R numbers, which say how much of the
// key each slot absorbs. StatePack names the formula that turns packs into weights; with `pair`, a pack has R numbers
// for the key vector, then R for the value. StateRead says how a query reads the slots.
enum class StatePack : int { sum, gated, exponential, pair };
enum class StateRead : int { linear, kernel, attend };
struct StateRule {
    int heads = 1, slots = 1;  // H heads, each with R slots that absorb the keys
    StatePack pack = StatePack::sum;
    StateRead read = StateRead::attend;
    double scale = 1;  // multiplies all numbers of the packs
    // Only for read = kernel: lower bound of the absolute value of the number by which y is divided. If pack is sum,
    // the bound is floor * (number of keys); if pack is exponential, there is no bound.
    double floor = 0;
    int piece = 256;  // maximum number of keys plus queries that one thread or warp processes in one piece
};

// Parameters of lsh_attention. In each of `rounds` rounds, the rows of a list of keys (list_plan.h) are hashed into
// `buckets` buckets; `buckets` is even. The rows are sorted by bucket and cut into chunks of `chunk` rows.
struct LshRule {
    AttentionRule attention;  // heads and dropout; the channel of a key is the index of the key in its list of keys
    int rounds = 1, buckets = 2, chunk = 1;
};

// Parameters of sinkhorn. `block` rows form a block. The scores of pairs of blocks are divided by `temperature`. The
// matrix of the exponentials of the scores is normalised `iterations` times.
struct SinkhornRule {
    int heads = 1, block = 1, iterations = 1;
    double temperature = 1;
};

// Parameters of learn_codes. Codebook rows are moving averages with this `decay`. The count of a row is the moving
// average of the number of latents for which it is the nearest row. Latents with weight 0 do not count. A row is dead
// if its count is below `dead` times (number of latents in this batch) / (rows of one codebook). A dead row is replaced
// by a latent of the batch, which is drawn at random from `stream`.
struct CodeRule {
    int groups = 1;
    double decay = 0.99, dead = 0.1;
    Stream stream;
};

// Settings of an optimiser; an op may ignore some of them. The learning rate changes from step to step, so ops read it
// from a tensor, `control`.
struct OptimiserRule {
    double beta1 = 0.9, beta2 = 0.98, eps = 1e-8;
    double decay = 0;  // weight decay
    double clip = 0;   // maximum global norm of the gradients; larger gradients are scaled down to it; 0: no clipping
};

// Up to four tensors that are one argument of an op, such as the key/value tensors of an attention call.
template <class T>
struct UpToFour {
    T all[4];
    int count = 0;
    UpToFour() = default;
    UpToFour(std::initializer_list<T> list) {
        for (const T& x : list) add(x);
    }
    void add(const T& x) { all[count++] = x; }
    const T& operator[](int i) const { return all[i]; }
    // Returns the addresses of the tensors; null for each that is missing.
    template <class S>
    std::array<S*, 4> as() const {
        return {all[0].template as<S>(), all[1].template as<S>(), all[2].template as<S>(), all[3].template as<S>()};
    }
};
using Views = UpToFour<View>;
using Grads = UpToFour<Grad>;

namespace cpu {
#define OP(name, parameters, ...) void name parameters;
#include "engine/ops/ops.h"
#undef OP
}  // namespace cpu
namespace cuda {  // defined only in the CUDA library, which may lack some ops
#define OP(name, parameters, ...) void name parameters;
#include "engine/ops/ops.h"
#undef OP
}  // namespace cuda

// OpNumber gives each op a number, and op_count is the number of ops. For each op, op_names contains the name,
// op_parameters the parameter list, and op_shapes the string of the shapes, as written in ops.h.
enum class OpNumber : int {
#define OP(name, parameters, ...) name,
#include "engine/ops/ops.h"
#undef OP
};
inline constexpr const char* op_names[] = {
#define OP(name, parameters, ...) #name,
#include "engine/ops/ops.h"
#undef OP
};
inline constexpr const char* op_parameters[] = {
#define OP(name, parameters, ...) #parameters,
#include "engine/ops/ops.h"
#undef OP
};
inline constexpr const char* op_shapes[] = {
#define OP(name, parameters, ...) "" __VA_ARGS__,
#include "engine/ops/ops.h"
#undef OP
};
inline constexpr int op_count = int(sizeof op_names / sizeof *op_names);

// Returns the name of parameter number `place`, counted from 0, of a list such as "(View x, int heads)".
constexpr std::string_view name_of_parameter(std::string_view parameters, std::size_t place) {
    std::size_t end = 0;
    for (std::size_t i = 0; i <= place; i++) end = parameters.find_first_of(",)", end + 1);
    const std::size_t begin = parameters.rfind(' ', end) + 1;
    return parameters.substr(begin, end - begin);
}

// One function pointer per op. The CUDA library provides such a table (ops/library.h).
struct OpTable {
#define OP(name, parameters, ...) void(*name) parameters;
#include "engine/ops/ops.h"
#undef OP
};

// Returns the table of a device. Throws Error for Device::cuda if no library is in use.
const OpTable& op_table(Device device);
// Sets the table of Device::cuda, and returns the previous table. A null pointer means that there is no table.
const OpTable* set_cuda_ops(const OpTable* table);

// The properties of an argument of an op call that the checks of the call need.
struct Argument {
    const View* views[4] = {};
    int count = 0;                       // number of views
    std::optional<std::int64_t> number;  // the value of an int, or the length of a list
};
inline Argument argument_of(const View& view) { return {{&view}, 1, {}}; }
inline Argument argument_of(const Grad& grad) { return argument_of(grad.view); }
inline Argument argument_of(const Ints& list) { return {{}, 0, list.count}; }
inline Argument argument_of(int number) { return {{}, 0, number}; }
inline Argument argument_of(const Views& all) { return {{&all[0], &all[1], &all[2], &all[3]}, all.count, {}}; }
inline Argument argument_of(const Grads& all) {
    return {{&all[0].view, &all[1].view, &all[2].view, &all[3].view}, all.count, {}};
}
template <class Other>
Argument argument_of(const Other&) {
    return {};
}

// device_of() and check_shapes() are the checks of a call (checks.cpp). `arguments` has one entry for each parameter of
// the op, in order.
//
// Returns the one device on which all tensors lie. Throws Error if there are several.
Device device_of(OpNumber op, const Argument* arguments);
// Throws Error if a tensor does not have the shape and type that ops.h states.
void check_shapes(OpNumber op, const Argument* arguments);

// Returns the name of an op without the suffix _forward; for example "layernorm".
const char* base_name(OpNumber op);

// A tensor that an op writes.
struct Output {
    const char* parameter;
    Shape shape;
    DType dtype;
};
// Returns the name, shape and type of each output, as ops.h states them for these inputs. `others` are the arguments
// that are not tensors.
std::vector<Output> outputs_of(OpNumber op, const std::vector<View>& inputs, const std::vector<Argument>& others);

// A callable for one OP line of ops.h: runs the op on the device of its tensors.
template <OpNumber number, auto slot, class Function>
struct OpCall;
template <OpNumber number, auto slot, class... P>
struct OpCall<number, slot, void (*)(P...)> {
    using Parameters = std::tuple<P...>;
    using Places = std::index_sequence_for<P...>;
    static constexpr OpNumber op = number;
    static constexpr const char *name = op_names[int(number)], *parameters = op_parameters[int(number)];
    void operator()(P... arguments) const {
        const Argument all[] = {argument_of(arguments)...};
        const auto run = op_table(device_of(number, all)).*slot;
        check_shapes(number, all);
        run(arguments...);
    }
    // Calls the op in a constructor, because InOrder{...} evaluates its arguments from left to right. In a function
    // call, the order of evaluation is unspecified.
    struct InOrder {
        explicit InOrder(P... arguments) { OpCall()(arguments...); }
    };
};

#define OP(name, parameters, ...) \
    inline constexpr OpCall<OpNumber::name, &OpTable::name, decltype(OpTable::name)> name{};
#include "engine/ops/ops.h"
#undef OP

}  // namespace masquerade
