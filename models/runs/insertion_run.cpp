// SPDX-License-Identifier: MIT
#include "models/runs/insertion_run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "engine/base/named.h"
#include "engine/io/file.h"
#include "engine/tensor/numbers.h"
#include "input/lines.h"
#include "input/number.h"
#include "input/utf8.h"
#include "models/runs/writer.h"

namespace masquerade {
namespace {

// An order of insertion, given by a number for every token of the vocabulary. If several words are missing in a slot (a
// place between two words), training prefers to insert the token with the smallest number.
struct Order {
    const char *name, *what;
    Numbers (*numbers)(const InsertionRun& run, const TrainingText& text);  // null: the order needs no numbers
};

Numbers by_frequency(const InsertionRun& run, const TrainingText& t) {
    Numbers n(run.tokenizer.vocabulary().size());
    for (const Sentence& s : run.sentences(t.train, t.train_targets))
        for (int token : s.target) n[token]--;
    return n;
}

// Returns the text of a token without the "##" with which a continuation piece begins.
std::string spelled(const InsertionRun& run, int token) {
    const std::string word(run.tokenizer.vocabulary().token(token));
    return word.rfind("##", 0) == 0 ? word.substr(2) : word;
}

template <class Of>
Numbers for_each_token(const InsertionRun& run, Of of) {
    Numbers n;
    for (int token = 0; token < run.tokenizer.vocabulary().size(); token++) n.push_back(of(token));
    return n;
}

Numbers by_length(const InsertionRun& run, const TrainingText&) {
    return for_each_token(run, [&](int token) {
        const std::string word = spelled(run, token);
        return -std::count_if(word.begin(), word.end(), starts_code_point);
    });
}

Numbers by_alphabet(const InsertionRun& run, const TrainingText&) {
    std::map<std::string, int> rank;
    const auto rank_of = [&](int token) -> int& { return rank[spelled(run, token)]; };
    for_each_token(run, rank_of);  // makes an entry in `rank` for the text of each token
    int next = 0;
    for (auto& [word, r] : rank) r = next++;
    return for_each_token(run, rank_of);
}

Numbers by_chance(const InsertionRun& run, const TrainingText&) {
    const std::uint64_t seed = run.settings.train.seed;
    return for_each_token(run, [&](int token) { return Sequence(seed, "order", token).uniform(); });
}

const std::vector<Order>& orders() {
    static const std::vector<Order> all = {
        {"left_to_right", "only the next word", nullptr},
        {"binary_tree", "the middle word first", nullptr},
        {"uniform", "all words with equal weight, in any order", nullptr},
        {"frequency", "frequent words first", by_frequency},
        {"length", "long words first", by_length},
        {"alphabetical", "in alphabetical order", by_alphabet},
        {"random", "in a random order, drawn from the seed", by_chance},
    };
    return all;
}

Numbers from_file(const InsertionRun& run, const TrainingText&) {
    Numbers n;
    if (!std::filesystem::exists(run.settings.order))
        throw BadInput(text("order=", run.settings.order, " is neither ", joined(names_of(orders())),
                            " nor a file; expected one of these names or a file with a number for each token"));
    const std::string bytes = read_file(run.settings.order);
    TextLines lines(bytes);
    for (std::string_view line; lines.next(line);) {
        if (!read_number(line, n.emplace_back()))
            throw BadInput(text(run.settings.order, ":", n.size(), ": expected a number, found \"", line, "\""));
    }
    if (int(n.size()) != run.tokenizer.vocabulary().size())
        throw BadInput(text(run.settings.order, " has ", n.size(), " numbers, expected one for each of ",
                            run.tokenizer.vocabulary().size(), " tokens of vocab.txt"));
    return n;
}

const Order& find_order(const std::string& name) {
    static const Order file{"FILE", "in the order of the numbers in a file", from_file};
    for (const Order& o : orders())
        if (o.name == name) return o;
    return file;
}

}  // namespace

InsertionSettings::InsertionSettings() {
    objective = "insertion";
    start_with(model.stacks.stack, 2);
    model.stacks.decoder_layers = 2;
}

void InsertionSettings::declare(Config& c) {
    std::string rules;
    for (const Order& o : orders()) rules += text(o.name, " (", o.what, "), ");
    c.add("objective", &objective, "insertion: an encoder and a decoder; or insertion-one-stack, kermit");
    c.add_path("order", &order,
               "which of its missing words a slot learns: " + rules +
                   "or a file with a number for every token (small numbers first)",
               names_of(orders()));
    // InsertionRule (objective.h) defines the distance of a missing word. The smallest distance gets the largest share.
    c.add("tau", &how.insertion.tau, "temperature of an order: share ~ exp(-distance / tau)", 1e-3, 1e9);
    c.add("content_location", &content_location, "p(c,l): p(c|l) p(l), or one softmax over words and slots",
          {{"factorised", Location::factorised}, {"joint", Location::joint}});
    c.add("contextual_bias", &model.contextual_bias, "add a bias for all slots, computed from their maximum");
    c.add("mixture", &model.mixture, "K, number of softmaxes in the mixture", 1, 64);
    c.add("slot_projection", &model.projection,
          "project the two rows of a slot to the width of the embedding; false: use a separate output "
          "matrix");
    c.add(
        "finalization", &finalization,
        "which slots learn to end: slot, every slot without a missing word; sequence, only slots of a complete target",
        {{"slot", End::slot}, {"sequence", End::sequence}});
    c.add("end_weight", &how.insertion.end_weight, "weight of slots that learn to end; other slots have weight 1", 0,
          1000);
    c.add("canvases", &how.insertion.canvases, "partial targets per sentence in a step; they share one encoder pass", 1,
          16);
    declare_backbone(c, model.stacks.stack);
    declare_decoder(c, model.stacks);
    declare_reading(c, model.stacks.stack);
    declare_mask(c);
    declare_rest(c, model.stacks.stack, false);  // false: no label smoothing
}

void InsertionSettings::adopt(const Stacks& stacks) { adopt_stacks(model.stacks, stacks); }

InsertionForm InsertionSettings::form() const {
    const ObjectiveMixture mix = mixture();
    if (mix.parts.size() > 1)
        throw BadUsage(text("objective ", objective, ": insertion has one objective, found ", mix.parts.size()));
    return mix.has(Objective::encoder)      ? InsertionForm::two_stacks
           : mix.has(Objective::both_sides) ? InsertionForm::either_side
                                            : InsertionForm::one_stack;
}

Stacks InsertionSettings::stacks() const {
    if (form() != InsertionForm::two_stacks) return {model.stacks.stack};
    return {model.stacks.stack, Stacks::Decoder{model.stacks.decoder_layers, model.stacks.rotary_cross}};
}

InsertionOptions InsertionSettings::net(int vocabulary_size) const {
    InsertionOptions o = model;
    BackboneOptions& stack = o.stacks.stack;
    o.one_stack = form() != InsertionForm::two_stacks;
    o.joint = content_location == Location::joint;
    o.scored = find_order(order).numbers != nullptr;
    stack.vocabulary = vocabulary_size;
    // A canvas, that is, a partial target, has a row for each of its tokens, for [CLS] and for [SEP]. max_target does
    // not count [CLS], hence the + 1.
    stack.positions =
        std::max(stack.positions, o.one_stack ? max_length + max_target + 1 : std::max(max_length, max_target + 1));
    expect_types(stack);
    if (order == "left_to_right" && form() == InsertionForm::either_side)
        throw BadUsage("kermit inserts into source and target, so order=left_to_right needs another objective");
    return o;
}

Stacks InsertionRun::stacks() const {
    const EncoderDecoderOptions& o = model.options.stacks;
    if (model.options.one_stack) return {model.head_stack().options};
    return {model.two_stacks()->options.stack, Stacks::Decoder{o.decoder_layers, o.rotary_cross}};
}

std::string InsertionRun::description() const {
    const BackboneOptions& b = model.head_stack().options;
    const std::string layers = model.options.one_stack ? text(b.layers, " layers")
                                                       : text(model.options.stacks.stack.layers,
                                                              " layers that read and ", b.layers, " that insert");
    return text(layers, ", of width ", b.width, ", objective ", settings.objective, ", order ", settings.order);
}

void InsertionRun::reads(const TrainingText& t) {
    const Order& order = find_order(settings.order);
    if (!order.numbers || step > 0) return;  // a resumed run has loaded model.scores from a checkpoint
    write_numbers(parameters.master(*model.scores), order.numbers(*this, t).data());
    scores_ = nullptr;
}

ObjectiveOptions InsertionRun::objective_options() const {
    ObjectiveOptions o = TargetRun::objective_options();
    InsertionRule& r = o.insertion;
    r.left_to_right = settings.order == "left_to_right";
    r.middle = settings.order == "binary_tree";
    if (model.scores && !scores_) {
        Numbers all = numbers_of(parameters.master(*model.scores));
        all.resize(tokenizer.vocabulary().size());
        scores_ = std::make_shared<const Numbers>(std::move(all));
    }
    r.scores = scores_;
    r.sequence = settings.finalization == InsertionSettings::End::sequence;
    r.begin = tokenizer.vocabulary().cls();
    r.end = tokenizer.vocabulary().sep();
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
    if (options.beams > 1 || options.samples > 0)
        throw BadUsage("insertion writes greedily, or in parallel (--parallel): beams and samples are not possible");
    CanvasOptions how = options.canvas;
    const bool sequence =
        settings.order == "left_to_right" || settings.finalization == InsertionSettings::End::sequence;
    how.finalization = sequence ? Finalization::sequence : Finalization::slot;
    check(how);
    how.longest = std::min(options.maximum, settings.max_target) - 1;  // both maxima include [SEP], the canvas does not
    Tokens forbidden = special_tokens();
    forbidden.insert(forbidden.end(), options.forbidden.begin(), options.forbidden.end());
    ObjectiveOptions objective = objective_options();
    objective.insertion.canvases = 1;
    InsertionDecoder decoder(model, *mixture.parts[0].objective, settings.form(), objective, forbidden);
    starts.resize(sources.size());
    std::vector<Written> all;
    constexpr std::size_t at_a_time = 64;
    for (std::size_t first = 0; first < sources.size(); first += at_a_time) {
        const std::size_t end = std::min(sources.size(), first + at_a_time);
        decoder.read({sources.begin() + first, sources.begin() + end});
        std::vector<Canvas> some(starts.begin() + first, starts.begin() + end);
        for (std::size_t i = 0; i < some.size(); i++) {
            some[i].source = int(i);
            if (int(some[i].tokens.size()) > how.longest)
                throw BadInput(text("a canvas of ", some[i].tokens.size(),
                                    " tokens is longer than the longest target, ", how.longest));
        }
        for (Written& w : write_canvases(decoder, std::move(some), how)) all.push_back(std::move(w));
    }
    return all;
}

std::vector<Hypotheses> InsertionRun::write(const Sentences& sources, SearchOptions options, std::uint64_t) const {
    std::vector<Hypotheses> all;
    for (const Written& w : insert(sources, options)) all.push_back({{w.tokens, w.score, w.ended}});
    return all;
}

Strings InsertionRun::write_lines(const Sentences& sources, const SearchOptions& options, std::uint64_t,
                                  std::vector<Measure>& rows) const {
    Strings lines;
    double rounds = 0, passes = 0, fewest = 0, ended = 0;
    for (const Written& w : insert(sources, options)) {
        lines.push_back(decode(w.tokens));
        rounds += w.rounds, passes += w.passes(), fewest += fewest_rounds(int(w.tokens.size())), ended += w.ended;
    }
    const double n = sources.size();
    rows.push_back({"rounds", rounds / n, "", "of insertion, mean"});
    rows.push_back({"rounds.fewest", fewest / n, "", "floor(log2 tokens) + 1, mean"});
    rows.push_back({"passes", passes / n, "", "of the decoder, mean"});
    rows.push_back({"ended", 100 * ended / n, "%", "by itself"});
    return lines;
}

RunWriter InsertionRun::writer(const Writing& how) {
    const SearchOptions options = how.options_for(*this, true);
    if (how.count > 0)
        throw BadUsage(
            "--count needs a model that samples text; insertion writes a target for each line of standard input");
    insert({}, options, {});  // checks the options now, before input lines are read
    // 0 samples: the writer reads input lines.
    return {0, [=](const Strings& lines, std::uint32_t first) {
                const Split split = at_tabs(lines);
                std::vector<Canvas> starts;
                for (const std::string& words : split.right)
                    starts.push_back(how.from_canvas ? canvas_of(words) : Canvas());
                std::vector<Sentence> sources = sentences(split.left);
                for (std::size_t i = 0; i < sources.size(); i++) sources[i].name = first + i;
                std::string all;
                for (const Written& w : insert(pointers_to(sources), options, std::move(starts))) {
                    Strings words;
                    for (int token : w.tokens) words.push_back(tokenizer.vocabulary().token(token));
                    all += (how.show_rounds ? draw_rounds(w, words) : decode(w.tokens)) + '\n';
                }
                return all;
            }};
}

}  // namespace masquerade
