// SPDX-License-Identifier: MIT
#include "models/runs/run.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/log.h"
#include "engine/base/named.h"
#include "engine/base/write_file.h"
#include "engine/tensor/copy.h"
#include "engine/tensor/numbers.h"
#include "engine/tensor/runtime.h"
#include "engine/io/file.h"
#include "engine/io/nearest.h"
#include "engine/io/checksum.h"
#include "models/runs/hugging_face/names.h"
#include "models/runs/hugging_face/token_choice.h"
#include "tokenizer/hugging_face/hugging_face.h"

namespace masquerade {
namespace {

using nlohmann::json;

WordPiece::Options tokenizer_options(const RunSettings& s) {
    WordPiece::Options o;
    o.lower = !s.cased;
    return o;
}

json config_of(const std::string& path) {
    json config = read_json(path);
    if (!config.is_object()) throw BadInput(path, " is not a JSON object; was it edited?");
    return config;
}

// Throws BadInput unless the vocabulary `found` in tokenizer.json and the vocabulary `lines` in vocab.txt of a run have
// the same tokens.
void expect_same_tokens(const std::string& path, const Vocabulary& found, const Vocabulary& lines) {
    if (found.size() != lines.size())
        throw BadInput(path, " has ", found.size(), " tokens, vocab.txt beside it ", lines.size(),
                       "; expected as many: was one of them edited?");
    for (int id = 0; id < lines.size(); id++)
        if (found.token(id) != lines.token(id))
            throw BadInput(path, " has ", clipped(found.token(id)), " as token ", id, ", vocab.txt beside it ",
                           clipped(lines.token(id)), "; expected the same: was one of them edited?");
}

std::string model_type(const json& config) {
    const auto found = config.find("model_type");
    return found == config.end() ? "none" : found->is_string() ? found->get<std::string>() : in_words(*found);
}

// Returns the hash of the tokenizer files of a run: vocab.txt, and tokenizer.json if it exists.
std::string hash_of_tokenizer(const RunFolder& folder) {
    const std::string more = folder.file("tokenizer.json");
    return hash_text(read_file(folder.file("vocab.txt")) +
                     (std::filesystem::exists(more) ? '\0' + read_file(more) : ""));
}

std::string hash_of_lengths(const RunFolder& folder) { return hash_text(read_file(folder.file("lengths.txt"))); }

}  // namespace

void RunSettings::declare_backbone(Config& c, BackboneOptions& b) {
    c.topic("Model");
    c.add("layers", &b.layers, "L, Transformer layers", 1, 1024);
    c.add("width", &b.width, "C, model width", 1, 65536);
    c.add("heads", &b.heads, "H, attention heads", 1, 1024);
    c.add("inner", &b.inner, "F, inner width of the feed-forward layer", 1, 262144);
    c.add("rotary", &b.rotary,
          "rotary positions; false: a position table. The default is false if a kind in attention= does not support "
          "rotary positions");
    c.add("kv_heads", &b.kv_heads, "G, heads of keys and values, a divisor of heads; 0: as many as heads", 0, 1024);
    c.add("pre_norm", &b.pre_norm, "norms stand before attention and feed-forward part; false: after them, as in BERT");
    c.add("norm", &b.norm, "kind of the norms: layer norm, or RMSNorm, which has no mean and no bias",
          names_of(norm_kinds()));
    c.add("ffn", &b.ffn,
          "kind of the feed-forward part; swiglu and geglu multiply each of the F inner numbers by a gate, a second "
          "number that is computed for it; relu2 is the square of ReLU",
          names_of(feed_forward_kinds()));
    c.add("bias", &b.bias,
          "biases of the layers and of the output head, which makes the predictions; false: none but those of layer "
          "norms");
    c.add("gelu", &b.gelu, "exact, or the tanh approximation, in ffn=gelu and geglu",
          {{"erf", GeluKind::erf}, {"tanh", GeluKind::tanh}});
    c.topic("Attention");
    c.add_words(
        "attention", &b.attention,
        "kind of attention, or a text (WORDS) with a kind for each part and layer, as in 'A lsh; B softmax | layers "
        "0:2: window' (layers 0 and 1: window; the others: lsh in A and softmax in B; mask= says what A and B are); "
        "the command \"./inspect attention\" says what each kind is",
        names_of(attention_kinds()), [](const std::string& words) { AttentionWords(words, 0); });
    c.follows("rotary", [&b, start = b.rotary] {
        const AttentionWords words(b.attention, 0);
        const auto rotates = [](const AttentionKind* kind) { return kind->rotates; };
        b.rotary = start && std::all_of(words.named().begin(), words.named().end(), rotates);
    });
    for (const AttentionSetting& s : attention_settings()) {
        const auto declare = [&](auto& value) {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, std::string>)
                c.add(s.key, &value, s.help, s.words);
            else if constexpr (std::is_same_v<T, bool>)
                c.add(s.key, &value, s.help);
            else
                c.add(s.key, &value, s.help, T(s.low), T(s.high));
        };
        std::visit(declare, b.attention_options.emplace(s.key, s.start).first->second);
    }
    Strings dropping;
    for (const AttentionKind& kind : attention_kinds())
        if (kind.drops) dropping.push_back(kind.name);
    c.add("attention_dropout", &b.attention_dropout, of_kinds(dropping) + "dropout of attention probabilities", 0,
          0.99);
    c.topic("Model");
    c.add("dropout", &b.dropout, "dropout of hidden states", 0, 0.99);
    c.add("deviation", &b.deviation, "standard deviation of the initial weights", 0, 10);
}

