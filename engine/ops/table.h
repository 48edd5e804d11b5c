// SPDX-License-Identifier: MIT
// The declarations and the table that the lines of ops.h become, and the small argument types they use.
#pragma once
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/base/random.h"
#include "engine/ops/segments.h"
#include "engine/tensor/view.h"

namespace masquerade {

enum class GeluKind : int { erf, tanh };
enum class GateKind : int { silu, gelu, gelu_tanh };
enum class FeatureKind : int;  // engine/math/features.h

// The name of a row of activations: the training example it belongs to and its position there. Random numbers are
// drawn by name, never by place in the batch.
struct RowNames {
    Ints document, position;
};

struct DropoutRule {
    float rate = 0;  // [0, 1)
    Stream stream;
};

struct AttentionRule {
    int heads = 1;
    // of the probabilities: drawn from (stream, query's document and position, head and key's visit)
    float dropout = 0;
    Stream stream;
    RowNames rows;  // of the queries; needed with dropout only
};

// Attention through a bounded state (engine/math/state.h): how keys are weighed in a slot, how a query reads the slots.
enum class StatePack : int { sum, gated, exponential };
enum class StateRead : int { linear, kernel, attend };
struct StateRule {
    int heads = 1, slots = 1;  // H, R
    StatePack pack = StatePack::sum;
    StateRead read = StateRead::attend;
    double scale = 1;  // of the packs
    double floor = 0;  // kernel of a sum: least magnitude of its divisor for each key; gated: of the divisor
    int piece = 256;   // keys and queries that one thread or warp goes through, while others go through the next
};

// Attention to the rows of one's own bucket, one of `buckets` (even) in each of the rounds.
struct LshRule {
    AttentionRule attention;  // dropout: channel of a key by its place in the segment
    int rounds = 1, buckets = 2, chunk = 1;
};

// Blocks of rows sorted by a matrix that has been normalised so many times.
struct SinkhornRule {
    int heads = 1, block = 1, iterations = 1;
    double temperature = 1;
};

// Codebooks that follow what is near: moving averages by `decay`; a row with less than `dead` of an even share becomes
// one of the rows of the batch, drawn from the stream.
struct CodeRule {
    int groups = 1;
    double decay = 0.99, dead = 0.1;
    Stream stream;
};

struct AdamWRule {
    double beta1 = 0.9, beta2 = 0.98, eps = 1e-8;
    double decay = 0;  // decoupled weight decay
    double clip = 0;   // largest global norm; 0: no clipping
};

struct ApolloRule {
    double beta = 0.9, eps = 1e-4, decay = 0, clip = 0;  // decay p is added to the gradient
};

// Up to four key/value tensors of one attention call.
struct Views {
    View v[4];
    int count = 0;
    Views() = default;
    Views(std::initializer_list<View> list) {
        for (const View& view : list) v[count++] = view;
    }
    const View& operator[](int i) const { return v[i]; }
};
struct Grads {
    Grad g[4];
    int count = 0;
    Grads() = default;
    Grads(std::initializer_list<Grad> list) {
        for (const Grad& grad : list) g[count++] = grad;
    }
    const Grad& operator[](int i) const { return g[i]; }
};

namespace cpu {
#define OP(name, parameters) void name parameters;
#include "engine/ops/ops.h"
#undef OP
}  // namespace cpu
namespace cuda {  // defined in the CUDA library alone, which need not have them all
#define OP(name, parameters) void name parameters;
#include "engine/ops/ops.h"
#undef OP
}  // namespace cuda

// Ops by number: int(OpNumber::gelu_forward); how many there are, their names and their parameters as ops.h spells them.
enum class OpNumber : int {
#define OP(name, parameters) name,
#include "engine/ops/ops.h"
#undef OP
};
inline constexpr const char* op_names[] = {
#define OP(name, parameters) #name,
#include "engine/ops/ops.h"
#undef OP
};
inline constexpr const char* op_parameters[] = {
#define OP(name, parameters) #parameters,
#include "engine/ops/ops.h"
#undef OP
};
inline constexpr int op_count = int(sizeof op_names / sizeof *op_names);

// The name of parameter `place` of "(View x, const SegmentGraph& graph)".
constexpr std::string_view name_of_parameter(std::string_view parameters, std::size_t place) {
    std::size_t end = 0;
    for (std::size_t i = 0; i <= place; i++) end = parameters.find_first_of(",)", end + 1);
    const std::size_t begin = parameters.rfind(' ', end) + 1;
    return parameters.substr(begin, end - begin);
}

// One slot for every op; the CUDA library hands over one of these (ops/library.h).
struct OpTable {
#define OP(name, parameters) void(*name) parameters;
#include "engine/ops/ops.h"
#undef OP
};

// An Error for Device::cuda where no library is in use.
const OpTable& op_table(Device device);
// Who computes for Device::cuda from now on, null for nobody; returns who did before.
const OpTable* set_cuda_ops(const OpTable* table);

// The device of the tensors of a call.
class CallDevice {
  public:
    explicit CallDevice(const char* op) : op_(op) {}
    // Error if the tensor has data on another device than one before it.
    void take(const View& view);
    void take(const Grad& grad) { take(grad.view); }
    void take(const Views& views) {
        for (int i = 0; i < views.count; i++) take(views[i]);
    }
    void take(const Grads& grads) {
        for (int i = 0; i < grads.count; i++) take(grads[i]);
    }
    template <class Other>
    void take(const Other&) {}
    Device device() const { return found_ ? found_->device : Device::cpu; }

  private:
    const char* op_;
    const View* found_ = nullptr;  // the first that has data, or else the first
};

// The op of one line of ops.h, called on the device that its tensors are on.
template <OpNumber number, auto slot, class Function>
struct OpCall;
template <OpNumber number, auto slot, class... P>
struct OpCall<number, slot, void (*)(P...)> {
    using Parameters = std::tuple<P...>;
    using Places = std::index_sequence_for<P...>;
    static constexpr const char *name = op_names[int(number)], *parameters = op_parameters[int(number)];
    void operator()(P... arguments) const {
        CallDevice call(name);
        (call.take(arguments), ...);
        (op_table(call.device()).*slot)(arguments...);
    }
    // The same call as an object: its braces evaluate the arguments from left to right.
    struct InOrder {
        explicit InOrder(P... arguments) { OpCall()(arguments...); }
    };
};

#define OP(name, parameters) inline constexpr OpCall<OpNumber::name, &OpTable::name, decltype(OpTable::name)> name{};
#include "engine/ops/ops.h"
#undef OP

}  // namespace masquerade
