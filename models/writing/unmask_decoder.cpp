// SPDX-License-Identifier: MIT
#include "models/writing/unmask_decoder.h"

#include <algorithm>
#include <climits>

#include "engine/tensor/numbers.h"
#include "models/tasks/diffusion_objective.h"

namespace masquerade {
namespace {

// Whether the mask lets one of the first `rows` rows see a row behind them.
bool looks_ahead(const SegmentGraph& graph, int rows) {
    for (const QuerySegment& q : graph.queries)
        for (int i = q.sees_begin; q.begin < rows && i < q.sees_end; i++)
            if (graph.keys[graph.sees[i]].end > rows) return true;
    return false;
}

}  // namespace

UnmaskDecoder::UnmaskDecoder(const TargetNet& net, const Objective& objective, const ObjectiveOptions& options,
                             bool text)
    : CanvasDecoder(net, objective, options), text_(text) {}

void UnmaskDecoder::read(const Sentences& sources, int canvases, int places) {
    sources_ = sources;
    memory_ = Memory();
    if (!cache || sources.empty() || diffusion_form(objective_) == DiffusionForm::streams) return;
    if (reader_) return reader_->read(tape_, sources, memory_);
    slots_ = {canvases, places};
    kept_.assign(canvases, {});
    if (net_.head_stack().keeps_rows()) read_contexts();
}

// Reads the contexts of all sources into memory_, unless the mask lets a context see the canvas.
void UnmaskDecoder::read_contexts() {
    const auto batch_of_contexts = [&](const Sentences& sources, int places) {
        std::vector<Example> examples;
        for (const Sentence* s : sources)
            examples.push_back(
                canvas_rows(diffusion_form(objective_), *s, !text_, {}, 0, Tokens(places, options_.mask), options_));
        return batch_of(examples);
    };
    const Backbone& stack = net_.head_stack();
    const Batch one = batch_of_contexts({sources_[0]}, slots_.longest);
    for (int i = 0; i < stack.options.layers; i++)
        if (looks_ahead(one.graph_at(i), context(0))) return;
    batch_ = batch_of_contexts(sources_, 0);
    for (const Document& d : batch_.parts) {
        const int begin = memory_.sources.empty() ? 0 : memory_.sources.back().end;
        memory_.sources.push_back({begin, begin + d.source});
    }
    memory_.layers = stack.states(slots_);
    tape_.begin("read");
    stack.run(tape_, batch_.rows, stack.pass(tape_, batch_.rows, batch_.graph), [&](int i, Tensor*&, Pass& layer) {
        layer.state = &memory_.layers[i];
        layer.graph = &batch_.graph_at(i);
    });
    tape_.end();
}

// The first place of the block that is asked.
int UnmaskDecoder::first_asked(const MaskedCanvas& canvas) const {
    const bool blocks = diffusion_form(objective_) == DiffusionForm::blocks;
    return blocks ? canvas.asked.at(0) / options_.diffusion.block * options_.diffusion.block : 0;
}

// The rank of a written token is the number of the pass that wrote it. Training makes the same rows for a text whose
// tokens are drawn in this order.
Example UnmaskDecoder::streams(const MaskedCanvas& canvas) const {
    std::vector<int> rank = canvas.came;
    for (std::size_t place = 0; place < rank.size(); place++)
        if (canvas.tokens[place] == MaskedCanvas::hidden)
            rank[place] = INT_MAX;
        else if (canvas.tokens[place] == canvas.end)
            rank[place] = -1;
    Example e = stream_rows(*sources_.at(canvas.source), !text_, canvas.tokens, rank, canvas.asked, options_);
    for (int i = 0; i < e.document.target; i++) e.labels.push(e.document.source + i, 0);
    return e;
}

Example UnmaskDecoder::example(const MaskedCanvas& canvas) const {
    const DiffusionForm form = diffusion_form(objective_);
    if (form == DiffusionForm::streams) return streams(canvas);
    // In blocks, the context grows by the places before the block that is asked, and the places behind it have no rows.
    const int places = int(canvas.tokens.size()), first = first_asked(canvas);
    const int end = form == DiffusionForm::blocks ? std::min(first + options_.diffusion.block, places) : places;
    const auto tokens = canvas.tokens.begin();
    Tokens shown(tokens + first, tokens + end);
    std::replace(shown.begin(), shown.end(), MaskedCanvas::hidden, options_.mask);
    Example e =
        canvas_rows(form, *sources_.at(canvas.source), !text_, Tokens(tokens, tokens + first), first, shown, options_);
    for (int place : canvas.asked) e.labels.push(e.document.source + place - first, 0);
    if (!memory_.layers.empty()) e.source = TokenRows();  // read() has encoded it
    return e;
}

// Runs the stack for the rows of a batch whose keys are not kept. Returns the last hidden states of the labelled rows.
Tensor* UnmaskDecoder::new_rows(const Batch& batch, const MaskedCanvases& canvases) {
    rows_ = TokenRows();
    std::vector<int> rows, slots, slot_rows;  // of the rows that run: their indices in the batch, slots and rows there
    std::vector<int> index;                   // of each row of the batch among those that run; -1: it does not run
    std::vector<KeyPlace> keys;               // of each row of the batch
    for (std::size_t i = 0; i < canvases.size(); i++) {
        const MaskedCanvas& c = *canvases[i];
        const Memory::Source& source = memory_.sources.at(c.source);
        for (int row = source.begin; row < source.end; row++) keys.push_back({0, row}), index.push_back(-1);
        const int places = batch.parts[i].source + batch.parts[i].target - (source.end - source.begin);
        const int first = first_asked(c);
        Tokens& kept = kept_.at(c.number);
        const auto finished = c.tokens.begin() + first;
        const auto same = std::mismatch(kept.begin(), kept.end(), c.tokens.begin(), finished).second - c.tokens.begin();
        const int known = first > 0 ? int(same) / options_.diffusion.block * options_.diffusion.block : 0;
        for (int place = 0; place < places; place++) {
            const int row = int(keys.size());
            keys.push_back({1, slots_.row(c.number, place)});
            index.push_back(place < known ? -1 : int(rows.size()));
            if (place < known) continue;
            rows_.push_from(batch.rows, row);
            rows.push_back(row), slots.push_back(c.number), slot_rows.push_back(keys.back().row);
        }
        kept.assign(c.tokens.begin(), finished);
    }
    const auto of_rows = [&](const SegmentGraph& graph) { return with_keys_at(only_queries(graph, rows), keys); };
    graphs_ = {{}, batch.masks.of_layer};
    for (const SegmentGraph& graph : batch.masks.graphs) graphs_.graphs.push_back(of_rows(graph));
    graphs_.graphs.push_back(of_rows(batch.graph));

    std::vector<int> labelled;  // the labelled rows among those that run
    TokenRows labelled_rows;
    for (int row : batch.labels.rows) {
        labelled.push_back(index.at(row));
        labelled_rows.push_from(batch.rows, row);
    }
    const Backbone& stack = net_.head_stack();
    const int last = stack.options.layers - 1;
    const SegmentGraph& usual = graphs_.graphs.back();
    labelled_graph_ = only_queries(graphs_.at(last, usual), labelled);
    Pass pass = stack.pass(tape_, rows_, usual);
    const Step step{tape_.ints(std::move(slots)), tape_.ints(std::move(slot_rows))};
    pass.step = &step;
    pass.part = 1;
    return stack.finish(tape_, stack.run(tape_, rows_, pass, [&](int i, Tensor*&, Pass& layer) {
        layer.state = &memory_.layers[i];
        layer.graph = &graphs_.at(i, usual);
        if (i < last) return;
        layer.query_rows = tape_.ints(std::move(labelled));
        layer.query_names = tape_.hold(std::move(labelled_rows)).names(tape_);
        layer.graph = &labelled_graph_;
    }));
}

const float* UnmaskDecoder::logits(const MaskedCanvases& canvases) {
    std::vector<Example> examples;
    std::vector<int> sources;
    for (const MaskedCanvas* canvas : canvases) {
        examples.push_back(example(*canvas));
        sources.push_back(canvas->source);
    }
    batch_ = batch_of(examples, sources);
    const bool keeps = !memory_.layers.empty();
    const Backbone& stack = net_.head_stack();
    tape_.begin(keeps ? "unmask, cached" : "unmask");
    Tensor* const h = !keeps    ? net_.hidden(tape_, batch_)
                      : reader_ ? stack.head(tape_, gather_rows(tape_, reader_->rows(tape_, batch_, memory_),
                                                                tape_.ints(batch_.labels.rows), "scored"))
                                : stack.head(tape_, new_rows(batch_, canvases));
    batch_rows_ = keeps && !reader_ ? rows_.count() : batch_.source.count() + batch_.rows.count();
    const float* const all = on_host(stack.logits(tape_, h)->view(), logits_);
    tape_.end();
    return all;
}

std::vector<Vectors> UnmaskDecoder::missing(const Sentences& sentences, const Texts& left, int end) {
    const Backbone& stack = net_.head_stack();
    std::vector<Vectors> all;
    while (all.size() < sentences.size()) {
        std::vector<Example> examples;
        for (std::size_t i = all.size(); i < std::min(sentences.size(), all.size() + 64); i++) {
            Tokens shown = left[i];
            shown.push_back(end);
            Example e = canvas_rows(diffusion_form(objective_), *sentences[i], !text_, {}, 0, shown, options_);
            for (int row = e.document.source; row < e.rows.count(); row++) e.labels.push(row, 0);
            examples.push_back(std::move(e));
        }
        batch_ = batch_of(examples);
        tape_.begin("missing");
        const OnHost z(stack.logits(tape_, net_.hidden(tape_, batch_))->view());
        for (std::size_t i = 0, row = 0; i < examples.size(); i++) {
            all.emplace_back();
            for (int each = 0; each < examples[i].labels.size(); each++, row++) {
                Numbers logits;
                for (int id = options_.vocabulary; id < vocabulary(); id++)
                    logits.push_back(z[row * vocabulary() + id]);
                all.back().push_back(std::move(logits));
            }
        }
        tape_.end();
    }
    return all;
}

}  // namespace masquerade
