// SPDX-License-Identifier: MIT
// The functions that make each kind of attention, for its row of attention_kinds(): a kind is a file beside this one.
#pragma once
#include "engine/nn/attention/attention.h"

namespace masquerade {

using MakeAttention = decltype(AttentionKind::make);
extern const MakeAttention make_softmax;
extern const MakeAttention make_window, make_longformer, make_strided, make_fixed, make_local;  // patterns.cpp
extern const MakeAttention make_lsh, make_sinkhorn, make_luna, make_luna_causal, make_linformer, make_lambda;
extern const MakeAttention make_performer, make_rfa, make_linear;  // kernel.cpp

// `which`: of a class that has several kinds.
template <class Kind, auto... which>
std::unique_ptr<const Attention> made_as(Parameters& parameters, const std::string& layer, const std::string& name,
                                         const AttentionShape& shape) {
    return std::make_unique<Kind>(parameters, layer, name, shape, which...);
}

std::string luna_refuses(const SegmentGraph& graph);
// Patterns from_start count places from the first token.
std::string pattern_refuses(const SegmentGraph& graph, bool from_start);

}  // namespace masquerade
