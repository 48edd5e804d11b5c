// SPDX-License-Identifier: MIT
#include "models/runs/target_run.h"

#include <algorithm>
#include <climits>

#include "engine/base/printable.h"
#include "engine/tensor/numbers.h"
#include "models/runs/sentence_task.h"

namespace masquerade {
namespace {

// Returns the loss of an objective on sentences or pairs. Objectives with random numbers (mlm, plm, mass, ...) use
// those of step 0.
ScoredLoss scored_loss(const TargetNet& net, const Objective& objective, const ObjectiveOptions& options,
                       const std::vector<const Sentence*>& sentences) {
    ScoredLoss all;
    double sum = 0;
    const auto make = [&](const auto& some) { return objective.batch(some, 0, options); };
    each_batch(net.head_stack(), sentences, 32, make, [&](Tape& tape, const Batch& batch, std::size_t) {
        tape.begin("evaluate");
        const TargetNet::Losses scored = net.losses(tape, batch);
        const OnHost losses(scored.each->view());
        for (int m = 0; m < scored.count; m++) sum += losses[m];
        all.documents += batch.documents;
        all.tokens += scored.count;
        tape.end();
    });
    all.per_token = sum / double(std::max<std::int64_t>(all.tokens, 1));
    all.per_document = sum / double(std::max<std::int64_t>(all.documents, 1));
    return all;
}

std::string shortened(const std::string& line, std::size_t most) {
    if (line.size() <= most) return line;
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) end--;
    return line.substr(0, end) + " ...";
}

class TargetTask : public SentenceTask {
  public:
    TargetTask(TargetRun& run, std::vector<Sentence> train, std::vector<Sentence> held_out)
        : SentenceTask(run, std::move(train), std::move(held_out)), run_(run) {}

    std::string next_batch(std::int64_t step) override {
        const auto number = std::uint32_t(step);
        const Objective& objective = run_.mixture.at(run_.common().train.seed, number);
        batch_ = objective.batch(take(), number, run_.objective_options(), 64);
        return batch_.bucket;
    }
    Tensor* loss(Tape& tape, std::int64_t, std::int64_t) override {
        return run_.net().loss(tape, batch_, run_.common().label_smoothing).total;
    }
    std::int64_t batch_tokens() const override { return batch_.labels.count; }

    // Returns the weighted mean loss, followed by the loss of each objective if there are several.
    std::vector<Metric> validate() override {
        if (held_out_.empty()) return {};
        std::vector<Metric> metrics = {{"loss", 0}};
        const std::vector<PartLoss> losses = run_.losses(pointers_to(held_out_, validated), true);
        for (const PartLoss& part : losses) {
            metrics[0].value += part.weight * part.loss.per_token;
            if (losses.size() > 1) metrics.push_back({part.objective, part.loss.per_token});
        }
        return metrics;
    }

    // Returns greedily generated targets of held-out sources. Empty without pairs, or if the run cannot generate.
    std::string show(std::int64_t) override {
        if (!run_.reads_pairs() || !run_.writes() || held_out_.empty()) return "";
        const std::vector<const Sentence*> some = pointers_to(held_out_, shown);
        const auto written = run_.write(some, {}, run_.common().train.seed);
        std::string out = "  held-out sources, what is written for them, and their own targets\n";
        for (std::size_t i = 0; i < some.size(); i++) {
            const std::vector<int>& ids = some[i]->ids;
            out += "    " + shortened(run_.text({ids.begin() + 1, ids.end() - 1}), 68) + "\n";
            out += "      > " + run_.text(written[i].at(0).tokens) + "\n";
            out += "      = " + run_.text({some[i]->target.begin(), some[i]->target.end() - 1}) + "\n";
        }
        return out;
    }

  private:
    const TargetRun& run_;
    Batch batch_;
};

}  // namespace

void TargetSettings::start_with(BackboneOptions& stack, int layers) {
    batch_tokens = 2000;
    train.learning_rate = 1.5e-3;
    stack.width = 256, stack.heads = 4, stack.inner = 1024, stack.layers = layers;
    stack.positions = 0;
    stack.deviation = 0.035;
}

