// SPDX-License-Identifier: MIT
#include "engine/nn/block.h"

#include <algorithm>

namespace masquerade {
namespace {

// Returns a mask with those query rows of `graph` that belong to `part` (0: the source A of a document, 1: the target
// B). parts[n] is the part of query row n. Query rows of the other part are in no segment of the new mask. Row numbers
// do not change.
SegmentGraph graph_of_part(const SegmentGraph& graph, const std::vector<char>& parts, int part) {
    SegmentGraph some = graph;
    some.queries.clear();
    for (const QuerySegment& q : graph.queries)
        for (int i = q.begin, end; i < q.end; i = end) {
            for (end = i + 1; end < q.end && parts.at(end) == parts.at(i);) end++;
            if (parts.at(i) != part) continue;
            QuerySegment rows = q;
            rows.begin = i, rows.end = end, rows.offset += i - q.begin;
            if (q.bits_begin >= 0) {
                const KeySegment& self = graph.keys[q.self];
                rows.bits_begin += (i - q.begin) * (self.end - self.begin);
            }
            some.queries.push_back(rows);
        }
    return some;
}

// Returns true if the parameters of two kinds of attention have the same names and shapes.
bool same_parameters(const AttentionKind& a, const AttentionKind& b, const AttentionShape& shape) {
    Parameters of_a, of_b;
    a.make(of_a, "layer", "attention", shape), b.make(of_b, "layer", "attention", shape);
    const auto same = [](const Tensor& x, const Tensor& y) { return x.path == y.path && x.shape == y.shape; };
    return std::equal(of_a.all().begin(), of_a.all().end(), of_b.all().begin(), of_b.all().end(), same);
}

}  // namespace

// A layer with cross-attention (s.cross) is in a decoder, where another kind may replace s.kind (self_attention()).
Block::Block(Parameters& p, const std::string& block_path, const BlockShape& s)
    : shape(s),
      path(block_path),
      attention_(self_attention(s.kind, s.cross).make(p, path, "attention", s)),
      ffn_(find_feed_forward(s.ffn).make(p, path + ".ffn", {s.width, s.inner, s.deviation, s.bias, s.gelu})),
      norm1_(find_norm(s.norm).make(p, path + ".norm1", s.width, s.eps)),
      norm2_(find_norm(s.norm).make(p, path + ".norm2", s.width, s.eps)) {
    if (!s.target_kind.empty() && s.target_kind != s.kind) {
        const AttentionKind& kind = find_attention(s.target_kind);
        const bool same = same_parameters(kind, find_attention(s.kind), s);
        const Parameters::Shared shared(p, same);  // if `same`, target_ shares the parameters of attention_
        target_ = kind.make(p, path, same ? "attention" : "target_attention", s);
    }
    if (!s.cross) return;
    AttentionShape cross = s;
    cross.rotary_value = false;  // cross-attention never rotates values
    cross_ = cross_attention(s.kind).make(p, path, "cross", cross);
    norm_cross_ = find_norm(s.norm).make(p, path + ".norm_cross", s.width, s.eps);
}

Tensor* Block::operator()(Tape& tape, Tensor* x, const Pass& pass) const {
    auto scope = tape.scope(path);
    Tensor* const h = before(tape, *norm1_, x, "norm1");  // (N,C): N rows of width C
    Keys keys{h, pass.rows.position};
    // The rows of pass.memory, such as latents, are keys but not queries.
    if (pass.memory) keys.memory = before(tape, *norm1_, pass.memory, "norm1.memory");
    Queries queries{h, pass.query_rows};
    const bool all = !pass.query_rows.data;
    const RowNames& names = all ? pass.rows : pass.query_names;
    Tensor* a = attend(tape, queries, keys, pass, names);  // (Nq,C): Nq query rows; sets queries.x to these rows of h
    if (!all) x = shape.pre_norm ? gather_rows(tape, x, pass.query_rows, "chosen.residual") : queries.x;
    x = join(tape, x, a, names, pass.dropout, *norm1_, {"attention.dropout", "residual1", "norm1"});
    if (cross_) x = attend_encoder(tape, x, pass, names);
    Tensor* f = (*ffn_)(tape, before(tape, *norm2_, x, "norm2"));  // (Nq,C): Nq query rows
    return join(tape, x, f, names, pass.dropout, *norm2_, {"ffn.dropout", "residual2", "norm2"});
}

// Returns the result of self-attention (Nq,C). If queries.chosen lists some rows, replaces queries.x by these rows.
Tensor* Block::attend(Tape& tape, Queries& queries, const Keys& keys, const Pass& pass, const RowNames& names) const {
    const auto kind = [&](int part) -> const AttentionKind& {
        return part && target_ ? find_attention(shape.target_kind) : self_attention(shape.kind, shape.cross);
    };
    AttentionContext own = context(pass, names, false);
    if (!target_ || !pass.parts) {
        if (pass.graph) expect_support(kind(pass.part), *pass.graph);
        if (target_ && pass.state && !pass.step && pass.state->part != pass.part) {
            // The rows of this pass belong to one part of the document, and the rows to generate belong to the other
            // part, pass.state->part. The generated rows will need the keys of this pass. Therefore, the attention
            // module of the generated rows stores these keys in the decoding state here. It computes no result, because
            // `none` contains no queries.
            Queries none;
            attention(pass.state->part)(tape, none, keys, own);
            own.state = nullptr;
        }
        return attention(pass.part)(tape, queries, keys, own);
    }
    if (pass.state) throw Error(path, ": token by token, rows of a pass belong to one part");
    const Queries given = queries;  // attention() may replace queries.x, so each part starts from these queries
    Tensor* found[2];
    for (int part : {0, 1}) {
        const SegmentGraph& graph = tape.hold(graph_of_part(*pass.graph, *pass.parts, part));
        expect_support(kind(part), graph);
        own.graph = &graph;
        auto scope = tape.scope(part ? "target" : "source");
        queries = given;
        found[part] = attention(part)(tape, queries, keys, own);
    }
    return rows_of_parts(tape, found[0], found[1], *pass.parts, "both");
}

// Throws BadUsage if `kind`, a kind of attention in this layer, does not support the mask `graph`.
void Block::expect_support(const AttentionKind& kind, const SegmentGraph& graph) const {
    if (const std::string why = kind.refuses(graph); !why.empty())
        throw BadUsage("attention ", kind.name, shape.in_words ? " of " + path : "",
                       " does not support this mask: ", why);
}

// Computes cross-attention, and joins its result with the residual x (see join()). The encoder's rows are not
// normalised here, because the encoder ends with a norm.
Tensor* Block::attend_encoder(Tape& tape, Tensor* x, const Pass& pass, const RowNames& names) const {
    if (!pass.cross_graph || !(pass.state ? pass.state->cross->has_memory() : pass.encoder != nullptr))
        throw Error(path, ": a layer with cross-attention, but the pass brings no encoder or no cross_graph");
    const Keys keys{pass.encoder, pass.encoder_positions};
    expect_support(cross_attention(shape.kind), *pass.cross_graph);
    Queries queries{before(tape, *norm_cross_, x, "norm_cross")};
    Tensor* a = (*cross_)(tape, queries, keys, context(pass, names, true));  // (Nq,C): Nq query rows
    return join(tape, x, a, names, pass.dropout, *norm_cross_, {"cross.dropout", "residual_cross", "norm_cross"});
}

AttentionContext Block::context(const Pass& pass, const RowNames& names, bool cross) {
    return {names,
            cross ? pass.cross_graph : pass.graph,
            cross ? pass.cross_rotary_table() : pass.rotary_table,
            pass.attention_dropout,
            pass.dropout,
            pass.companion.get(),
            pass.documents,
            pass.state ? (cross ? pass.state->cross : pass.state->self).get() : nullptr,
            pass.step};
}

LayerState Block::state(const Slots& slots, int part) const {
    return {slots.count > 0 ? attention(part).state(slots) : nullptr, cross_ ? cross_->state(slots) : nullptr, part};
}

void Block::read_memory(Tape& tape, const Pass& pass) const {
    Queries none;
    attention(pass.state->part)(tape, none, {nullptr, {}, before(tape, *norm1_, pass.memory, "norm1.memory")},
                                context(pass, pass.rows, false));
}

void Block::read_encoder(Tape& tape, const Pass& pass) const {
    Queries none;
    (*cross_)(tape, none, {pass.encoder, pass.encoder_positions}, context(pass, pass.rows, true));
}

// Returns the input of a part of the layer, such as self-attention: in a pre-norm layer the norm of x, in a post-norm
// layer x itself.
Tensor* Block::before(Tape& tape, const Norm& norm, Tensor* x, const char* name) const {
    return shape.pre_norm ? norm(tape, x, name) : x;
}

// Joins the result f of a part of the layer, such as self-attention, with the residual x. Returns x + dropout(f) in a
// pre-norm layer, and the norm of this sum in a post-norm layer.
Tensor* Block::join(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate, const Norm& norm,
                    const ResidualNames& names) const {
    if (!shape.pre_norm) return norm(tape, x, f, rows, rate, names);
    return add(tape, x, dropout(tape, f, rows, rate, names.dropout), names.sum);
}

}  // namespace masquerade
