// SPDX-License-Identifier: MIT
#include "engine/nn/layers.h"

namespace masquerade {

CrossAttention::CrossAttention(Parameters& p, const std::string& path, const BlockShape& s)
    : query(p, path + ".cross.query", s.width, s.width, s.deviation),
      key_value(p, path + ".cross.key_value", s.width, 2 * s.width, s.deviation),
      output(p, path + ".cross.output", s.width, s.width, s.deviation),
      norm(p, path + ".norm_cross", s.width, s.eps) {}

Block::Block(Parameters& p, const std::string& block_path, const BlockShape& s)
    : shape(s),
      path(block_path),
      query(p, path + ".attention.query", s.width, s.width, s.deviation),
      key_value(p, path + ".attention.key_value", s.width, 2 * s.width, s.deviation),
      output(p, path + ".attention.output", s.width, s.width, s.deviation),
      up(p, path + ".ffn.up", s.width, s.inner, s.deviation),
      down(p, path + ".ffn.down", s.inner, s.width, s.deviation),
      norm1(p, path + ".norm1", s.width, s.eps),
      norm2(p, path + ".norm2", s.width, s.eps) {
    if (s.cross) cross.emplace(p, path, s);
}

Tensor* Block::memory_keys(Tape& tape, Tensor* memory) const {
    if (shape.pre_norm) memory = norm1(tape, memory, "norm1.memory");
    return key_value(tape, memory, "attention.memory");  // (B,2C)
}

// Not normed here: E has the encoder's own last norm.
Tensor* Block::encoder_keys(Tape& tape, const Pass& pass) const {
    Tensor* turns = pass.encoder_positions.data ? pass.turns : nullptr;
    return at_positions(tape, cross->key_value, pass.encoder, pass.encoder_positions, turns, shape.width,
                        "cross.key_value");
}

// project(h), the first `columns` of it turned where positions are turns.
Tensor* Block::at_positions(Tape& tape, const Linear& project, Tensor* h, Ints positions, Tensor* turns,
                            int columns, const std::string& name) const {
    if (!turns) return project(tape, h, name);
    return linear_rotary(tape, h, project.weight, project.bias, positions, turns, columns, name);
}

// Of h (N,C), the normed or plain input: the sources of the attention, memory first.
std::vector<Tensor*> Block::keys_and_values(Tape& tape, Tensor* h, const Pass& pass) const {
    const int turned = shape.rotary_value ? 2 * shape.width : shape.width;  // keys; values as well
    Tensor* own = at_positions(tape, key_value, h, pass.rows.position, pass.turns, turned,
                               "attention.key_value");  // (N,2C)
    if (pass.cache) {
        store_rows(own->view(), pass.cache->rows, pass.cache->own->view());
        if (pass.cache->memory) return {pass.cache->memory, pass.cache->own};
        return {pass.cache->own};
    }
    if (pass.memory) return {memory_keys(tape, pass.memory), own};
    return {own};
}

// x + dropout(f), normed in the post-LN block.
Tensor* Block::join(Tape& tape, Tensor* x, Tensor* f, const RowNames& rows, float rate, const LayerNorm& norm,
                    const ResidualNames& names) const {
    if (!shape.pre_norm) return norm(tape, x, f, rows, rate, names);
    return add(tape, x, dropout(tape, f, rows, rate, names.dropout), names.sum);
}

Tensor* Block::attend(Tape& tape, Tensor* x, Tensor* h, const std::vector<Tensor*>& kv, const Pass& pass,
                      const RowNames& names) const {
    Tensor* q = at_positions(tape, query, h, names.position, pass.turns, shape.width,
                             "attention.query");  // (Nq,C)
    Tensor* a = attention(tape, q, kv, *pass.graph, shape.heads, pass.attention_dropout, names, "attention");
    a = output(tape, a, "attention.output");  // (Nq,C)
    x = join(tape, x, a, names, pass.dropout, norm1, {"attention.dropout", "residual1", "norm1"});
    if (cross) x = attend_encoder(tape, x, pass, names);
    Tensor* f = shape.pre_norm ? norm2(tape, x, "norm2") : x;
    Activation inner = linear_gelu(tape, f, up.weight, up.bias, shape.gelu, "ffn.up", "ffn.gelu");  // (Nq,F)
    f = gelu_linear(tape, inner, down.weight, down.bias, "ffn.down");                               // (Nq,C)
    return join(tape, x, f, names, pass.dropout, norm2, {"ffn.dropout", "residual2", "norm2"});
}

Tensor* Block::attend_encoder(Tape& tape, Tensor* x, const Pass& pass, const RowNames& names) const {
    if (!pass.cross_graph || !(pass.cache ? pass.cache->encoder : pass.encoder))
        throw Error(
            text(path, ": a layer with cross-attention, but the pass brings no encoder or no cross_graph"));
    Tensor* kv = pass.cache ? pass.cache->encoder : encoder_keys(tape, pass);  // (Ne,2C)
    Tensor* turns = pass.encoder_positions.data ? pass.turns : nullptr;
    Tensor* h = shape.pre_norm ? cross->norm(tape, x, "norm_cross") : x;
    Tensor* q =
        at_positions(tape, cross->query, h, names.position, turns, shape.width, "cross.query");  // (Nq,C)
    Tensor* a =
        attention(tape, q, {kv}, *pass.cross_graph, shape.heads, pass.attention_dropout, names, "cross");
    a = cross->output(tape, a, "cross.output");  // (Nq,C)
    return join(tape, x, a, names, pass.dropout, cross->norm,
                {"cross.dropout", "residual_cross", "norm_cross"});
}

Tensor* Block::operator()(Tape& tape, Tensor* x, const Pass& pass) const {
    auto scope = tape.scope(path);
    Tensor* h = shape.pre_norm ? norm1(tape, x, "norm1") : x;  // (N,C)
    std::vector<Tensor*> kv = keys_and_values(tape, h, pass);
    if (!pass.query_rows.data) return attend(tape, x, h, kv, pass, pass.rows);
    Tensor* chosen = gather_rows(tape, x, pass.query_rows, "chosen");  // (Nq,C)
    Tensor* chosen_h = shape.pre_norm ? gather_rows(tape, h, pass.query_rows, "chosen.norm1") : chosen;
    return attend(tape, chosen, chosen_h, kv, pass, pass.query_names);
}

}  // namespace masquerade