void RunSettings::declare_foreign(Config& c, BackboneOptions& b) {
    c.topic("Model, rarely changed");
    c.add("types", &b.types, "number of segment ids", 1, 65536);
    c.add("embedding", &b.embedding,
          "E, width of the embedding tables, and of the vectors that the output head reads; "
          "0: C",
          0, 65536);
    c.add("rotary_value", &b.rotary_value, "rotate values, too");
    c.add("rotary_base", &b.rotary_base,
          "base of the rotary angles: with a larger base, the angles grow more slowly from position to position", 1,
          1e9);
    c.add("head_bias", &b.head_bias,
          "true: the output head has biases even if those of the layers are absent (bias=false)");
    c.add("norm_eps", &b.eps, "epsilon of the norms", 0, 1);
}

void RunSettings::declare_positions(Config& c, BackboneOptions& b, const std::string& needed) {
    c.topic("Model, rarely changed");
    c.add("positions", &b.positions, "P, minimum number of positions of the model; 0: as many as " + needed, 0,
          1 << 20);
}

void RunSettings::declare_flow(Config& c, FlowOptions& flow, const std::string& prefix) {
    c.add("flow_steps", &flow.steps,
          prefix + "number of steps of the flow: invertible maps, one after the other (docs/flow.md)", 1, 64);
    c.add("flow_width", &flow.width, prefix + "inner width of the networks of the steps", 1, 65536);
    c.add("flow_actnorm", &flow.actnorm,
          prefix +
              "each step first scales and shifts each number (ActNorm), and the first batch sets scales and shifts");
    c.add("flow_linear", &flow.linear,
          prefix +
              "each step multiplies the vector by a matrix; this is stored as it is "
              "(full), or as its LU factors (lu)",
          {"full", "lu"});
}

void RunSettings::adopt_reading(RunSettings& theirs) {
    cased = theirs.cased;
    Config ours, other;
    declare(ours);
    theirs.declare(other);
    const std::vector<const char*> keys = reading();
    for (const char* key : keys)
        if (other.has(keys[0]) && other.has(key) && ours.has(key)) ours.set(key, other.value(key));
}

void RunSettings::declare_mask(Config& c) {
    c.topic("Attention");
    c.add("mask", &mask,
          "masks in words, in place of the usual ones: 'A full; B causal | layers 2:: A full; B causal sees A[0]' "
          "(\"layers 2::\" means from layer 2 on). A is the source, B the target, A[0] the first position of the "
          "source; in univae, A is the encoder half of the sequence, and B the decoder half (decoder= in ./train "
          "univae --help); in ./train classify, all rows are A. docs/add-a-mask.md has the rules");
}

void RunSettings::declare_tokenizer(Config& c) {
    c.topic("Text");
    c.add("vocabulary", &vocabulary, "V, size of a learned vocabulary", 64, 1000000);
    c.add("cased", &cased, "keep case and accents");
    c.add("keep_tokens", &keep_tokens,
          "with --init FOLDER (see ./train --help), true: keep only those tokens of its vocabulary that occur in the "
          "text, so that the vocabulary gets smaller; false: leave the vocabulary as it is");
}

void RunSettings::declare_training(Config& c) {
    c.topic("Run");
    c.add("precision", &precision, "storage of activations and matrices in training; bf16 keeps f32 master weights",
          {{"f32", DType::f32}, {"bf16", DType::bf16}});
    train.declare(c);
}

Run::Run(const RunSettings& settings, Vocabulary vocabulary, DType storage, Device device)
    : tokenizer(std::move(vocabulary), tokenizer_options(settings)), parameters(storage, device) {
    if (device != Device::cpu) cuda_runtime().choose_products({false, settings.train.deterministic});
    expect_trainable(tokenizer.vocabulary(), "vocab.txt", "(echo '[PAD]'; grep -vxF '[PAD]' vocab.txt) >new.txt");
    if (tokenizer.vocabulary().size() == int(special_tokens().size()))
        throw BadInput("the vocabulary holds ", tokenizer.vocabulary().size(),
                       " special tokens and nothing else; expected tokens of the text as well");
}

