// SPDX-License-Identifier: MIT
#include "models/univae_run.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data/text.h"
#include "engine/base/log.h"
#include "engine/train/safetensors.h"

namespace masquerade {
namespace {

UniVaeOptions model_options(const UniVaeSettings& s, int vocabulary) {
    UniVaeOptions o = s.model;
    o.backbone.vocabulary = vocabulary;
    o.backbone.positions = 2 * o.max_length;
    return o;
}

WordPiece::Options tokenizer_options(const UniVaeSettings& s) {
    WordPiece::Options o;
    o.lower = !s.cased;
    return o;
}

}  // namespace

UniVaeSettings::UniVaeSettings() { model.backbone.deviation = 0.035; }

void UniVaeSettings::declare(Config& c) {
    BackboneOptions& b = model.backbone;
    c.add("layers", &b.layers, "L, Transformer layers", 1, 1024);
    c.add("latent_layers", &model.latent_layers,
          "K, the upper layers with a latent; 0: a plain language model", 0, 1023);
    c.add("width", &b.width, "C, model width", 2, 65536);
    c.add("heads", &b.heads, "H, attention heads", 1, 1024);
    c.add("inner", &b.inner, "F, inner width of the feed-forward layer", 1, 262144);
    c.add("latent", &model.latent.kind, "distribution of the latents",
          {{"vmf", LatentKind::vmf}, {"gaussian", LatentKind::gaussian}, {"none", LatentKind::none}});
    c.add("latent_size", &model.latent.size, "Z, numbers of one latent layer", 2, 65536);
    c.add("kappa", &model.latent.kappa, "concentration of a vmf latent", 0, 1e6);
    c.add("beta", &beta, "weight of a gaussian latent's KL", 0, 1000);
    c.add("kl_schedule", &kl_schedule, "how that weight is reached", {"constant", "linear", "cyclical"});
    c.add("max_length", &model.max_length,
          "longest sentence with [CLS] and [SEP]; where the decoder half starts", 3, 65536);
    c.add("free_length", &model.free_length, "the decoder half starts at the sentence's own length instead");
    c.add("rotary", &b.rotary, "rotary positions; false: an absolute table");
    c.add("pre_norm", &b.pre_norm, "pre-LN layers; false: post-LN, as BERT");
    c.add("gelu", &b.gelu, "exact, or the tanh approximation",
          {{"erf", GeluKind::erf}, {"tanh", GeluKind::tanh}});
    c.add("dropout", &b.dropout, "of hidden states", 0, 0.99);
    c.add("attention_dropout", &b.attention_dropout, "of attention probabilities", 0, 0.99);
    c.add("deviation", &b.deviation, "standard deviation of the first weights", 0, 10);
    c.add("vocabulary", &vocabulary, "V, tokens of a vocabulary that is learned", 64, 1000000);
    c.add("cased", &cased, "keep case and accents");
    c.add("precision", &precision,
          "storage of activations and matrices in training; bf16 keeps f32 master weights",
          {{"f32", DType::f32}, {"bf16", DType::bf16}});
    c.add("batch_tokens", &batch_tokens, "tokens of the encoder half of a batch", 2, 1000000);
    c.add("prior_sentences", &prior_sentences,
          "training sentences that a prior of the latents is fitted to when training ends; 0: none", 0,
          100000000);
    train.declare(c);
}

UniVaeRun::UniVaeRun(const UniVaeSettings& s, Vocabulary vocabulary, DType storage, Device device)
    : settings(s),
      tokenizer(std::move(vocabulary), tokenizer_options(s)),
      parameters(storage, device),
      model(parameters, model_options(s, tokenizer.vocabulary().size())) {
    const Vocabulary& v = tokenizer.vocabulary();
    if (v.pad() != 0 || v.unk() < 0 || v.cls() < 0 || v.sep() < 0)
        throw BadInput("the vocabulary must hold [PAD] as its first line, and [UNK], [CLS] and [SEP]");
    parameters.allocate(settings.train.seed);
}

std::unique_ptr<UniVaeRun> UniVaeRun::load(const std::string& path, bool to_train, Device device) {
    RunFolder folder = RunFolder::open(path);
    std::int64_t step = folder.latest_step();
    std::string at = folder.step_folder(step), config_path = at + "/config.json";
    nlohmann::json config = nlohmann::json::parse(read_bytes(config_path), nullptr, false);
    if (!config.is_object() || config.value("model_type", "") != "univae" || !config.contains("univae"))
        throw BadInput(masquerade::text(config_path,
                                        " does not describe a UniVAE; expected \"model_type\": \"univae\""));
    UniVaeSettings settings;
    Config keys;
    settings.declare(keys);
    keys.from_json(config["univae"], config_path);
    auto run = std::make_unique<UniVaeRun>(settings, Vocabulary::load(folder.file("vocab.txt")),
                                           to_train ? settings.precision : DType::f32, device);
    TensorFile weights(at + "/model.safetensors");
    for (const Tensor& p : run->parameters.all()) weights.copy_to(p.path, run->parameters.master(p));
    run->parameters.round();
    run->step = step;
    run->step_folder = at;
    run->run_json = read_bytes(folder.file("run.json"));
    return run;
}

bool UniVaeRun::load_prior() {
    const std::string path = prior_file(step_folder);
    if (model.options.latent_layers == 0 || !std::filesystem::exists(path)) return false;
    prior =
        std::make_shared<const LatentPrior>(LatentPrior::load(path, model.space, checksum_of(parameters)));
    return true;
}

void UniVaeRun::choose_prior(const std::string& asked, std::optional<double> temperature) {
    if (asked == "uniform" && temperature)
        throw BadUsage(
            "--latent-temperature is of the fitted prior, and does not go with --prior uniform");
    const std::string word = temperature ? "fitted" : asked;
    prior_temperature = temperature.value_or(prior_temperature);
    if (word == "uniform" || (word.empty() && model.options.latent_layers == 0)) return;
    if (model.options.latent_layers == 0)
        throw BadUsage("a language model without latents (latent_layers=0) has no prior");
    if (load_prior()) return;
    const std::string missing = masquerade::text(prior_file(step_folder), " is not there: ");
    const char* remedy = "; ./train --fit-prior makes it";
    if (word == "fitted") throw BadInput(missing + "the run has no fitted prior" + remedy);
    log_line("note: ", missing, "latents are drawn from the prior of training", remedy);
}

std::vector<double> UniVaeRun::draw(std::uint64_t seed, std::uint32_t line, std::uint32_t number) const {
    return prior ? prior->draw(seed, line, number, prior_temperature) : model.space.prior(seed, line, number);
}

void UniVaeRun::save_config(const std::string& folder) const {
    const BackboneOptions& b = model.options.backbone;
    UniVaeSettings copy = settings;
    Config keys;
    copy.declare(keys);
    nlohmann::json config = {{"model_type", "univae"},
                             {"architectures", {"UniVAE"}},
                             {"vocab_size", b.vocabulary},
                             {"hidden_size", b.width},
                             {"num_hidden_layers", b.layers},
                             {"num_attention_heads", b.heads},
                             {"intermediate_size", b.inner},
                             {"hidden_act", b.gelu == GeluKind::erf ? "gelu" : "gelu_new"},
                             {"hidden_dropout_prob", b.dropout},
                             {"attention_probs_dropout_prob", b.attention_dropout},
                             {"max_position_embeddings", b.positions},
                             {"type_vocab_size", b.types},
                             {"layer_norm_eps", b.eps},
                             {"initializer_range", b.deviation},
                             {"pad_token_id", 0},
                             {"univae", keys.to_json()}};
    std::ofstream out(folder + "/config.json");
    out << config.dump(2) << '\n';
    out.close();
    if (!out) throw BadInput(masquerade::text("cannot write ", folder, "/config.json; is the disk full?"));
}

UniVaeDecoder::Special UniVaeRun::special() const {
    const Vocabulary& v = tokenizer.vocabulary();
    UniVaeDecoder::Special s;
    s.cls = v.cls();
    s.sep = v.sep();
    s.forbidden = {v.pad(), v.cls()};
    if (v.mask() >= 0) s.forbidden.push_back(v.mask());
    return s;
}

std::vector<Sentence> UniVaeRun::sentences(const std::vector<std::string>& lines) const {
    return encode_lines(tokenizer, lines, model.options.max_length);
}

}  // namespace masquerade
