// SPDX-License-Identifier: MIT
#include "engine/nn/layers.h"

namespace masquerade {

Block::Block(Parameters& p, const std::string& block_path, const BlockShape& s)
    : shape(s),
      path(block_path),
      query(p, path + ".attention.query", s.width, s.width, s.deviation),
      key_value(p, path + ".attention.key_value", s.width, 2 * s.width, s.deviation),
      output(p, path + ".attention.output", s.width, s.width, s.deviation),
      up(p, path + ".ffn.up", s.width, s.inner, s.deviation),
      down(p, path + ".ffn.down", s.inner, s.width, s.deviation),
      norm1(p, path + ".norm1", s.width, s.eps),
      norm2(p, path + ".norm2", s.width, s.eps) {}

Tensor* Block::memory_keys(Tape& tape, Tensor* memory) const {
    if (shape.pre_norm) memory = norm1(tape, memory, "norm1.memory");
    return key_value(tape, memory, "attention.memory");  // (B,2C)
}

// project(h), the first `columns` of it turned where positions are turns.
Tensor* Block::at_positions(Tape& tape, const Linear& project, Tensor* h, Ints positions, const Pass& pass,
                            int columns, const std::string& name) const {
    if (!pass.turns) return project(tape, h, name);
    return linear_rotary(tape, h, project.weight, project.bias, positions, pass.turns, columns, name);
}

// Of h (N,C), the normed or plain input: the sources of the attention, memory first.
std::vector<Tensor*> Block::keys_and_values(Tape& tape, Tensor* h, const Pass& pass) const {
    const int turned = shape.rotary_value ? 2 * shape.width : shape.width;  // keys; values as well
    Tensor* own =
        at_positions(tape, key_value, h, pass.rows.position, pass, turned, "attention.key_value");  // (N,2C)
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
    Tensor* q = at_positions(tape, query, h, names.position, pass, shape.width, "attention.query");  // (Nq,C)
    Tensor* a = attention(tape, q, kv, *pass.graph, shape.heads, pass.attention_dropout, names, "attention");
    a = output(tape, a, "attention.output");  // (Nq,C)
    x = join(tape, x, a, names, pass.dropout, norm1, {"attention.dropout", "residual1", "norm1"});
    Tensor* f = shape.pre_norm ? norm2(tape, x, "norm2") : x;
    Activation inner = linear_gelu(tape, f, up.weight, up.bias, shape.gelu, "ffn.up", "ffn.gelu");  // (Nq,F)
    f = gelu_linear(tape, inner, down.weight, down.bias, "ffn.down");                               // (Nq,C)
    return join(tape, x, f, names, pass.dropout, norm2, {"ffn.dropout", "residual2", "norm2"});
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