void TargetSettings::declare_reading(Config& c, BackboneOptions& stack) {
    std::vector<std::string> tasks = names_of(pair_tasks());
    tasks.insert(tasks.begin(), "none");
    c.add("task", &made.task,
          "task whose pairs are generated: of words, or of a graph and a path in it; none: read a text", tasks);
    c.add("length", &made.length, "copy, reverse, sort: maximum number of words", 0, 4096);
    c.add("words", &made.words, "number of different words; 0: 32, or for star_graph as many as a graph has nodes", 0,
          65536);
    c.add("level", &made.level, "star_graph: size of the graph", names_of(star_levels()));
    c.add("max_length", &max_length, "longest source with [CLS] and [SEP]; longer ones are cut", 3, 65536);
    c.add("max_target", &max_target, "longest target with its [SEP]; longer ones are cut", 2, 65536);
    c.add("source_type", &source_type, "segment id of a source", 0, 65535);
    c.add("target_type", &target_type, "segment id of a target", 0, 65535);
    const auto longest = [this] { return made.any() ? find_pair_task(made).size(made) : PairTask::Size{}; };
    c.follows("max_length", [=, start = max_length] { max_length = std::max(start, longest().source + 2); });
    c.follows("max_target", [=, start = max_target] { max_target = std::max(start, longest().target + 1); });
    declare_foreign(c, stack);
}

TargetSettings::Masks TargetSettings::masks() const {
    if (mask.empty()) return {};
    const Stacks there = stacks();
    const auto parsed = [&](int layers, StackRows rows) {
        return std::make_shared<const LayerMasks>(mask, layers, rows);
    };
    if (!there.decoder) return {parsed(there.first.layers, StackRows::both), nullptr};
    return {parsed(there.decoder->layers, StackRows::decoder), parsed(there.first.layers, StackRows::encoder)};
}

TargetRun::TargetRun(const TargetSettings& s, Vocabulary v, DType storage, Device device)
    : Run(s, std::move(v), storage, device), mixture(s.mixture()), masks(s.masks()) {
    if (s.made.any() && Vocabulary(s.words()).lines() != tokenizer.vocabulary().lines())
        throw BadInput(
            masquerade::text("the vocabulary is not that of task ", s.made.task, ", which brings its own words"));
}

void TargetSettings::declare_decoder(Config& c, EncoderDecoderOptions& stacks) {
    c.add("decoder_layers", &stacks.decoder_layers, "layers of the decoder; `layers` are the encoder's", 1, 1024);
    c.add("rotary_cross", &stacks.rotary_cross, "rotary positions in the cross-attention as well");
}

void TargetSettings::adopt_stacks(EncoderDecoderOptions& ours, const Stacks& theirs) {
    ours.stack = theirs.first;
    ours.decoder_layers = theirs.decoder ? theirs.decoder->layers : theirs.first.layers;
    if (theirs.decoder) ours.rotary_cross = theirs.decoder->rotary_cross;
}

void TargetSettings::declare_rest(Config& c, BackboneOptions& stack, bool smooths) {
    if (smooths)
        c.add("label_smoothing", &label_smoothing,
              "share of the target probability that is spread over all words in training", 0, 0.99);
    c.add("positions", &stack.positions, "P, minimum number of positions; 0: as many as the lengths need", 0, 1000000);
    c.add("batch_tokens", &batch_tokens, "tokens of a batch", 2, 1000000);
    declare_tokenizer(c);
    declare_training(c);
}

// Returns the ./generate command. Models that were trained on texts without pairs need no input lines.
std::string TargetRun::writing_command(const std::string& folder) const {
    if (!writes() && !writes_backward()) return "";
    return "./generate " + shell_word(folder) + (writes() && !continues() ? " < SOURCES" : " --count 10");
}

std::vector<Sentence> TargetRun::sentences(const std::vector<std::string>& sources,
                                           const std::vector<std::string>& targets) const {
    return encode_pairs(tokenizer, sources, targets, common().source_limit().tokens, common().target_limit().tokens);
}

std::vector<Sentence> TargetRun::beginnings(const std::vector<std::string>& lines) const {
    const int most = common().max_length - common().max_length / 4;
    std::vector<Sentence> all = encode_lines(tokenizer, lines, INT_MAX);
    for (Sentence& s : all) {
        s.ids.pop_back();
        const auto after_cls = s.ids.begin() + 1;
        s.ids.erase(after_cls, after_cls + std::max(0, int(s.ids.size()) - most));
    }
    return all;
}

