// SPDX-License-Identifier: MIT
// UniVAE's objectives. The encoder half reads a sentence, [CLS] a b .. [SEP]. The decoder half reads [CLS] a b ..,
// without [SEP], and each of its rows predicts the next token; the last row predicts [SEP]. In a pair, the encoder
// half reads the source, and the decoder half reads and predicts the target. In a conditional model, both halves read
// the source and the target of the pair. A decoder half that inserts words reads a canvas in place of the words, and
// predicts the missing words of its slots (models/tasks/insertion_objective.h). In masked diffusion, it reads the
// places of the words, some of which are hidden, and predicts the hidden tokens (models/tasks/diffusion_objective.h).
#include "models/tasks/univae_objective.h"

#include "models/tasks/diffusion_objective.h"
#include "models/tasks/insertion_objective.h"
#include "models/tasks/objective_parts.h"

namespace masquerade {
namespace {

// Returns the tokens that the decoder half generates for a sentence: the target of the pair or, if there is none, the
// sentence without [CLS].
Tokens wanted_of(const Sentence& s, const ObjectiveOptions& o) {
    const int n = s.ids.size();
    Tokens wanted = s.target.empty() ? Tokens(s.ids.begin() + 1, s.ids.end()) : s.target;
    if (n > o.longest) throw Error("a sentence has ", n, " tokens, expected 2 to max_length = ", o.longest);
    if (int(wanted.size()) >= o.longest)
        throw Error("a target has ", wanted.size(), " tokens, expected less than max_length = ", o.longest);
    return wanted;
}

Example halves(const Sentence& s, const ObjectiveOptions& o) {
    return source_and_target(s, wanted_of(s, o), o.target_position(int(s.ids.size())), o);
}

// Adds the rows of the encoder half: the sentence or, in a conditional model, the source and the target of the pair.
void push_encoder(Example& e, const Sentence& s, bool conditional, const ObjectiveOptions& o) {
    e.source.push_text(s.ids, o.source_type, 0, s.name);
    if (conditional) e.source.push_text(s.target, o.target_type, s.ids.size(), s.name);
}

// The encoder half reads [CLS] source [SEP] target [SEP]. The decoder half reads the source, then the target, and
// predicts the target as UniLM does.
Example condition_and_target(const Sentence& s, const ObjectiveOptions& o) {
    wanted_of(s, o);  // checks the lengths
    Example e = unilm(s, o);
    push_encoder(e, s, true, o);
    return e;
}

// Returns the rows of both halves if the decoder half inserts words into the canvas `words`. `insertions` is
// Example::insertions.
Example canvas_halves(const Sentence& s, const Tokens& words, int insertions, bool conditional,
                      const ObjectiveOptions& o) {
    const int n = s.ids.size();
    Example e;
    push_encoder(e, s, conditional, o);
    if (conditional) e.rows.push_text(s.ids, o.source_type, 0, s.name);
    push_canvas(e, InsertionForm::one_stack, words, o.target_position(n), s.name, o);
    if (conditional) e.document = {n, e.rows.count() - n};
    e.insertions = insertions;
    return e;
}

// Returns the options with the ids of [CLS] and [SEP], between which the sentence stands.
ObjectiveOptions with_ends_of(const Sentence& s, ObjectiveOptions o) {
    o.insertion.begin = s.ids.front();
    o.insertion.end = s.ids.back();
    return o;
}

template <bool conditional>
Example insertion_halves(const Sentence& s, const ObjectiveOptions& options) {
    Tokens words = wanted_of(s, options);
    words.pop_back();
    const ObjectiveOptions o = with_ends_of(s, options);
    DrawnCanvas drawn = draw_canvas(words, s, o);
    Example e = canvas_halves(s, drawn.words, int(words.size()) + 1, conditional, o);
    e.labels.choices = std::move(drawn.missing);
    return e;
}

// The rows of the decoder half, as masked diffusion has them: a conditional model reads the source before the places.
constexpr DiffusionForm form_of(bool conditional) {
    return conditional ? DiffusionForm::one_stack : DiffusionForm::places;
}

template <bool conditional>
Example diffusion_halves(const Sentence& s, const ObjectiveOptions& o) {
    wanted_of(s, o);  // checks the lengths
    Example e = diffusion(form_of(conditional), s, o);
    push_encoder(e, s, conditional, o);
    return e;
}

// Returns the mask that the batch needs if `graph` is the mask of a causal decoder half.
template <Rule rule>
SegmentGraph mask_for(SegmentGraph graph) {
    return rule == Rule::causal ? graph : full_for_causal(std::move(graph));
}

// Packs both halves of each document as one sequence.
template <Rule rule>
void push_joint(Batch& b, const LayerMasks& masks) {
    // returned: for each row, whether UniVae::decode() returns its state
    std::vector<char> returned(b.rows.count(), !b.insertions.empty());
    for (int row : b.labels.rows) returned[row] = 1;
    const bool conditional = !b.read.empty();  // the decoder half also reads the source
    int source_row = 0, row = 0;
    for (std::size_t d = 0; d < b.parts.size(); d++) {
        b.joint_cls_rows.push_back(b.joint.count());
        for (int i = 0; i < b.parts[d].source; i++) b.joint.push_from(b.source, source_row++);
        b.joint_which.push_back(d);
        b.joint_which.resize(b.joint.count(), -1);
        b.joint_parts.resize(b.joint.count(), 0);
        b.joint_read_which.resize(b.joint.count(), -1);
        for (int t = 0; t < b.parts[d].target; t++) {
            if (returned[row]) b.joint_decoder_rows.push_back(b.joint.count());
            b.joint_read_which.push_back(conditional ? b.read_which[row] : -1);
            b.joint_parts.push_back(!conditional || t >= b.read[d].source);
            b.joint_which.push_back(-1);
            b.joint.push_from(b.rows, row++);
        }
    }
    b.bucket += ",joint";
    if (conditional) {
        b.joint_lower_graph = b.joint_upper_graph = mask_for<rule>(conditional_mask(b.parts, b.read));
        return;
    }
    b.joint_lower_graph = mask_for<rule>(independent_mask(b.parts));
    b.joint_upper_graph = mask_for<rule>(uniae_mask(b.parts));
    b.joint_masks = masks.graphs(b.parts, b.inert());
}

// Sets the masks of the encoder half, and the fields about its rows [CLS]: cls, cls_rows, which and document_weights.
void mask_encoder(Batch& b, const ObjectiveOptions& o) {
    for (std::size_t d = 0; d < b.parts.size(); d++) {
        const int cls = b.which.size();
        b.cls.push_from(b.source, cls);
        b.cls_rows.push_back(cls);
        b.document_weights.push_back(int(d) < b.documents ? 1 : 0);
        b.which.push_back(d);
        b.which.resize(cls + b.parts[d].source, -1);
    }
    b.source_graph = full_mask(sources_of(b.parts));
    b.source_masks = o.masks->graphs(sources_of(b.parts), b.inert());
    b.cls_graph = only_queries(b.source_masks.at(o.last_read, b.source_graph), b.cls_rows);
}

// `rule`: the rule of the decoder half, causal or full.
template <Rule rule>
void masks_of_halves(Batch& b, const ObjectiveOptions& o) {
    mask_encoder(b, o);
    b.graph = mask_for<rule>(causal_mask(targets_of(b.parts)));
    b.latent_graph = mask_for<rule>(latent_mask(b.parts));
    b.masks.of_layer = o.masks->of_layers();
    // MaskWords::expect_bottleneck() has checked the words: all that a row of B can see of A is [CLS], the latent.
    for (const MaskWords& words : o.masks->masks())
        b.masks.graphs.push_back(with_window(words.sees_other(1) ? b.latent_graph : b.graph, words.window(1)));
    if (o.joint) push_joint<rule>(b, *o.masks);
}

template <Rule rule>
void masks_of_pairs(Batch& b, const ObjectiveOptions& o) {
    mask_encoder(b, o);
    for (std::size_t d = 0; d < b.read.size(); d++) {
        b.read_which.push_back(d);
        b.read_which.resize(b.read_which.size() + b.read[d].source + b.read[d].target - 1, -1);
    }
    b.graph = mask_for<rule>(unilm_mask(b.read));
    if (rule == Rule::causal) b.scored_graph = only_queries(b.graph, b.labels.rows);
    if (o.joint) push_joint<rule>(b, *o.masks);
}

// If the prior of the latents depends on the source, adds the batch of the sources.
Batch with_sources(const UniVae& model, Batch b, const Sentences& sentences, int pad_to) {
    if (!model.options.latent.source_prior) return b;
    b.sources = std::make_shared<const Batch>(sources_batch(model, sentences, pad_to));
    b.bucket += ";" + b.sources->bucket;
    return b;
}

}  // namespace

const std::vector<Objective>& latent_objectives() {
    static const std::vector<Objective> all = {
        {"reconstruct", "a sentence, or the target of its pair, from the latents of the sentence", Objective::none,
         halves, masks_of_halves<Rule::causal>},
        {"reconstruct-conditional", "the target of a pair, from its source and the latents of the pair",
         Objective::pairs, condition_and_target, masks_of_pairs<Rule::causal>},
        {"reconstruct-insertion", "words for every slot of a part of the sentence or target, from the latents",
         Objective::scattered, insertion_halves<false>, masks_of_halves<Rule::full>},
        {"reconstruct-conditional-insertion", "the same for a pair, from its source and the latents of the pair",
         Objective::pairs | Objective::scattered, insertion_halves<true>, masks_of_pairs<Rule::full>},
        {"reconstruct-diffusion", "hidden tokens of the sentence or target, from its visible tokens and the latents",
         Objective::scattered | Objective::mask_token | Objective::bound, diffusion_halves<false>,
         masks_of_halves<Rule::full>},
        {"reconstruct-conditional-diffusion", "the same for a pair, from its source and the latents of the pair",
         Objective::pairs | Objective::scattered | Objective::mask_token | Objective::bound, diffusion_halves<true>,
         masks_of_pairs<Rule::full>},
    };
    return all;
}

const Objective& objective_of(const UniVae& model) {
    return latent_objectives()[2 * int(model.options.decoder) + (model.options.conditional ? 1 : 0)];
}

ObjectiveOptions halves_options(const UniVae& model) {
    const UniVaeOptions& m = model.options;
    ObjectiveOptions o;
    o.masks = model.masks;
    o.longest = m.max_length;
    o.target_start = m.free_length ? -1 : m.max_length;
    o.last_read = m.latent_at.empty() ? 0 : m.latent_at.back() - 1;
    o.diffusion.text_places = o.diffusion.target_places = m.max_length - 1;
    return o;
}

Batch sources_batch(const UniVae& model, const Sentences& sentences, int pad_to) {
    std::vector<Sentence> sources;
    for (const Sentence* s : sentences) sources.push_back({s->ids, s->name, {}});
    return latent_objectives()[0].batch(pointers_to(sources), 0, halves_options(model), pad_to);
}

Batch halves_batch(const UniVae& model, const Sentences& sentences, std::uint32_t step, const ObjectiveOptions& options,
                   int pad_to) {
    return with_sources(model, objective_of(model).batch(sentences, step, options, pad_to), sentences, pad_to);
}

Batch encoder_batch(const UniVae& model, const Sentences& sentences) {
    const Objective& causal = latent_objectives()[model.options.conditional];
    return with_sources(model, causal.batch(sentences, 0, halves_options(model)), sentences, 1);
}

Batch canvas_batch(const UniVae& model, const std::vector<CanvasHalf>& canvases) {
    const bool conditional = model.options.conditional;
    std::vector<Example> examples;
    ObjectiveOptions o = halves_options(model);
    for (const CanvasHalf& c : canvases) {
        if (!conditional) o.target_start = c.start;
        if (model.insertion) {
            // There is no target; the number of insertions only says that the model inserts words.
            examples.push_back(canvas_halves(*c.sentence, c.words, 1, conditional, with_ends_of(*c.sentence, o)));
            continue;
        }
        Example e = canvas_rows(form_of(conditional), *c.sentence, conditional, {}, 0, c.words, o);
        push_encoder(e, *c.sentence, conditional, o);
        for (int place : c.asked) e.labels.push(e.document.source + place, 0);
        examples.push_back(std::move(e));
    }
    Batch b = pack(examples, 1);
    objective_of(model).give_masks(b, o);
    return b;
}

Batch halves_batch(const UniVae& model, const Sentences& sentences, int pad_to, bool joint) {
    ObjectiveOptions o = halves_options(model);
    o.joint = joint;
    return halves_batch(model, sentences, 0, o, pad_to);
}

}  // namespace masquerade