Tokens special_ids(const Vocabulary& v) {
    Tokens all;
    for (int id : {v.pad(), v.unk(), v.cls(), v.sep(), v.mask()})
        if (id >= 0) all.push_back(id);
    return all;
}

void Run::use_moving_average() {
    if (common().train.ema == 0) return;
    if (const std::string path = step_folder + "/state.safetensors"; !std::filesystem::exists(path))
        return log_line("warning: ", path,
                        " is missing: the weights are those of the last step and not their moving average (ema)");
    const RunFolder folder = RunFolder::open(step_folder);
    const TensorFile state = open_state(folder, step, parameters);
    const Buffer all = Buffer::zeros(parameters.values().bytes(), parameters.device());
    const View average = parameters.flat(all, average_of_weights);
    state.copy_to(average_of_weights, average);
    state.expect_finite(average_of_weights);
    for (const Tensor& p : parameters.all())
        if (p.needs_grad) copy(parameters.slice(average, p), parameters.master(p));
    parameters.round();
}

void Run::average_checkpoints(int count) {
    const RunFolder folder = RunFolder::open(step_folder);
    std::vector<std::int64_t> steps = folder.steps();
    steps.erase(std::upper_bound(steps.begin(), steps.end(), step), steps.end());
    if (int(steps.size()) < count)
        throw BadUsage("--average ", count, " needs ", count, " checkpoints, but ", folder.path(), " has only ",
                       steps.size(), " up to step ", step, "; train with keep=", count, " to keep more");
    steps.erase(steps.begin(), steps.end() - count);
    averaged = count > 1;
    Numbers sum(parameters.length());
    // State tensors are not averaged. The mean of several draws of random features, for example, is not a valid draw.
    // State tensors keep the values of the checkpoint that is read last, which is the loaded one.
    for (std::int64_t s : steps) {
        read_weights(open_model(folder, s), parameters);
        const Numbers one = numbers_of(parameters.values());
        for (std::size_t i = 0; i < sum.size(); i++) sum[i] += one[i] / count;
    }
    const View mean{sum.data(), DType::f64, Device::cpu, {parameters.length()}, "mean"};
    for (const Tensor& p : parameters.all())
        if (p.needs_grad) write_numbers(parameters.master(p), parameters.slice(mean, p).as<double>());
    parameters.round();
    parameters.freeze();
}

void Run::load_checkpoint(const RunFolder& folder, std::int64_t at_step, const TensorFile& weights) {
    step = at_step;
    step_folder = folder.step_folder(step);
    read_weights(weights, parameters);
    if (weights.tensors().size() > parameters.all().size()) {
        const auto unknown = [&](const StoredTensor& t) { return !parameters.find(t.name); };
        const auto first = std::find_if(weights.tensors().begin(), weights.tensors().end(), unknown);
        log_line("warning: ", weights.path(), ": ", weights.tensors().size() - parameters.all().size(),
                 " tensors do not belong to this model and were ignored; the first is ", first->name);
    }
    run_json = read_file(folder.record_file());
    const json record = parse_input<BadInput>(run_json, folder.record_file());
    const auto resumed = record.find("resumed");
    if (!record.is_object() || (resumed != record.end() && !resumed->is_array()))
        throw BadInput(
            folder.record_file(),
            " is not the record of a run: expected an object whose \"resumed\", if there is one, is a list; ",
            "was it edited?");
    salt = record.value("salt", "");  // open_model() has checked that the salt is a string
    loaded(record);
    load_more(folder);
    const auto lengths = record.find("lengths_hash");
    if (lengths != record.end() && folder.has("lengths.txt") && *lengths != hash_of_lengths(folder))
        throw BadInput(folder.file("lengths.txt"),
                       " has changed since the run was started; the weights belong to the old file: restore it");
    const std::string path = folder.file("tokenizer.json");
    if (!std::filesystem::exists(path)) return;
    HuggingFace read = read_tokenizer_json(path);
    expect_same_tokens(path, read.vocabulary, tokenizer.vocabulary());
    tokenizer = training_tokenizer(std::move(read));
}

void Run::save_tokenizer(const RunFolder& folder) const {
    folder.write("vocab.txt", tokenizer.vocabulary().lines());
    if (tokenizer.options().rules == Rules::hugging_face) folder.write("tokenizer.json", tokenizer_json(tokenizer));
}