std::vector<Sentence> TargetRun::endings(const std::vector<std::string>& lines) const {
    std::vector<Sentence> all = encode_lines(tokenizer, lines, INT_MAX);
    for (Sentence& s : all) {
        const int surplus = int(s.ids.size()) - (common().max_length - 1);
        s.ids.erase(s.ids.begin(), s.ids.begin() + std::max(1, surplus));
    }
    return all;
}

void TargetRun::expect_to_write(bool backward) const {
    if (const std::string why = unwritable(); !backward && !why.empty()) throw BadUsage(why);
    if (backward && !writes_backward())
        throw BadUsage(masquerade::text(
            "objective ", objective(),
            " does not train to generate what precedes a text; ./train unilm objective=lm-reverse does"));
    if (!backward && !writes())
        throw BadUsage(
            masquerade::text("objective ", objective(),
                             " does not train to continue a text; ./evaluate measures what the run has learned"));
}

std::vector<std::vector<Hypothesis>> TargetRun::write_before(const std::vector<const Sentence*>& endings,
                                                             SearchOptions options, std::uint64_t seed) const {
    expect_to_write(true);
    const int room = common().max_length;
    std::vector<SearchSource> about;
    for (const Sentence* s : endings)
        about.push_back(search_source(*s, s->ids.front(), tokenizer.vocabulary().cls(),
                                      std::min(options.maximum, room - int(s->ids.size()))));
    const std::unique_ptr<SourceReader> reader = backward_reader(std::min(options.maximum, room));
    auto all = written(*reader, about, endings, std::move(options), seed);
    for (auto& hypotheses : all)
        for (Hypothesis& h : hypotheses) std::reverse(h.tokens.begin(), h.tokens.end());
    return all;
}

SearchSource TargetRun::search_source(const Sentence& s, int begin, int end, int maximum) const {
    SearchSource source;
    source.line = std::uint32_t(s.name);
    source.begin = begin;
    source.ends = {end};
    source.maximum = std::max(1, maximum);
    return source;
}

std::vector<std::vector<Hypothesis>> TargetRun::written(SourceReader& reader, const std::vector<SearchSource>& about,
                                                        const std::vector<const Sentence*>& sources,
                                                        SearchOptions options, std::uint64_t seed) const {
    if (sources.empty()) return {};
    for (int id : special_tokens())
        if (id != about[0].ends[0] && id != tokenizer.vocabulary().unk()) options.forbidden.push_back(id);
    return write_targets(reader, about, sources, options, seed);
}

void TargetSettings::expect_types(const BackboneOptions& stack) const {
    if (std::max(source_type, target_type) >= stack.types)
        throw BadUsage(masquerade::text("source_type ", source_type, " and target_type ", target_type,
                                        " must lie below types=", stack.types));
}

void TargetRun::refuse_sentences(const std::string& name) const {
    throw BadInput(masquerade::text("objective ", objective(), " needs pairs, and ", name,
                                    " holds none; give --data FILE with source<TAB>target on every line"));
}

ObjectiveOptions TargetRun::objective_options() const {
    const TargetSettings& s = common();
    ObjectiveOptions o;
    o.vocabulary = tokenizer.vocabulary().size();
    o.special = special_tokens();
    o.mask = tokenizer.vocabulary().mask();
    o.source_type = s.source_type;
    o.target_type = s.target_type;
    o.seed = s.train.seed;
    o.masks = masks.own;
    o.encoder_masks = masks.encoder;
    return o;
}

std::vector<PartLoss> TargetRun::losses(const std::vector<const Sentence*>& some, bool targets) const {
    std::vector<PartLoss> all;
    for (const ObjectiveMixture::Part& part : mixture.parts)
        if (targets || !part.objective->has(Objective::pairs))
            all.push_back(
                {part.objective->name, part.weight, scored_loss(net(), *part.objective, objective_options(), some)});
    return all;
}

std::unique_ptr<Task> TargetRun::task(const TrainingText& t) {
    if (reads_pairs() && t.train_targets.empty()) refuse_sentences(t.origin.name);
    if (mixture.has(Objective::mask_token) && tokenizer.vocabulary().mask() < 0)
        throw BadInput(masquerade::text("objective ", objective(), " needs [MASK], which the vocabulary lacks"));
    reads(t);
    return std::make_unique<TargetTask>(*this, sentences(t.train, t.train_targets),
                                        sentences(t.held_out, t.held_out_targets));
}

}  // namespace masquerade
