// SPDX-License-Identifier: MIT
#include "models/nets/backbone.h"

namespace masquerade {

Backbone::Backbone(Parameters& p, const BackboneOptions& o) : Backbone(p, o, Place{}) {}

Backbone::Backbone(Parameters& p, const BackboneOptions& o, const Place& place)
    : options(o), prefix_(place.prefix), kinds_(o.attention, o.layers) {
    // An encoder has only source rows (part 0), a decoder has only target rows (part 1), and a single stack has both.
    const int first_part = place.cross ? 1 : 0, last_part = place.head ? 1 : 0;
    if (o.width % o.heads || (o.rotary && o.width / o.heads % 2))
        throw BadUsage("width ", o.width, " does not divide into ", o.heads,
                       " heads of an even size; choose width = heads * an even number");
    if (o.rotary_value && !o.rotary)
        throw BadUsage("rotary_value=true needs rotary=true: values are rotated only where keys are");
    if (o.heads % o.key_heads())
        throw BadUsage("kv_heads is ", o.kv_heads, ", which does not divide heads, ", o.heads,
                       ": each head of keys is read by as many heads of queries");
    for (int i = 0; i < o.layers; i++)
        for (int part = first_part; part <= last_part; part++) {
            const AttentionKind& kind = kinds_.of(i, part);
            if (o.rotary && !kind.rotates)
                throw BadUsage("attention ", kind.name,
                               " has no place for rotary positions; leave rotary out, or set rotary=false");
            if (o.key_heads() != o.heads && !kind.groups_heads)
                throw BadUsage("attention ", kind.name, " has as many heads of keys as of queries; leave kv_heads out");
        }
    const double eps = o.pre_norm ? std::max(o.eps, 1e-6) : o.eps;
    const AttentionShape attention{o.width,    o.heads, o.deviation, o.rotary_value, o.positions, o.attention_options,
                                   o.pre_norm, eps,     o.norm,      o.bias,         o.kv_heads};
    const auto norm = [&](const std::string& path, int width, double epsilon) {
        return std::shared_ptr<const Norm>(find_norm(o.norm).make(p, path, width, epsilon));
    };
    if (place.embedding) {
        token_ = place.embedding->token_;
        type_ = place.embedding->type_;
        position_ = place.embedding->position_;
        embedding_norm_ = place.embedding->embedding_norm_;
        embedding_project_ = place.embedding->embedding_project_;
        companion_ = place.embedding->companion_;
    } else {
        add_embedding(p, attention);
    }
    bool has_companion = false;  // whether at least one layer has a second stream of rows beside x (class Companion)
    for (int i = 0; i < o.layers; i++) {
        const AttentionKind &source = kinds_.of(i, first_part), &target = kinds_.of(i, last_part);
        layers.emplace_back(p, prefix_ + "layer." + std::to_string(i),
                            BlockShape{attention, o.inner, o.gelu, place.cross, source.name, o.ffn, target.name,
                                       o.attention != source.name});
        has_companion |= source.companion != nullptr;
    }
    if (o.pre_norm) final_norm_ = norm(prefix_ + "final_norm", o.width, eps);
    if (o.pre_norm && has_companion && !place.head) companion_->declare_norm(p, prefix_ + "final_norm_packed");
    if (place.head) {
        const int E = o.embedding_width();
        if (o.head_rows > 0) {
            head_dense_ = Linear(p, "head.dense", o.head_rows * o.width, E, o.deviation, o.biased_head());
            head_norm_ = norm("head.norm", E, o.eps);
        }
        if (o.biased_head()) head_bias_ = p.add("head.bias", {o.vocabulary}, {Init::zeros});
    }
    if (o.rotary) rotary_table_ = make_rotary_table(o.positions, o.width / o.heads, o.rotary_base);
}

void Backbone::add_embedding(Parameters& p, const AttentionShape& attention) {
    const BackboneOptions& o = options;
    Init normal{Init::normal, o.deviation};
    const int E = o.embedding_width();
    token_ = p.add("embedding.token.weight", {o.vocabulary, E}, normal);
    type_ = p.add("embedding.type.weight", {o.types, E}, normal);
    if (!o.rotary) position_ = p.add("embedding.position.weight", {o.positions, E}, normal);
    embedding_norm_ = find_norm(o.norm).make(p, "embedding.norm", E, o.eps);
    if (E != o.width) embedding_project_ = Linear(p, "embedding.project", E, o.width, o.deviation, o.bias);
    for (const AttentionKind* kind : kinds_.named())
        if (kind->companion && !companion_) companion_ = kind->companion(p, "embedding.slots", attention);
}

Backbone Backbone::encoder(Parameters& p, const BackboneOptions& o) {
    return Backbone(p, o, {"encoder.", nullptr, false, false});
}

Backbone Backbone::decoder(Parameters& p, const BackboneOptions& o, const Backbone& encoder) {
    return Backbone(p, o, {"decoder.", &encoder, true, true});
}

Tensor* Backbone::embed(Tape& tape, const TokenRows& rows) const {
    auto scope = tape.scope(prefix_ + "embedding");
    for (int position : rows.positions)
        if (position < 0 || position >= options.positions)
            throw Error("embedding: position ", position, " lies outside [0, ", options.positions, ")");
    for (int type : rows.types)
        if (type < 0 || type >= options.types)
            throw Error("embedding: type ", type, " lies outside [0, ", options.types, ")");
    Tensor* x = embedding(tape, tape.ints(rows.ids), token_, "token");  // (N,E): N rows, E the width of the embedding
    x = add(tape, x, embedding(tape, tape.ints(rows.types), type_, "type"), "token_type");
    if (position_) x = add(tape, x, embedding(tape, tape.ints(rows.positions), position_, "position"), "sum");
    x = (*embedding_norm_)(tape, x, "norm");
    x = dropout(tape, x, rows.names(tape), float(options.dropout), "dropout");
    // (N,C): C is the width of the layers.
    return embedding_project_.weight ? embedding_project_(tape, x, "project") : x;
}

Pass Backbone::pass(Tape& tape, const TokenRows& rows, const SegmentGraph& graph) const {
    Pass pass;
    pass.rows = rows.names(tape);
    pass.graph = &graph;
    pass.dropout = float(options.dropout);
    pass.attention_dropout = float(options.attention_dropout);
    if (options.rotary)
        pass.rotary_table = tape.constant(prefix_ + "rotary_table", {options.positions, options.width / options.heads},
                                          arithmetic_of(tape.dtype), rotary_table_.data());
    if (!companion_) return pass;
    pass.companion = companion_->start();
    pass.documents = &tape.hold(names_of_documents(rows, graph));
    return pass;
}

Tensor* Backbone::run(Tape& tape, const TokenRows& rows, Pass pass, const BeforeLayer& before, int count) const {
    Tensor* x = embed(tape, rows);  // (N,C): N rows of width C
    for (int i = 0; i < (count < 0 ? options.layers : count); i++) {
        if (before) before(i, x, pass);
        x = layers[i](tape, x, pass);
    }
    return x;
}

std::vector<int> Backbone::names_of_documents(const TokenRows& rows, const SegmentGraph& graph) const {
    std::vector<int> names(graph.documents);
    // A document's random numbers depend on its name, which is a number. Sentences have the names 0, 1, .... A document
    // without rows in this pass gets a negative name, so that it shares its random numbers with no sentence.
    for (int d = 0; d < graph.documents; d++) names[d] = -1 - d;
    for (const QuerySegment& q : graph.queries)
        if (q.begin < std::min(q.end, rows.count())) names[q.document] = rows.document[q.begin];
    return names;
}

Tensor* Backbone::finish(Tape& tape, Tensor* x) const {
    return options.pre_norm ? (*final_norm_)(tape, x, prefix_ + "final_norm") : x;
}

std::vector<LayerState> Backbone::states(const Slots& slots, int part) const {
    std::vector<LayerState> all;
    for (const Block& layer : layers) all.push_back(layer.state(slots, part));
    return all;
}

Tensor* Backbone::head(Tape& tape, Tensor* x) const {
    auto scope = tape.scope("head");
    x = head_dense_(tape, x, "dense");  // (N,E): N rows, E the width of the embedding
    x = find_feed_forward(options.ffn).activate(tape, x, options.gelu);
    return (*head_norm_)(tape, x, "norm");
}

Tensor* Backbone::logits(Tape& tape, Tensor* h) const {
    Tensor* const logits = linear_unrounded(tape, h, token_, head_bias_, "logits");
    tape.retain(logits);
    return logits;
}

Tensor* Backbone::loss(Tape& tape, Tensor* h, const std::vector<int>& targets, Tensor* weights, const std::string& name,
                       Tensor** losses, double smoothing) const {
    return cross_entropy(tape, h, token_, head_bias_, tape.ints(targets), weights, name, losses, smoothing);
}

Backbone::MeanLoss Backbone::mean_loss(Tape& tape, Tensor* h, const std::vector<int>& targets, Numbers weights,
                                       int count, double smoothing) const {
    for (double& w : weights) w /= count;
    Tensor* each =
        tape.constant("token_weights", {std::int64_t(weights.size())}, arithmetic_of(tape.dtype), weights.data());
    MeanLoss mean;
    mean.total = loss(tape, h, targets, each, "loss", &mean.losses, smoothing);
    tape.retain(mean.losses);
    tape.retain(mean.total);
    return mean;
}

Tensor* Backbone::token_losses(Tape& tape, Tensor* h, const std::vector<int>& targets) const {
    return masquerade::token_losses(tape, h, token_, head_bias_, tape.ints(targets), "losses");
}

}  // namespace masquerade
