// SPDX-License-Identifier: MIT
#include "models/writing/cached_writer.h"

#include <algorithm>

#include "engine/tape/rehearsal.h"
#include "engine/tensor/copy.h"
#include "models/masks/mask.h"

namespace masquerade {

CachedWriter::CachedWriter(const Backbone& stack, int type, bool backward, int part)
    : stack_(stack),
      type_(type),
      backward_(backward),
      part_(part),
      arena_(stack.device(), stack.blocks()),
      tape_(arena_, stack.storage()) {}

Memory& CachedWriter::start(int most_rows, int longest, int mask) {
    close();
    shortlists_.prepare(0, 0, vocabulary(), stack_.device());
    std::vector<LayerState> layers = std::move(memory_.layers);
    memory_ = Memory();
    memory_.mask = mask;
    const Slots slots{most_rows, longest, backward_}, all{mask < 0 ? most_rows : 2 * most_rows, longest, backward_};
    const auto forgets = [](LayerState& layer) {
        return (!layer.self || layer.self->forget()) && (!layer.cross || layer.cross->forget());
    };
    const bool reuses = !layers.empty() && all.count <= made_.count && all.longest == made_.longest &&
                        std::all_of(layers.begin(), layers.end(), forgets);
    if (!reuses) {
        layers.clear();  // freed before new states are made
        layers = stack_.states(all, part_);
        made_ = all;
    }
    memory_.layers = std::move(layers);
    slots_.start(slots);
    asked_ = false;
    return memory_;
}

// Returns the segment graph of a step, that is, which rows see which, under the mask `words`. The argument `documents`
// lets every row see its whole source; the mask may restrict this to a part of the source.
SegmentGraph CachedWriter::written_graph(const MaskWords& words, std::vector<CachedDocument> documents,
                                         int token_source) const {
    Window window;
    for (CachedDocument& d : documents) {
        const MaskWords::Written w = words.written(d.seen_end - d.seen_begin, memory_.goes_on);
        window = w.window;
        d.seen_end = d.seen_begin + w.to;
        d.seen_begin += w.from;
    }
    return with_window(cached_mask(documents, token_source), window);
}

Tensor* CachedWriter::run(const std::vector<Row>& rows, const Tokens& ids) {
    const int written = slots_.written();
    rows_ = TokenRows();
    std::vector<CachedDocument> alone, with_memory;
    Documents cross;
    for (const Memory::Source& s : memory_.sources) cross.push_back({s.end - s.begin, 0});
    for (std::size_t i = 0; i < rows.size(); i++) {
        const Memory::Source& s = memory_.sources[rows[i].source];
        rows_.push(ids[i], type_, backward_ ? s.position - written : s.position + written, s.name);
        const int first = slots_.first_row(i);
        alone.push_back({0, 0, first, written, 1});
        with_memory.push_back({s.begin, s.end, first, written, 1, memory_.goes_on});
        cross[rows[i].source].target++;  // cross_mask() requires rows sorted by source, as NextToken::step() does
    }
    alone_graph_ = cached_mask(alone, 0, backward_), graph_ = cached_mask(with_memory, 1, backward_);
    const auto has_memory = [&](int i) { return memory_.layers[i].self->has_memory(); };
    const bool reads_encoder = !memory_.layers.empty() && memory_.layers[0].cross;
    if (reads_encoder) cross_graph_ = cross_mask(cross);
    masks_ = cross_masks_ = {};
    if (memory_.masks) {
        masks_ = {std::vector<SegmentGraph>(memory_.masks->masks().size()), memory_.masks->of_layers()};
        for (int i = 0; i < stack_.options.layers; i++) {
            const int mask = masks_.of_layer[i];
            if (mask < 0 || masks_.graphs[mask].documents > 0) continue;
            const bool seen = has_memory(i);  // layers with the same mask all have a memory, or none of them has one
            masks_.graphs[mask] = written_graph(memory_.masks->masks()[mask], seen ? with_memory : alone, seen ? 1 : 0);
        }
        if (reads_encoder) cross_masks_ = memory_.masks->cross(cross);
    }
    Pass pass = stack_.pass(tape_, rows_, alone_graph_);
    pass.rotates_cross = memory_.rotates_cross;
    pass.part = part_;
    const Step step = slots_.step(tape_);
    pass.step = &step;
    return stack_.run(tape_, rows_, pass, [&](int i, Tensor*&, Pass& layer) {
        layer.state = &memory_.layers[i];
        layer.graph = &masks_.at(i, has_memory(i) ? graph_ : alone_graph_);
        if (reads_encoder) layer.cross_graph = &cross_masks_.at(i, cross_graph_);
    });
}

namespace {
Tokens ids_of(const std::vector<NextToken::Row>& rows) {
    Tokens ids;
    for (const NextToken::Row& row : rows) ids.push_back(row.token);
    return ids;
}
}  // namespace

// Passes that call different ops need different names. The first step reads the memory instead of decoding states; a
// later step may also copy states.
void CachedWriter::pass(const char* name, const std::vector<Row>& rows, const Tokens& ids, bool predicts) {
    const char* kind = slots_.written() == 0 ? ", first" : slots_.copies() ? ", copying" : "";
    run_pass(tape_, text(name, kind, predicts && shortlists_.width() > 0 ? ", listing" : ""), graph, [&] {
        slots_.copy(tape_, memory_.layers);
        Tensor* const x = run(rows, ids);
        if (predicts) predict(stack_.logits(tape_, stack_.head(tape_, stack_.finish(tape_, x)))->view());
    });
}

void CachedWriter::predict(const View& logits) {
    logits_ = logits;
    if (shortlists_.width() > 0) shortlists_.compute(logits);
}

void CachedWriter::feed_tokens(const std::vector<Row>& rows) {
    slots_.follow(rows);
    pass("step", rows, ids_of(rows), true);
    slots_.advance();
}

View CachedWriter::feed(const std::vector<Row>& rows) {
    close();
    shortlists_.prepare(0, 0, vocabulary(), stack_.device());
    feed_tokens(rows);
    return logits_;
}

// Feeds the tokens of the rows, except in the first step, in which the prefixes are empty. Then feeds a [MASK] after
// each prefix and returns the logits of these [MASK] rows.
void CachedWriter::feed_masks(const std::vector<Row>& rows) {
    slots_.follow(rows);
    if (asked_) {
        pass("feed", rows, ids_of(rows), false);
        slots_.advance();
        tape_.end();
    }
    slots_.follow_with_copies();
    pass("ask", rows, Tokens(rows.size(), memory_.mask), true);
}

void Memory::set_next(const View& logits) {
    next_memory = Buffer(logits.bytes(), logits.device);
    next = {next_memory.data(), logits.dtype, logits.device, logits.shape, "next"};
    copy(logits, next);
}

void CachedWriter::run_step(const std::vector<Row>& rows, int width) {
    if (arithmetic_of(tape_.dtype) != DType::f32) throw Error("text is written by a model in f32 or bf16");
    close();
    shortlists_.prepare(width > 0 ? int(rows.size()) : 0, width, vocabulary(), stack_.device());
    if (!asked_ && memory_.next) {
        for (std::size_t i = 0; i < rows.size(); i++)
            if (rows.size() != std::size_t(memory_.next.rows()) || rows[i].source != int(i))
                throw Error("the first step has ", rows.size(), " rows, and row ", i, " is of source ", rows[i].source,
                            "; expected one row for each of the ", memory_.next.rows(), " sources, in order");
        predict(memory_.next);
        asked_ = true;
        return;
    }
    if (memory_.mask < 0)
        feed_tokens(rows);
    else
        feed_masks(rows);
    asked_ = open_ = true;
}

void CachedWriter::close() {
    if (open_) tape_.end();
    open_ = false;
}

const float* CachedWriter::step(const std::vector<Row>& rows) {
    run_step(rows, 0);
    return logits();
}

const Shortlists* CachedWriter::shortlists(const std::vector<Row>& rows, int width) {
    if (tape_.device == Device::cpu) return nullptr;
    run_step(rows, width);
    shortlists_.read();
    return &shortlists_;
}

const float* CachedWriter::logits() {
    return logits_.device == Device::cpu ? logits_.as<float>() : on_host(logits_, logits_on_host_);
}

const float* on_host(const View& logits, std::vector<float>& memory) {
    memory.resize(logits.count());
    copy_bytes(logits.data, logits.device, memory.data(), Device::cpu, logits.bytes());
    return memory.data();
}

std::vector<Hypotheses> write_targets(NextToken& model, const std::vector<SearchSource>& about,
                                      const SearchOptions& options, std::uint64_t seed,
                                      const std::function<void(std::size_t, std::size_t, int)>& read) {
    const std::size_t hypotheses = std::max({1, options.beams, options.samples});  // of a source
    const std::size_t at_a_time = std::clamp<std::size_t>(4096 / hypotheses, 1, 64);
    std::vector<Hypotheses> all;
    for (std::size_t first = 0; first < about.size(); first += at_a_time) {
        const std::size_t count = std::min(at_a_time, about.size() - first);
        read(first, count, int(count * hypotheses));
        const auto from = about.begin() + first;
        for (Hypotheses& found : search(model, {from, from + count}, options, seed)) all.push_back(std::move(found));
    }
    return all;
}

std::vector<Hypotheses> write_targets(SourceReader& reader, const std::vector<SearchSource>& about,
                                      const Sentences& sources, const SearchOptions& options, std::uint64_t seed) {
    return write_targets(reader, about, options, seed, [&](std::size_t first, std::size_t count, int most_rows) {
        reader.read({&sources[first], &sources[first] + count}, most_rows);
    });
}

}  // namespace masquerade
