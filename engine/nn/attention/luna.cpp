// SPDX-License-Identifier: MIT
// Luna (Ma et al. 2021, section 3): l packed rows P attend to the keys X, and the queries attend only to the l results,
// the slots. Time is therefore linear in the number of queries and in the number of keys.
//
//     Y_P = Attention(P W_pq, X W_pc)          pack: P attends to the keys X; there is no output projection
//     Y   = Attention(X W_q, Y_P W_c) W_o      unpack: the queries attend to the slots Y_P
//     P'  = LN(P + dropout(Y_P))               with contextual=true, the next layer uses P' as its P
//
// In pre-norm layers, Y_P is computed from LN(P), and P' = P + dropout(Y_P). With contextual=false, all layers use the
// same learned P. W_pc and W_c make keys and values; with tied=true, the keys are also the values. Rows that see the
// same keys share l slots, which absorb only these keys, so no row reads keys that it must not see. If there are n < l
// keys, the rows read only the first n slots.
#include <algorithm>
#include <array>

#include "engine/nn/attention/kept.h"
#include "engine/nn/attention/kinds.h"

namespace masquerade {
namespace {

std::string luna_refuses(const SegmentGraph& graph) {
    for (const QuerySegment& q : graph.queries) {
        if (q.window >= 0) return "the mask has a window, but slots pack what all rows of a segment see";
        const auto sees = graph.sees.begin();
        const bool itself = std::find(sees + q.sees_begin, sees + q.sees_end, q.self) != sees + q.sees_end;
        if (!itself || q.rule == Rule::full || q.rule == Rule::none) continue;
        if (q.rule == Rule::bits)
            return "the rows of a segment see different keys, but slots pack what all rows of a segment see";
        return "a segment is causal, but slots pack what all rows of a segment see; use luna_causal";
    }
    return "";
}

// The query segments (runs of query rows, engine/ops/segments.h) of a document that see the same keys form a group. A
// group has l slots (LunaOptions::slots), which all rows of the group share. `keys` lists the key segments that the
// group sees, each as {source, begin, end}: the rows [begin, end) of key tensor number `source`.
struct SlotGroup {
    int document = 0;
    std::vector<std::array<int, 3>> keys;
    bool operator==(const SlotGroup& o) const { return document == o.document && keys == o.keys; }
};

struct LunaOptions {
    int slots = 16;
    bool contextual = true, tied = false;
    void declare(AttentionSettings& s) {
        s.add("slots", &slots, help_of_slots, 1, 65536);
        s.add("contextual", &contextual,
              "keys are packed by an attention with one query for each packed row; true: these queries are the packed "
              "rows of the previous layer; false: they are learned, and the same in every layer");
        s.add("tied", &tied, "use the keys as values; needs rotary=false");
    }
};

// The second stream of Luna: l packed rows P for each SlotGroup (query segments that see the same keys).
struct PackedRows : Companion {
    LunaOptions options;
    Tensor* learned = nullptr;  // (l,C): the learned rows, which are the initial P of each group
    std::shared_ptr<const Norm> last;
    AttentionShape shape;
    Tensor* x = nullptr;  // (groups * l, C): the packed rows P of all groups, l rows each; null before the first layer
    std::vector<SlotGroup> groups;

