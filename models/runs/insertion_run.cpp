// SPDX-License-Identifier: MIT
#include "models/runs/insertion_run.h"

#include <algorithm>
#include <sstream>

#include "engine/base/processes.h"
#include "models/runs/writer.h"

namespace masquerade {

InsertionSettings::InsertionSettings() {
    objective = "insertion";
    start_with(model.stack, 2);
    model.decoder_layers = 2;
}

void InsertionSettings::declare(Config& c) {
    c.topic("Objective");
    c.add("objective", &objective,
          "an encoder and a decoder (insertion), or one stack (insertion-one-stack or kermit)");
    slots.declare(c);
    c.topic("Insertion");
    c.add(
        "canvases", &how.canvases,
        "number of unfinished targets that are made from each target in a step; its source is encoded once for all of "
        "them",
        1, 16);
    declare_backbone(c, model.stack);
    declare_decoder(c, model);
    declare_reading(c, model.stack);
    declare_mask(c);
    declare_rest(c, model.stack, false);  // false: no label smoothing
}

InsertionForm InsertionSettings::form() const {
    const ObjectiveMixture mix = mixture();
    if (mix.parts.size() > 1)
        throw BadUsage("objective ", objective, ": insertion has one objective, found ", mix.parts.size());
    return mix.has(Objective::encoder)      ? InsertionForm::two_stacks
           : mix.has(Objective::both_sides) ? InsertionForm::either_side
                                            : InsertionForm::one_stack;
}

InsertionOptions InsertionSettings::net(int vocabulary_size) const {
    InsertionOptions o{slots.head(), model, form() != InsertionForm::two_stacks};
    BackboneOptions& stack = o.stacks.stack;
    stack.vocabulary = vocabulary_size;
    // A canvas, that is, a partial target, has a row for each of its tokens, for [CLS] and for [SEP]. max_target does
    // not count [CLS], hence the + 1.
    stack.positions =
        std::max(stack.positions, o.one_stack ? max_length + max_target + 1 : std::max(max_length, max_target + 1));
    expect_types(stack);
    if (slots.order == "left_to_right" && form() == InsertionForm::either_side)
        throw BadUsage("kermit inserts into source and target, so order=left_to_right needs another objective");
    return o;
}

Stacks InsertionRun::stacks() const {
    const EncoderDecoder* const two = model.two_stacks();
    return two ? stacks_of(two->options) : Stacks{model.head_stack().options};
}

std::string InsertionRun::description() const {
    const BackboneOptions& b = model.head_stack().options;
    const std::string layers = model.options.one_stack ? text(b.layers, " layers")
                                                       : text(model.options.stacks.stack.layers,
                                                              " layers that read and ", b.layers, " that insert");
    return text(layers, ", of width ", b.width, ", objective ", settings.objective, ", order ", settings.slots.order);
}

void InsertionRun::reads(const TrainingText& t) {
    if (!model.options.scored || step > 0) return;  // a resumed run has loaded the scores from a checkpoint
    const bool both = mixture.has(Objective::both_sides);
    model.head->set_scores(settings.slots.scores(tokenizer, *training_sentences(t), both, settings.train.seed));
}

ObjectiveOptions InsertionRun::objective_options() const {
    ObjectiveOptions o = TargetRun::objective_options();
    o.insertion = settings.slots.rule(tokenizer.vocabulary(), *model.head);
    o.canvases = settings.how.canvases;
    return o;
}

Canvas InsertionRun::canvas_of(const std::string& line) const {
    Canvas c;
    Encoder encoder(tokenizer);
    std::istringstream words(line);
    bool closed = false;  // whether "_" closes the slot before the next word
    for (std::string word; words >> word;) {
        if (word == "_") {
            closed = true;
            continue;
        }
        const std::size_t before = c.tokens.size();
        encoder.append(word, c.tokens);
        for (std::size_t i = before; i < c.tokens.size(); i++)
            c.closed.push_back(i > before || std::exchange(closed, false));
    }
    c.closed.push_back(closed);
    return c;
}

std::vector<Written> InsertionRun::insert(const Sentences& sources, const SearchOptions& options,
                                          std::vector<Canvas> starts) const {
    const CanvasOptions how = canvas_options(options, settings.slots.ends(), longest_canvas(options));
    Tokens forbidden = special_tokens();
    append(forbidden, options.forbidden);
    ObjectiveOptions objective = objective_options();
    objective.canvases = 1;
    InsertionDecoder decoder(model, *mixture.parts[0].objective, settings.form(), objective, forbidden);
    starts.resize(sources.size());
    std::vector<Written> all;
    constexpr std::size_t at_a_time = 64;
    for (std::size_t first = 0; first < sources.size(); first += at_a_time) {
        const std::size_t end = std::min(sources.size(), first + at_a_time);
        decoder.read({sources.begin() + first, sources.begin() + end});
        std::vector<Canvas> some(starts.begin() + first, starts.begin() + end);
        for (std::size_t i = 0; i < some.size(); i++) some[i].source = i;
        for (Written& w : write_canvases(decoder, std::move(some), how)) all.push_back(std::move(w));
    }
    return all;
}

Vectors InsertionRun::vectors(const Strings& lines, const VectorChoice& which) const {
    if (model.two_stacks()) return TargetRun::vectors(lines, which);
    const ObjectiveOptions options = objective_options();
    const auto example = [&](const Sentence& s) { return source_of(s); };
    const auto give_masks = [&](Batch& batch) { mixture.parts.at(0).objective->give_masks(batch, options); };
    return states(lines, which, model.head_stack(), example, give_masks,
                  [&](Tape& tape, const Batch& batch) { return model.rows(tape, batch); });
}

std::vector<Hypotheses> InsertionRun::write(const Sentences& sources, SearchOptions options, std::uint64_t) const {
    std::vector<Hypotheses> all;
    for (const Written& w : insert(sources, options)) all.push_back({{w.tokens, w.score, w.ended}});
    return all;
}

Strings InsertionRun::write_lines(const Sentences& sources, const SearchOptions& options, std::uint64_t,
                                  MeasureRows& rows) const {
    Strings lines;
    double rounds = 0, passes = 0, fewest = 0, ended = 0;  // sums over the lines of this process
    for (const Written& w : insert(own_part(sources, 64), options)) {
        lines.push_back(decode(w.tokens));
        rounds += w.rounds, passes += w.passes(), fewest += fewest_rounds(w.tokens.size()), ended += w.ended;
    }
    const double n = sources.size();
    rows.insert(rows.end(), {{"rounds", sum_over_processes(rounds) / n, "", "of insertion, mean"},
                             {"rounds.fewest", sum_over_processes(fewest) / n, "", "floor(log2 tokens) + 1, mean"},
                             {"passes", sum_over_processes(passes) / n, "", "of the decoder, mean"},
                             {"ended", 100 * sum_over_processes(ended) / n, "%", "by itself"}});
    return gather_lists(lines);
}

RunWriter InsertionRun::writer(const Writing& how) {
    if (how.temperature.value_or(0) > 0 || how.search.top_k > 0 || how.search.top_p < 1)
        throw BadUsage(
            "insertion writes greedily, or in parallel (--parallel): leave out --temperature, --top-k and --top-p");
    const SearchOptions options = how.options_for(*this, true);
    if (how.count > 0)
        throw BadUsage(
            "--count needs a model that samples text; insertion writes a target for each line of standard input");
    insert({}, options, {});  // checks the options now, before input lines are read
    // 0 samples: the writer reads input lines.
    return {0, [=, told = false](const Strings& lines, std::uint32_t first) mutable {
                const bool canvas = how.from_canvas;
                const Split split = canvas ? at_tabs(lines) : Split{before_tabs(lines, told), {}};
                std::vector<Canvas> starts;
                for (std::size_t i = 0; i < lines.size() && canvas; i++) {
                    if (split.left[i] == lines[i]) refuse_line(first + i, "there is no tab, expected source<TAB>words");
                    starts.push_back(canvas_of(split.right[i]));
                    const int n = starts.back().tokens.size(), most = longest_canvas(options);
                    if (n > most)
                        refuse_line(first + i, n, " tokens, expected at most ", most, " (",
                                    options.maximum < settings.max_target ? "--maximum" : "max_target", ")");
                }
                return lines_for(sentences(split.left), first, canvas ? 0 : 3, [&](const Sentences& sources) {
                    Strings all;
                    for (const Written& w : insert(sources, options, std::move(starts)))
                        all.push_back(how.show_rounds ? draw_rounds(w, pieces_of(w.tokens)) : decode(w.tokens));
                    return all;
                });
            }};
}

}  // namespace masquerade
