// SPDX-License-Identifier: MIT
// Lambda attention (Bello 2021), for each head. The content lambda is a (D,D) matrix that multiplies the query q_i. It
// is computed from the keys k_j and values v_j that the query sees:
//     y_i = (sum_j v_j softmax_j(k_j / sqrt(D))^T) q_i
// The softmax runs over the positions j, separately for each of the D numbers of a key. The query is not normalised. If
// `reach` is not 0, self-attention adds the local positional lambda, with a learned vector e_d for each distance d:
//     y_i += (sum_j v_j e_(j-i)^T) q_i
// This sum runs over the keys j of the query's own segment that the query sees and for which |j - i| <= reach.
#include "engine/nn/attention/state.h"
#include "engine/ops/local_plan.h"

namespace masquerade {
namespace {

// Returns the mask of the local lambda in a decoding step: each row sees its own value (key source 1) and the stored
// values of the `reach` tokens generated before the row (key source 0). Distances are counted as if both sources were
// one text.
SegmentGraph near_graph(const SegmentGraph& step, int reach) {
    SegmentGraph graph;
    graph.documents = step.documents;
    for (QuerySegment q : step.queries) {
        const bool back = q.rule == Rule::anticausal;
        q.self = int(graph.keys.size()), q.along = true, q.offset = 0;
        graph.see({1, q.begin, q.end, back ? 0 : reach});
        graph.see({0, q.begin * reach, q.end * reach, back ? 1 : 0});
        graph.add(q);
    }
    return graph;
}

struct LambdaOptions {
    int reach = 0;
    void declare(AttentionSettings& s) {
        s.add("reach", &reach,
              "keys that are at most this many positions away get a weight that depends on their content and their "
              "distance; the weight of keys farther away depends on their content alone",
              0, 1024);
    }
};

class LambdaAttention : public StateAttention {
  public:
    LambdaAttention(const AttentionPlace& at, const LambdaOptions& o)
        : StateAttention(at, {at.shape.heads, at.shape.width / at.shape.heads, StatePack::exponential,
                              StateRead::linear, 1 / std::sqrt(double(at.shape.width / at.shape.heads)), 0}),
          reach_(name_ == "cross" ? 0 : o.reach) {
        query_ = at.linear("query");
        key_ = at.linear("key");
        value_ = at.linear("value");
        if (reach_ > 0)
            distances_ = at.add("distances", {2 * reach_ + 1, shape_.width}, {Init::normal, shape_.deviation});
    }
    // Returns an empty decoding state. If `reach` is not 0, the state also has room for the values of the `reach` most
    // recent tokens of each text.
    std::unique_ptr<AttentionState> state(const Slots& slots) const override {
        auto state = StateAttention::state(slots);
        if (reach_ > 0)
            static_cast<KeptState&>(*state).per_text.emplace_back().allocate({slots.count, reach_ * shape_.width},
                                                                             output_.weight->dtype,
                                                                             output_.weight->device);
        return state;
    }

  private:
    Tensor* read(Tape& tape, Tensor* x, Ints, Tensor*) const override {
        return linear_unrounded(tape, x, query_.weight, query_.bias, name_ + ".query");
    }
    Taken take(Tape& tape, Tensor* x, Ints, Tensor*, const std::string& name) const override {
        return {linear_unrounded(tape, x, key_.weight, key_.bias, name + ".key"), value_(tape, x, name + ".value")};
    }
    Tensor* beside(Tape& tape, Tensor* y, Tensor* q, const std::vector<Tensor*>& values,
                   const AttentionContext& context) const override;
    Tensor* next_near(Tape& tape, const SegmentGraph& graph, const std::vector<Tensor*>& values) const;

    Linear key_, value_;
    int reach_;
    Tensor* distances_ = nullptr;  // e (2 reach + 1,C): a vector for each distance; null if reach_ is 0
};

Tensor* LambdaAttention::beside(Tape& tape, Tensor* y, Tensor* q, const std::vector<Tensor*>& kv,
                                const AttentionContext& context) const {
    if (!distances_) return y;
    std::vector<Tensor*> values = kv;
    const SegmentGraph* graph = context.graph;
    if (context.step) {
        Kept& near = static_cast<KeptState&>(*context.state).per_text[1];
        const std::int64_t n = y->rows();
        if (context.step->written > 0) {
            Tensor* old = embedding(tape, context.step->slots, near.tensor(), name_ + ".near");
            values = {reshape(tape, old, {n * reach_, shape_.width}, name_ + ".near.rows"), kv.back()};
            graph = &tape.hold(near_graph(*context.graph, reach_));
        }
        Tensor* next = next_near(tape, *graph, values);
        near.store(tape, context.step->slots, reshape(tape, next, {n, reach_ * shape_.width}, name_ + ".near.slots"));
    }
    return add(tape, y, local_lambda(tape, q, distances_, values, *graph, shape_.heads, name_ + ".local"),
               name_ + ".sum");
}

// Returns the values to store for the next step (n * reach, C). For each of n rows, these are the value of the row and
// the values of the reach - 1 tokens generated before it, in the order of the text. Missing values are 0.
Tensor* LambdaAttention::next_near(Tape& tape, const SegmentGraph& graph, const std::vector<Tensor*>& values) const {
    const int n = int(values.back()->rows()), W = 2 * reach_ + 1, own = int(values.size()) - 1;
    const bool back = !graph.queries.empty() && graph.queries[0].rule == Rule::anticausal;
    const std::vector<int> near = near_keys(graph, n, reach_);
    std::vector<int> from, of_before(n * reach_, -1), of_own = of_before;
    for (int row = 0; row < n; row++)
        for (int j = 0; j < reach_; j++) {
            const int key = near[row * W + (back ? reach_ : 1) + j];
            const int to = row * reach_ + j;
            if (key >= 0 && (key & 3) == own)
                of_own[to] = key >> 2;
            else if (key >= 0)
                of_before[to] = int(from.size()), from.push_back(key >> 2);
        }
    const std::vector<double> nothing(std::int64_t(n) * reach_ * shape_.width, 0.0);
    Tensor* next = tape.constant(name_ + ".near.none", {n * reach_, shape_.width}, tape.dtype, nothing.data());
    if (!from.empty())
        next = replace_rows(tape, next, tape.ints(std::move(of_before)),
                            embedding(tape, tape.ints(std::move(from)), values[0], name_ + ".near.old"),
                            name_ + ".near.kept");
    return replace_rows(tape, next, tape.ints(std::move(of_own)), values.back(), name_ + ".near.next");
}

}  // namespace

const AttentionKind lambda_kind =
    kind_of<LambdaAttention, LambdaOptions>("lambda", "keys are weighed over positions, queries read linearly", false,
                                            false, state_refuses);

}  // namespace masquerade
