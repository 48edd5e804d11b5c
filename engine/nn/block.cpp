// SPDX-License-Identifier: MIT
#include "engine/nn/block.h"

namespace masquerade {

Block::Block(Parameters& p, const std::string& block_path, const BlockShape& s)
    : shape(s),
      path(block_path),
      attention_(self_attention(s.kind, s.cross).make(p, path, "attention", s)),
      ffn_(find_feed_forward(s.ffn).make(p, path + ".ffn", {s.width, s.inner, s.deviation, s.bias, s.gelu})),
      norm1_(find_norm(s.norm).make(p, path + ".norm1", s.width, s.eps)),
      norm2_(find_norm(s.norm).make(p, path + ".norm2", s.width, s.eps)) {
    if (!s.cross) return;
    AttentionShape cross = s;
    cross.rotary_value = false;
    cross_ = cross_attention(s.kind).make(p, path, "cross", cross);
    norm_cross_ = find_norm(s.norm).make(p, path + ".norm_cross", s.width, s.eps);
}

Tensor* Block::operator()(Tape& tape, Tensor* x, const Pass& pass) const {
    auto scope = tape.scope(path);
    Tensor* const h = before(tape, *norm1_, x, "norm1");  // (N,C): N rows of width C
    Keys keys{h, pass.rows.position};
    if (pass.memory) keys.memory = before(tape, *norm1_, pass.memory, "norm1.memory");
    Queries queries{h, pass.query_rows};
    const bool all = !pass.query_rows.data;
    const RowNames& names = all ? pass.rows : pass.query_names;
    Tensor* a = (*attention_)(tape, queries, keys, context(pass, names, false));  // (Nq,C): Nq query rows
    if (!all) x = shape.pre_norm ? gather_rows(tape, x, pass.query_rows, "chosen.residual") : queries.x;
    x = join(tape, x, a, names, pass.dropout, *norm1_, {"attention.dropout", "residual1", "norm1"});
    if (cross_) x = attend_encoder(tape, x, pass, names);
    Tensor* f = (*ffn_)(tape, before(tape, *norm2_, x, "norm2"));  // (Nq,C): Nq query rows
    return join(tape, x, f, names, pass.dropout, *norm2_, {"ffn.dropout", "residual2", "norm2"});
}

// Returns x with the result of cross-attention added. The encoder's rows are not normalised here, because the encoder
// ends with a norm.
Tensor* Block::attend_encoder(Tape& tape, Tensor* x, const Pass& pass, const RowNames& names) const {
    if (!pass.cross_graph || !(pass.state ? pass.state->cross->has_memory() : pass.encoder != nullptr))
        throw Error(text(path, ": a layer with cross-attention, but the pass brings no encoder or no cross_graph"));
    const Keys keys{pass.encoder, pass.encoder_positions};
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

LayerState Block::state(const Slots& slots) const {
    return {slots.count > 0 ? attention_->state(slots) : nullptr, cross_ ? cross_->state(slots) : nullptr};
}

void Block::read_memory(Tape& tape, const Pass& pass) const {
    Queries none;
    (*attention_)(tape, none, {nullptr, {}, before(tape, *norm1_, pass.memory, "norm1.memory")},
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