    PackedRows(Parameters& p, const std::string& path, const AttentionShape& s)
        : options(options_of<LunaOptions>(s.options)), shape(s) {
        // The standard deviation is 1, like the deviation of embeddings in models that initialise embeddings with
        // deviation 1/sqrt(C) and multiply them by sqrt(C). Backbone normalises its embeddings instead.
        learned = p.add(path, {options.slots, s.width}, {Init::normal, 1});
    }
    std::shared_ptr<Companion> start() const override { return std::make_shared<PackedRows>(*this); }
    void declare_norm(Parameters& p, const std::string& path) override {
        if (options.contextual) last = find_norm(shape.norm).make(p, path, shape.width, shape.eps);
    }
    void norm(Tape& tape, const std::string& name) override {
        if (x && options.contextual) x = (*last)(tape, x, name);
    }
};

// The slot groups of a graph (query segments that see the same keys), and the group of each query segment.
struct Groups {
    std::vector<SlotGroup> groups;
    std::vector<int> place;  // for each slot group, its index among the groups of the document
    std::vector<int> of;     // for each query segment, the index of its slot group
};

Groups slots_of(const SegmentGraph& graph) {
    Groups s;
    std::ptrdiff_t first = 0;  // index of the first group of the current document
    for (const QuerySegment& q : graph.queries) {
        SlotGroup group{q.document, {}};
        for (int i = q.sees_begin; i < q.sees_end; i++) {
            const int k = graph.sees[i];
            const KeySegment& key = graph.keys[k];
            if (k != q.self || q.rule != Rule::none) group.keys.push_back({key.source, key.begin, key.end});
        }
        if (s.groups.empty() || s.groups.back().document != q.document) first = std::ptrdiff_t(s.groups.size());
        const auto found = std::find(s.groups.begin() + first, s.groups.end(), group) - s.groups.begin();
        s.of.push_back(int(found));
        if (found < std::ptrdiff_t(s.groups.size())) continue;
        s.place.push_back(int(found - first));
        s.groups.push_back(group);
    }
    return s;
}

// Returns a query segment of the rows [begin, end).
QuerySegment rows_of(int begin, int end, int document) {
    QuerySegment q;
    q.begin = begin, q.end = end, q.document = document;
    return q;
}

class LunaAttention : public ProjectedAttention {
  public:
    LunaAttention(const AttentionPlace& at, const LunaOptions& o) : ProjectedAttention(at), options_(o) {
        const int kv = o.tied ? shape_.width : 2 * shape_.width;
        pack_query_ = at.linear("pack_query"), pack_key_value_ = at.linear("pack_key_value", kv);
        query_ = at.linear("query"), key_value_ = at.linear("key_value", kv);
        output_ = at.linear("output");
        if (o.contextual)
            norm_ = find_norm(shape_.norm).make(at.parameters, at.path + ".norm_packed", shape_.width, shape_.eps);
    }
    Tensor* operator()(Tape& tape, Queries& queries, const Keys& keys, const AttentionContext& context) const override;
    std::unique_ptr<AttentionState> state(const Slots&) const override { return std::make_unique<KeptSlots>(); }

  private:
    // The decoding state for cross-attention: the keys and values of the slots, computed once from the encoder's rows.
    struct KeptSlots : AttentionState {
        Kept memory;
        bool has_memory() override { return memory.tensor(); }
    };
    Tensor* pack_queries(Tape& tape, const Groups& slots, const AttentionContext& context, const RowNames& names) const;
    Tensor* pack(Tape& tape, const Keys& keys, const AttentionContext& context, const Groups& slots) const;
    Tensor* key_values(Tape& tape, const Linear& project, Tensor* x, const std::string& name) const {
        Tensor* y = project(tape, x, name);
        return options_.tied ? twice(tape, y, name + ".tied") : y;
    }