std::string Run::fit_prior(const TrainingText&) {
    throw BadInput(step_folder, " belongs to a run of ", common().family(),
                   ", which has no latents: there is no prior to fit");
}

std::string hash_text(const std::string& bytes) { return hexadecimal(hash_of(bytes)); }

void Run::start(const RunFolder& folder, json record) {
    folder.begin("");  // marks the folder as a run without a checkpoint, which a new run may overwrite
    save_tokenizer(folder);
    save_more(folder);
    record["vocabulary_hash"] = hash_of_tokenizer(folder);
    if (folder.has("lengths.txt")) record["lengths_hash"] = hash_of_lengths(folder);
    // The salt is a hash of the record without the device, the command, the date, the commit, and the paths of texts
    // and weights. The same training on another machine, in another folder or at another time therefore has the same
    // salt.
    json tied = record;
    for (const char* place : {"init", "device", "command", "date", "commit", "processes", "hosts", "lengths_hash"})
        tied.erase(place);
    if (tied.contains("data"))
        for (const char* path : {"name", "file", "held_out_file"}) tied["data"].erase(path);
    record["salt"] = salt = hash_text(tied.dump());
    folder.begin(record.dump(2) + "\n");
}

Vocabulary vocabulary_of(const RunFolder& folder) {
    const std::string path = folder.file("vocab.txt"), more = folder.file("tokenizer.json");
    const json record = read_json(folder.record_file());
    // The first versions of the program stored no vocabulary_hash in run.json. For their runs, nothing is checked.
    // Later versions hashed only vocab.txt and stored no "salt". If run.json has no salt, a hash of vocab.txt alone is
    // valid.
    const auto hash = record.find("vocabulary_hash");
    const std::string expected = hash != record.end() && hash->is_string() ? hash->get<std::string>() : "";
    if (!expected.empty() && hash_of_tokenizer(folder) != expected) {
        const bool same_lines = hash_text(read_file(path)) == expected;
        const bool both = std::filesystem::exists(more);
        if (!same_lines || record.contains("salt"))
            throw BadInput(same_lines ? more
                           : both     ? path + " or tokenizer.json beside it"
                                      : path,
                           " has changed since the run was started",
                           same_lines || both ? "" : ", or tokenizer.json beside it was removed",
                           "; the weights belong to the old file: restore it");
    }
    return Vocabulary::load(path);
}

void Run::save_config(const std::string& folder) {
    const Stacks sizes = stacks();
    const std::string model = common().family();
    Config keys;
    settings_to_change().declare(keys);
    json config = sizes.none() ? json::object() : hugging_face_sizes(sizes.first);
    config["pad_token_id"] = 0;
    if (sizes.decoder) config["num_decoder_layers"] = sizes.decoder->layers;
    config["model_type"] = model;
    config["architectures"] = {find_family(model).architecture};
    if (!salt.empty()) config["salt"] = salt;
    config[model] = keys.to_json();
    replace_file(folder + "/config.json", config.dump(2) + '\n');
}

void read_settings(const RunFolder& folder, std::int64_t step, RunSettings& settings) {
    const std::string model = settings.family();
    const std::string path = folder.step_folder(step) + "/config.json";
    const json config = config_of(path);
    const std::string found = model_type(config);
    if (found != model || !config.contains(model))
        throw BadInput(path, " describes a model of type ", found, ", expected ", model);
    Config keys;
    settings.declare(keys);
    keys.from_json(config[model], path);
    // Version 0.1 stored the seed only in run.json.
    const json record = read_json(folder.record_file());
    const auto seed = record.find("seed");
    if (!config[model].contains("seed") && seed != record.end() && seed->is_number_unsigned())
        settings.train.seed = seed->get<std::uint64_t>();
}

const Family& find_family(const std::string& name) {
    for (const Family& kind : families())
        if (kind.name == name) return kind;
    for (const Family& kind : families())
        if (contains(kind.objectives, name)) return kind;
    Strings known = names_of(families());
    for (const Family& kind : families()) append(known, kind.objectives);
    const std::string meant = did_you_mean(clipped(name), known);
    throw BadUsage("there is no model ", clipped(name),
                   meant.empty() ? "; there are " + joined(names_of(families())) : meant,
                   " (settings are key=value); ./inspect models lists models and objectives");
}

const Family& family_of_run(const std::string& path) {
    const RunFolder folder = RunFolder::open(path);
    const std::string config_path = folder.step_folder(folder.latest_step()) + "/config.json";
    const std::string found = model_type(config_of(config_path));
    for (const Family& kind : families())
        if (kind.name == found) return kind;
    throw BadInput(config_path, " describes a model of type ", found, ", but runs are of type ",
                   joined(names_of(families())));
}

}  // namespace masquerade
