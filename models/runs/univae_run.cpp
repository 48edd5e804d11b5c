// SPDX-License-Identifier: MIT
#include "models/runs/univae_run.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "engine/base/log.h"
#include "input/number.h"
#include "models/runs/flow_prior.h"
#include "models/runs/univae_task.h"

namespace masquerade {
namespace {

// Parses a list of whole numbers such as "16,16,32".
std::vector<int> numbers_with_commas(const std::string& key, const std::string& list, int least, int most) {
    std::vector<int> numbers;
    std::istringstream in(list);
    for (std::string word; std::getline(in, word, ',');) {
        if (int& number = numbers.emplace_back(); !read_number(word, number) || number < least || number > most)
            throw BadUsage(key, " is \"", list, "\", expected whole numbers from ", least, " to ", most,
                           " with commas between");
    }
    return numbers;
}

}  // namespace

UniVaeSettings::UniVaeSettings() {
    model.backbone.deviation = 0.035;
    model.backbone.positions = 0;
}

void UniVaeSettings::declare(Config& c) {
    LatentOptions& latent = model.latent;
    declare_backbone(c, model.backbone);
    c.topic("Latents");
    c.add("latent_layers", &model.latent_layers, "K, number of upper layers with a latent; 0: a plain language model",
          0, 1023);
    std::vector<std::pair<std::string, LatentKind>> kinds;
    for (const LatentKindRow& row : latent_kinds()) kinds.emplace_back(row.name, row.kind);
    c.add("latent", &latent.kind,
          "distribution of the latents (docs/latents.md explains the kinds); none: without noise, an auto-encoder",
          kinds);
    c.add("latent_size", &latent_sizes,
          "Z, numbers per latent; one value, or one for each latent layer, as in 16,16,32");
    c.add("latent_at", &latent_at,
          "layers with a latent at their input, as in 2,4,5, in place of latent_layers; empty: the upper layers");
    c.add("latent_kinds", &kinds_by_layer,
          "kind of each latent layer, from the lowest, as in gaussian,vq, in place of latent=; empty: all are "
          "of the kind latent=");
    c.add(
        "latent_projection", &latent.projects,
        "project the row of [CLS] to a latent and back; false: the row is the latent, which needs latent_size = width");
    c.add(
        "latent_deviation", &latent.out_deviation,
        "standard deviation of the initial weights of Out, the map from a latent z to a row; 0: such that Out(z) is as "
        "large as the embedding of a token",
        0, 100);
    c.add("latent_norm", &latent.norm, "apply a layer norm to Out(z), which replaces the row of [CLS]");
    c.add("kappa", &latent.kappa, "vmf, power_spherical: concentration", 0, 1e6);
    c.add("learn_kappa", &latent.learn_kappa,
          "vmf, power_spherical: learn the kappa of each latent layer, starting from the setting kappa");
    c.add("source_prior", &latent.source_prior,
          "gaussian: with conditional=true, compute the prior of the latents from the source, instead of N(0, 1)");
    c.add("free_bits", &latent.free_bits, "nats per latent layer below which the KL is not reduced further", 0, 1e6);
    c.add(
        "free_bits_of", &latent.free_bits_of,
        "free_bits applies to each sentence, to each number of a latent (free_bits / latent_size for each), or to the "
        "mean of the batch",
        {"sentence", "number", "batch"});
    declare_flow(c, latent.flow, "flow: ");
    c.add("levels", &latent.levels, "fsq: how many values (levels) each number of a latent can take", 2, 65536);
    c.add("codes", &latent.codes, "vq: number of codes in a codebook", 1, 1000000);
    c.add("groups", &latent.groups, "vq: number of parts of a latent, each with its own codebook", 1, 65536);
    c.add("commitment", &latent.commitment, "vq: weight of the distance to the codes", 0, 1000);
    c.add("decay", &latent.decay, "vq: decay of the codebooks' moving average", 0, 1);
    c.add("prior_sentences", &prior_sentences,
          "after training, a prior is fitted to the latents of this many training sentences; ./generate draws latents "
          "from it, instead of from the prior in the KL of the loss; 0: none is fitted",
          0, 100000000);
    c.topic("Decoder half");
    using Decoder = UniVaeOptions::Decoder;
    c.add("decoder", &model.decoder,
          "how the decoder half is written from the latents: from left to right, by insertion of words, or by masked "
          "diffusion (all words are masked at first, and replaced in several passes). A sequence has two halves: the "
          "encoder half is the sentence that is encoded, the decoder half the sentence that is written",
          {{"causal", Decoder::causal}, {"insertion", Decoder::insertion}, {"diffusion", Decoder::diffusion}});
    slots.declare(c, "decoder=insertion: ");
    c.topic("Objective");
    c.add("beta", &beta,
          "gaussian, gaussian_chain, flow: weight of the KL. With learn_kappa=true, it is the weight of the KL of vmf "
          "and power_spherical, too",
          0, 1000);
    c.add("kl_schedule", &kl_schedule,
          "gaussian, gaussian_chain, flow: the weight of the KL is always beta, grows from 0 to beta once (linear), "
          "or several times (cyclical). With learn_kappa=true, also for vmf and power_spherical",
          {"constant", "linear", "cyclical"});
    c.add("noise_from", &noise_from,
          "share of the planned steps (schedule_steps), at the start of training, in which latents have almost no "
          "noise: the model is then an auto-encoder",
          0, 1);
    c.add("noise_over", &noise_over, "share of the planned steps in which the noise then grows to its full size", 0, 1);
    c.add("word_dropout", &word_dropout, "share of the words that the decoder half reads as [UNK] in training", 0, 1);
    c.topic("Text");
    c.add("pairs", &pairs, "read source<TAB>target: encode the source into the latents, and generate the target");
    c.add("conditional", &model.conditional,
          "with pairs=true: the encoder half has source and target, and the decoder half sees the source besides the "
          "latents");
    c.add("max_length", &model.max_length,
          "longest sentence with [CLS] and [SEP]; position at which the decoder half starts", 3, 65536);
    c.add("free_length", &model.free_length,
          "start the decoder half at the length of the sentence instead of max_length, so that it knows the length");
    declare_mask(c);
    declare_foreign(c, model.backbone);
    declare_positions(c, model.backbone, "both halves need");
    c.topic("Optimiser");
    c.add("batch_tokens", &batch_tokens,
          "tokens of a batch: those of its sentences, or of its sources and targets, each counted once; with "
          "decoder=diffusion, at least max_length - 1 for each sentence or pair",
          2, 1000000);
    declare_tokenizer(c);
    declare_training(c);
}

UniVaeOptions UniVaeSettings::net(int vocabulary_size) const {
    UniVaeOptions o = model;
    o.backbone.vocabulary = vocabulary_size;
    o.backbone.positions = std::max(o.backbone.positions, 2 * o.max_length);
    o.mask = mask;
    if (o.backbone.types < 2)
        throw BadUsage("types=1: the decoder half has segment id 1, the encoder half 0; expected types=2 or more");
    o.insertion = slots.head();
    if (o.decoder != UniVaeOptions::Decoder::causal && word_dropout > 0)
        throw BadUsage("word_dropout is for decoder=causal: the other decoders never see all words");
    if (train.parts > 1 && o.latent.free_bits > 0 && o.latent.free_bits_of == "batch")
        throw BadUsage("parts=", train.parts,
                       ": free_bits_of=batch needs the KL of the whole batch before its first "
                       "backward; expected free_bits_of=sentence or number, or parts=1");
    if (o.conditional && !pairs)
        throw BadUsage("conditional=true needs pairs=true: the decoder half reads the source of a pair");
    o.latent_sizes = numbers_with_commas("latent_size", latent_sizes, 2, 65536);
    o.latent_at = numbers_with_commas("latent_at", latent_at, 1, 1023);
    for (const std::string& one : words_of(kinds_by_layer)) o.latent_kinds.push_back(find_latent(one).kind);
    if (o.latent_sizes.empty())
        throw BadUsage("latent_size is empty, expected a number from 2 to 65536, or several with commas between");
    return o;
}

void UniVaeSettings::adopt(const Stacks& stacks) {
    model.backbone = stacks.first;
    model.latent_layers = std::min(model.latent_layers, stacks.first.layers - 1);
}

std::vector<const char*> UniVaeSettings::reading() const {
    return {"latent",
            "latent_layers",
            "latent_size",
            "latent_at",
            "latent_projection",
            "latent_deviation",
            "latent_norm",
            "kappa",
            "learn_kappa",
            "free_bits",
            "free_bits_of",
            "flow_steps",
            "flow_width",
            "flow_actnorm",
            "flow_linear",
            "levels",
            "codes",
            "groups",
            "commitment",
            "decay",
            "max_length",
            "free_length",
            "conditional",
            "latent_kinds",
            "source_prior",
            "decoder",
            "content_location",
            "contextual_bias",
            "mixture",
            "slot_projection"};
}

std::unique_ptr<Task> UniVaeRun::task(const TrainingText& t) {
    if (settings.pairs && !t.pairs())
        throw BadInput("pairs=true, and ", t.origin.name, " holds no pairs; expected source<TAB>target on every line");
    if (model.unmasks() && tokenizer.vocabulary().mask() < 0)
        throw BadInput("decoder=diffusion needs [MASK], which the vocabulary lacks");
    SharedSentences train = training_sentences(t);
    if (model.insertion && model.insertion->options.scored && step == 0)
        model.insertion->set_scores(settings.slots.scores(tokenizer, *train, /*both=*/false, settings.train.seed));
    return std::make_unique<UniVaeTask>(*this, std::move(train), sentences(t.held_out, t.held_out_targets));
}

std::string UniVaeRun::fit_prior(const TrainingText& t) {
    if (model.options.latent.source_prior)
        throw BadUsage("--fit-prior: the run has source_prior=true, so its prior is learned with the model");
    UniVaeTask task(*this, encoded_sentences(t), {});
    const int components = task.fit(step_folder, prior_count());
    return text("fitted a prior of ", components, " components; saved as ", prior_file(step_folder));
}

std::string UniVaeRun::description() const {
    return text(model.options.backbone.layers, " layers, ", settings.latent_at.empty() ? "the upper " : "",
                model.options.latent_layers, settings.latent_at.empty() ? "" : " of them (" + settings.latent_at + ")",
                " with a latent of ", settings.latent_sizes, " numbers, width ", model.options.backbone.width,
                model.insertion   ? ", inserts words, order " + settings.slots.order
                : model.unmasks() ? ", masked diffusion"
                                  : "");
}

std::string UniVaeRun::writing_command(const std::string& folder) const {
    if (model.options.conditional) return "./generate " + shell_word(folder) + " --count 3 < SOURCES";
    return "./generate " + shell_word(folder) + " --count 10";
}

std::shared_ptr<const MixturePrior> UniVaeRun::read_prior() const {
    const std::string path = prior_file(step_folder);
    if (model.options.latent_layers == 0 || !std::filesystem::exists(path)) return nullptr;
    return std::make_shared<const MixturePrior>(MixturePrior::load(path, model.space, checksum_of(parameters)));
}

bool UniVaeRun::load_prior() {
    const auto found = read_prior();
    if (!found) return false;
    prior = fitted = found;
    return true;
}

void UniVaeRun::know_lengths() {
    if (model.options.free_length && !averaged && !fitted) fitted = read_prior();
}

void UniVaeRun::choose_prior(const std::string& asked, std::optional<double> temperature) {
    if (asked == "uniform" && temperature)
        throw BadUsage("--latent-temperature applies only to priors fitted after training: leave out --prior uniform");
    if (model.options.latent.source_prior) {
        if (!asked.empty())
            throw BadUsage("--prior ", asked, ": the run has source_prior=true, so latents are drawn from the ",
                           "prior that it has learned: leave out --prior");
        source_temperature = temperature.value_or(1);
        return;
    }
    const std::string word = temperature && asked.empty() ? "fitted" : asked;
    prior_temperature = temperature;
    if (model.options.latent_layers == 0 && !word.empty())
        throw BadUsage("a language model without latents (latent_layers=0) has no prior");
    if (model.options.latent_layers == 0) return;
    prior.reset();  // that of an earlier call of the library
    if (word == "uniform") return know_lengths();
    if (!word.empty() && word != "fitted") {
        prior = load_flow_prior(word, *this);
        return know_lengths();
    }
    if (!averaged && load_prior()) return;
    const auto missing = [&](const char* advice) {
        return averaged ? text("the mean of several checkpoints (--average) has no fitted prior: ", advice)
                        : text(prior_file(step_folder), " is not there: ", advice, "; ./train --fit-prior makes it");
    };
    if (!word.empty())
        throw BadInput(missing(averaged ? "leave out --average or --prior" : "the run has no fitted prior"));
    log_line("note: ", missing("latents are drawn from the prior of training"));
}

Numbers UniVaeRun::draw(std::uint64_t seed, std::uint32_t line, std::uint32_t number) const {
    return prior ? prior->draw({seed, line, number, prior_temperature}) : model.space.prior(seed, line, number);
}

void UniVaeRun::redraw(DecodeRequests& requests, int from, int to, std::uint64_t seed) const {
    if (!model.options.latent.source_prior) {
        for (DecodeRequest& r : requests)
            r.latent = prior ? prior->draw_rest(r.latent, from, to, {seed, r.line, r.sample, prior_temperature})
                             : model.space.redrawn(r.latent, from, to, seed, r.line, r.sample);
        return;
    }
    StoredSentences sources;
    Vectors normals, latents;
    for (const DecodeRequest& r : requests) {
        sources.push_back({r.source, int(r.line), {}});
        normals.push_back(model.space.prior(seed, r.line, r.sample));
        for (double& e : normals.back()) e *= source_temperature;
        latents.push_back(r.latent);
    }
    masquerade::redraw(model, pointers_to(sources), normals, from, to, latents);
    for (std::size_t i = 0; i < requests.size(); i++) requests[i].latent = latents[i];
}

DecodeRequests UniVaeRun::target_requests(const StoredSentences& sources, int count, std::uint64_t seed,
                                          std::uint32_t first) const {
    DecodeRequests requests;
    for (std::size_t i = 0; i < sources.size(); i++)
        for (int k = 0; k < count; k++) {
            const std::uint32_t line = first + i, number = k;
            requests.push_back({draw(seed, line, number), line, number, 0, sources[i].ids});
        }
    if (model.options.latent.source_prior) redraw(requests, 0, model.space.numbers(), seed);
    return requests;
}

int UniVaeRun::draw_length(std::uint64_t seed, std::uint32_t line) const {
    const int drawn = fitted ? fitted->draw_length(seed, line) : 0;
    return std::min(drawn > 0 ? drawn : some_length, model.options.max_length);
}

UniVaeDecoder::Special UniVaeRun::special() const {
    const Vocabulary& v = tokenizer.vocabulary();
    Tokens forbidden = {v.pad(), v.cls()};
    if (v.mask() >= 0) forbidden.push_back(v.mask());
    return {v.cls(), v.sep(), forbidden, v.mask(), settings.slots.ends()};
}

void UniVaeRun::expect_way_of_writing(const SearchOptions& options, bool show_rounds) const {
    CanvasOptions of_insertion = options.canvas;
    if (model.unmasks()) of_insertion.threshold = CanvasOptions().threshold;
    const bool any_order = model.insertion || model.unmasks();
    if (!model.insertion && (changed(of_insertion) || (show_rounds && !any_order)))
        throw BadUsage("this run generates ",
                       any_order ? "by masked diffusion (decoder=diffusion): leave out the options of insertion, such "
                                   "as --parallel and --rounds, or train with decoder=insertion"
                                 : "from left to right (decoder=causal): leave out the options of writing in any "
                                   "order, such as --parallel and --threshold, or train with decoder=insertion or "
                                   "decoder=diffusion");
    if (const char* option = changed(options.unmask); option && !model.unmasks())
        throw BadUsage(option, " is an option of masked diffusion, and this run has decoder=",
                       model.insertion ? "insertion" : "causal", ": leave it out, or train with ", "decoder=diffusion");
}

ObjectiveOptions UniVaeRun::objective_options() const {
    ObjectiveOptions o = halves_options(model);
    const Vocabulary& v = tokenizer.vocabulary();
    if (model.insertion) o.insertion = settings.slots.rule(v, *model.insertion);
    o.seed = settings.train.seed;
    o.word_dropout = settings.word_dropout;
    o.cls = v.cls();
    o.unknown = v.unk();
    o.mask = v.mask();
    return o;
}

ObjectiveOptions UniVaeRun::measured_options(std::uint64_t seed) const {
    ObjectiveOptions o = objective_options();
    o.seed = seed;
    o.word_dropout = 0;
    return o;
}

int UniVaeRun::prior_count() const {
    return settings.prior_sentences > 0 ? settings.prior_sentences : UniVaeSettings().prior_sentences;
}

Vectors UniVaeRun::vectors(const Strings& lines, const VectorChoice& which) const {
    if (model.options.latent_layers == 0 || model.options.conditional) return {};
    StoredSentences all = sentences(lines);
    if (which.state != VectorChoice::State::usual)
        return state_vectors(
            which.state, model.backbone, pointers_to(all),
            [&](const Sentences& some) { return encoder_batch(model, some); },
            [&](Tape& tape, const Batch& batch) { return model.states(tape, batch); });
    if (!which.drawn) return mean_latents(model, pointers_to(all));
    const auto noisy = [](LatentKind kind) { return row_of(kind).has(LatentKindRow::noise); };
    if (std::none_of(model.options.latent_kinds.begin(), model.options.latent_kinds.end(), noisy)) return {};
    for (std::size_t i = 0; i < all.size(); i++) all[i].name = int(which.first_line + i);
    return drawn_latents(model, pointers_to(all), which.seed);
}

}  // namespace masquerade