    LunaOptions options_;
    Linear pack_query_, pack_key_value_, query_, key_value_, output_;
    std::unique_ptr<const Norm> norm_;  // the norm of the packed rows P; null if options_.contextual is false
};

Tensor* LunaAttention::operator()(Tape& tape, Queries& queries, const Keys& keys,
                                  const AttentionContext& context) const {
    const int l = options_.slots;
    const Groups slots = slots_of(*context.graph);
    auto* state = static_cast<KeptSlots*>(context.state);
    if (!queries.x) return state->memory.take(tape, *pack(tape, keys, context, slots)), nullptr;
    if (state && !state->has_memory()) throw BadUsage("attention luna cannot write token by token; use luna_causal");
    Tensor* kv = state ? state->memory.tensor() : pack(tape, keys, context, slots);
    SegmentGraph unpack;
    unpack.documents = context.graph->documents;
    // For each slot group, the index in unpack.keys of the key segment made for this group; -1 if none is made yet.
    std::vector<int> read(slots.groups.size(), -1);
    for (std::size_t i = 0; i < slots.of.size(); i++) {
        const QuerySegment& q = context.graph->queries[i];
        const int g = slots.of[i];
        int count = 0;
        for (const auto& [source, begin, end] : slots.groups[g].keys) count = std::min(l, count + end - begin);
        if (count > 0) {
            int& key = read[g];
            if (key < 0) key = int(unpack.keys.size()), unpack.keys.push_back({0, g * l, g * l + count, 0});
            unpack.sees.push_back(key);
        }
        unpack.add(rows_of(q.begin, q.end, q.document));
    }
    queries.choose(tape);
    Tensor* q = query_(tape, queries.x, name_ + ".query");
    Tensor* y =
        attention(tape, q, {kv}, tape.hold(std::move(unpack)), shape_.heads, context.dropout, context.rows, name_);
    return output_(tape, y, name_ + ".output");  // (Nq,C): Nq query rows
}

// Returns the packed rows P of all slot groups (groups * l, C). P of a group comes from the previous layer or, if the
// previous layer did not have the group, from the learned rows.
Tensor* LunaAttention::pack_queries(Tape& tape, const Groups& slots, const AttentionContext& context,
                                    const RowNames& names) const {
    const auto& before = static_cast<const PackedRows&>(*context.companion);
    if (before.x && before.groups == slots.groups) return before.x;
    const int l = options_.slots;
    // `learned` lists, for each row of the new P, the index of the learned row. `from` lists the rows of the previous
    // layer's P that replace learned rows. `which` lists, for each row of the new P, the index in `from` of its
    // replacement, or -1.
    std::vector<int> learned, from, which;
    for (const SlotGroup& group : slots.groups) {
        const auto known = std::find(before.groups.begin(), before.groups.end(), group);
        const bool known_group = before.x && known != before.groups.end();
        for (int i = 0; i < l; i++) {
            learned.push_back(i);
            which.push_back(known_group ? int(from.size()) : -1);
            if (known_group) from.push_back(int(known - before.groups.begin()) * l + i);
        }
    }
    const bool some = !from.empty(), all = from.size() == which.size();
    Tensor* kept = some ? gather_rows(tape, before.x, tape.ints(std::move(from)), name_ + ".packed.kept") : nullptr;
    if (some && all) return kept;
    Tensor* p = embedding(tape, tape.ints(std::move(learned)), before.learned, name_ + ".packed.learned");
    p = dropout(tape, p, names, context.hidden_dropout, name_ + ".packed.learned.dropout");
    return some ? replace_rows(tape, p, tape.ints(std::move(which)), kept, name_ + ".packed") : p;
}

// Returns the keys and values of the l slots of every group (groups * l, 2C). Stores the packed rows P of the next
// layer in the companion, the second stream of the pass.
Tensor* LunaAttention::pack(Tape& tape, const Keys& keys, const AttentionContext& context, const Groups& slots) const {
    if (!context.companion) throw Error("attention luna ", name_, ": the pass brings no packed rows");
    auto& stream = static_cast<PackedRows&>(*context.companion);
    const int l = options_.slots, G = int(slots.groups.size());
    SegmentGraph graph;
    graph.documents = context.graph->documents;
    std::vector<int> document, position;  // one entry per packed row, for the random numbers of dropout
    for (int g = 0; g < G; g++) {
        const SlotGroup& group = slots.groups[g];
        for (const auto& [source, begin, end] : group.keys) graph.see({source, begin, end, 0});
        graph.add(rows_of(g * l, (g + 1) * l, group.document));
        document.resize((g + 1) * l, context.documents ? (*context.documents)[group.document] : 0);
        for (int i = 0; i < l; i++) position.push_back(slots.place[g] * l + i);
    }
    const RowNames names{tape.ints(std::move(document)), tape.ints(std::move(position))};
    Tensor* p = pack_queries(tape, slots, context, names);
    const bool contextual = options_.contextual;
    Tensor* x = contextual && shape_.pre_norm ? (*norm_)(tape, p, name_ + ".norm_packed") : p;
    std::vector<Tensor*> kv;
    if (keys.memory) kv.push_back(key_values(tape, pack_key_value_, keys.memory, name_ + ".pack_memory"));
    kv.push_back(key_values(tape, pack_key_value_, keys.x, name_ + ".pack_key_value"));
    Tensor* q = pack_query_(tape, x, name_ + ".pack_query");
    Tensor* y =
        attention(tape, q, kv, tape.hold(std::move(graph)), shape_.heads, context.dropout, names, name_ + ".pack");
    const ResidualNames parts{name_ + ".packed.dropout", name_ + ".packed.residual", name_ + ".norm_packed"};
    stream.groups = slots.groups;
    stream.x = !contextual ? p
               : shape_.pre_norm
                   ? add(tape, p, dropout(tape, y, names, context.hidden_dropout, parts.dropout), parts.sum)
                   : (*norm_)(tape, p, y, names, context.hidden_dropout, parts);
    return key_values(tape, key_value_, y, name_ + ".key_value");
}

// In other kinds, key_value projects the key rows to keys and values. In Luna, pack_key_value projects the key rows, so
// the two parts of pack_key_value have the roles "key" and "value". key_value projects the slots, which have absorbed
// the key rows.
std::string role(const std::string& name) {
    for (const auto& [ours, means] :
         {std::pair{"pack_key", "key"}, {"pack_value", "value"}, {"key", "slot_key"}, {"value", "slot_value"}})
        if (name == ours) return means;
    return name;
}

constexpr AttentionKind row() {
    AttentionKind kind = kind_of<LunaAttention, LunaOptions>(
        "luna", "keys are packed into slots layer by layer, to which queries attend", false, true, luna_refuses);
    kind.in_decoder = "luna_causal";
    kind.role = role;
    kind.companion = [](Parameters& p, const std::string& path, const AttentionShape& shape) {
        return std::shared_ptr<Companion>(std::make_shared<PackedRows>(p, path, shape));
    };
    return kind;
}

}  // namespace

const AttentionKind luna_kind = row();

}  // namespace masquerade
