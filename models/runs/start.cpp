// SPDX-License-Identifier: MIT
// Copies the weights of another model into a new run. start.h says which weights are copied.
#include "models/runs/start.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "engine/base/log.h"
#include "engine/ops/check.h"
#include "engine/tensor/copy.h"
#include "engine/tensor/numbers.h"
#include "input/input.h"
#include "models/runs/counterparts.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "tokenizer/hugging_face/hugging_face.h"

namespace masquerade {
namespace {

class FromRun : public Start {
  public:
    explicit FromRun(std::unique_ptr<Run> run) : run_(std::move(run)) {}
    std::string source() const override { return run_->step_folder; }

    void adopt(RunSettings& s) const override {
        Stacks sizes = stacks();
        // The head of an insertion model reads another number of rows. Other models must not adopt that number.
        sizes.first.head_rows = BackboneOptions().head_rows;
        s.adopt(sizes);
        s.adopt_reading(run_->settings_to_change());
    }

  protected:
    WordPiece all_tokens() const override { return run_->tokenizer; }
    const Parameters& weights() const override { return run_->parameters; }
    Stacks stacks() const override { return run_->stacks(); }

  private:
    const std::unique_ptr<Run> run_;
};

// Logs a warning about the unused tensors of a checkpoint. Parts of BERT and RoFormer checkpoints that none of our
// models needs, such as the pooler, cause no warning.
void warn_of_unknown(const std::string& path, Strings names) {
    const auto known = [](const std::string& name) {
        for (const char* part :
             {"pooler.", "cls.seq_relationship.", "position_ids", "cls.predictions.decoder.", "embed_positions."})
            if (name.find(part) != name.npos) return true;
        return false;
    };
    names.erase(std::remove_if(names.begin(), names.end(), known), names.end());
    if (!names.empty())
        log_line("warning: ", path, ": ", names.size(),
                 " tensors do not belong to this model and were ignored; the first is ", names[0]);
}

class FromHuggingFace : public Start {
  public:
    explicit FromHuggingFace(const std::string& path)
        : path_(path),
          config_(read_hugging_face_config(path)),
          tokenizer_(tokenizer_of(path)),
          fitted_(fitted_tokens(tokenizer_, config_.backbone.vocabulary, path)),
          stack_(parameters_, with_vocabulary(config_.backbone, tokenizer_.vocabulary().size())) {
        expect_trainable(tokenizer_.vocabulary(), path,
                         "./inspect checkpoint " + shell_word(path) + " --save DIR --tokens pad-first");
        const HuggingFaceWeights loaded = load_hugging_face(path, stack_, parameters_, fitted_.choice);
        has_head_ = loaded.head;
        warn_of_unknown(path, loaded.unused);
    }
    std::string source() const override { return path_; }
    void adopt(RunSettings& s) const override {
        s.adopt(stacks());
        s.cased = !tokenizer_.options().lower;
    }

  protected:
    WordPiece all_tokens() const override { return tokenizer_; }
    const Parameters& weights() const override { return parameters_; }
    Stacks stacks() const override { return {stack_.options}; }
    bool has_head() const override { return has_head_; }

  private:
    static WordPiece tokenizer_of(const std::string& path) {
        HuggingFace read = read_tokenizer(path);
        for (const std::string& note : read.notes) log_line("note: ", note);
        return training_tokenizer(std::move(read));
    }
    static BackboneOptions with_vocabulary(BackboneOptions options, int tokens) {
        options.vocabulary = tokens;
        return options;
    }

    std::string path_;
    HuggingFaceConfig config_;
    WordPiece tokenizer_;
    ChosenTokens fitted_;  // how the embedding of each token of the tokenizer is made from the checkpoint's embedding
    Parameters parameters_;
    Backbone stack_;
    bool has_head_ = true;
};

bool begins(const std::string& path, const char* with) { return path.rfind(with, 0) == 0; }

// Converts the path of a parameter in a model with two stacks to the path in a model with one stack, for example
// "decoder.layer.0.norm1.bias" to "layer.0.norm1.bias".
std::string in_one_stack(const std::string& path) {
    for (const std::string stack : {"encoder.", "decoder."})
        if (begins(path, stack.c_str())) return path.substr(stack.size());
    return path;
}

// A part that only some models have. A parameter belongs to the part `name` if its path contains `path`.
struct Addition {
    const char *path, *name;
};
// For example, "cross." is in the paths decoder.layer.0.cross.query.weight and decoder.layer.0.norm_cross.bias.
constexpr Addition additions[] = {{"cross.", "cross-attention"},
                                  {"slots.", "slots"},
                                  {"order.", "slots"},
                                  {"head.dense.weight", "head.dense"},  // an insertion model's head reads two rows
                                  {"embedding.position.", "embedding.position"},
                                  {"latent.", "latents"}};

std::string addition(const std::string& path) {
    for (const Addition& a : additions)
        if (path.find(a.path) != path.npos) return a.name;
    return "";
}

bool a_row_for_each_token(const std::string& path) { return path == "embedding.token.weight" || path == "head.bias"; }

std::string layers(int taken, int there) {
    return taken == there ? text("all ", there, " layers") : text("the first ", taken, " of ", there, " layers");
}

}  // namespace

// Throws BadInput unless the weights have the sizes of the new model, `ours`. Also compares settings that the shapes of
// tensors do not show, such as gelu. The weights may have more layers than the new model.
void Start::expect_same_sizes(const Stacks& ours) const {
    const Stacks theirs = stacks();
    if (theirs.decoder && !ours.decoder)
        throw BadInput(source(),
                       " has an encoder and a decoder, but this model is one stack; --init needs a run of one stack, "
                       "or a Hugging Face BERT, RoFormer or NomicBERT");
    BackboneOptions a = theirs.first, b = ours.first;
    auto same = [&](const std::string& key, const std::string& found, const std::string& expected) {
        if (found != expected)
            throw BadInput(source(), " has ", key, "=", found, ", but this model has ", key, "=", expected,
                           "; sizes must equal those of the checkpoint: leave ", key, " out");
    };
    Config of_a, of_b;
    for (const auto& [config, stack] : {std::pair{&of_a, &a}, {&of_b, &b}}) {
        stack->embedding = stack->embedding_width(), stack->kv_heads = stack->key_heads();
        stack->head_bias = stack->biased_head();
        RunSettings::declare_backbone(*config, *stack);
        RunSettings::declare_foreign(*config, *stack);
    }
    // If at least one kind of attention of the new model does not support rotary positions, the new model has a
    // position table. If the weights have rotary positions, there is no table to copy: the new table is initialised at
    // random, and rotary settings are not compared.
    const AttentionWords kinds(b.attention, 0);
    const auto rotates = [](const AttentionKind* kind) { return kind->rotates; };
    const bool unrotated = a.rotary && !b.rotary && !std::all_of(kinds.named().begin(), kinds.named().end(), rotates);
    for (const std::string key : {"width", "heads", "inner", "types", "embedding", "rotary", "rotary_value", "pre_norm",
                                  "gelu", "norm_eps", "norm", "ffn", "bias", "kv_heads", "head_bias", "rotary_base"})
        if (!unrotated || !begins(key, "rotary")) same(key, of_a.value(key), of_b.value(key));
    if (!a.rotary && a.positions != b.positions)
        throw BadInput(source(), " has ", a.positions, " positions, but max_length, max_target and ", "positions need ",
                       b.positions, "; choose them so that they need ", a.positions);
    const auto expect_layers = [&](const char* key, int wanted, int there) {
        if (wanted > there)
            throw BadInput(source(), " has only ", there, " layers, but ", key, " is ", wanted, "; choose at most ",
                           there);
    };
    expect_layers("layers", b.layers, a.layers);
    if (!ours.decoder) return;
    expect_layers("decoder_layers", ours.decoder->layers, theirs.decoder ? theirs.decoder->layers : a.layers);
    const auto crossing = [](const Stacks& stacks) { return stacks.decoder->rotary_cross ? "true" : "false"; };
    if (theirs.decoder) same("rotary_cross", crossing(theirs), crossing(ours));
}

WordPiece Start::tokenizer() const { return vocabulary_ ? with_tokens(all_tokens(), *vocabulary_) : all_tokens(); }

void Start::extend(const RunSettings& settings, const std::string& task) {
    const WordPiece reader = all_tokens();
    const Vocabulary& known = reader.vocabulary();
    const Strings words = settings.words(), answers = settings.answers();
    Vocabulary wanted = words.empty() ? with_more(known, answers) : Vocabulary(words);
    // If the new vocabulary lacks a known token, the token is dropped and the head is not copied. If the settings do
    // not allow this, BadInput is thrown.
    for (int id = 0; id < known.size(); id++) {
        const std::string& token = known.token(id);
        if (wanted.id(token) >= 0) continue;
        if (!settings.takes_any_stack())
            throw BadInput("the vocabulary is not that of task ", task, ": ", source(), " has the token ",
                           clipped(token), ", which is none of the ", wanted.size(),
                           " words of the task; --init expects weights ", "whose tokens are all words of the task");
        new_head_ = true;
    }
    // If the old vocabulary has none of the answers, the head has not learned any answer, and is not copied either.
    if (!answers.empty() && wanted.size() == known.size() + int(answers.size())) new_head_ = true;
    if (wanted.lines() != known.lines()) vocabulary_ = std::move(wanted);
}

void Start::keep(const TrainingText& t) {
    const WordPiece reader = all_tokens();
    const Vocabulary& v = reader.vocabulary();
    const Tokens special = special_ids(v);
    std::set<int> used(special.begin(), special.end());  // ids of the tokens that are kept
    for (const AddedToken& token : reader.added()) used.insert(token.id);
    for (const auto* lines : {&t.train, &t.train_targets, &t.held_out, &t.held_out_targets})
        for (const std::string& line : *lines)
            for (int id : reader.encode(line)) used.insert(id);
    Strings tokens;
    for (int id : used) tokens.push_back(v.token(id));
    vocabulary_ = Vocabulary(std::move(tokens));
    kept_ = true;
}

// Copies the rows of the tokens that the new vocabulary takes from the old one, and then those of the numbers behind
// the vocabulary (Objective::counts) that both runs have. The other rows of `to` keep their random values, scaled to
// the RMS of `from`.
void Start::copy_tokens(const View& from, const View& to) const {
    const Numbers known = numbers_of(from);
    Numbers all = numbers_of(to);
    const auto size = [](const Numbers& v) {
        return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0) / v.size());
    };
    const double drawn = size(all), larger = drawn > 0 ? size(known) / drawn : 1;
    for (double& x : all) x *= larger;
    const WordPiece reader = all_tokens();
    const Vocabulary &theirs = reader.vocabulary(), &ours = vocabulary_ ? *vocabulary_ : theirs;
    const std::size_t E = known.size() / from.shape[0];
    for (int id = 0; id < theirs.size(); id++)
        if (const int to_id = vocabulary_ ? ours.id(theirs.token(id)) : id; to_id >= 0)
            std::copy_n(known.data() + id * E, E, all.data() + to_id * E);
    const std::size_t behind = theirs.size() * E, behind_ours = ours.size() * E;
    const std::size_t numbers = std::min(known.size() - behind, all.size() - behind_ours);
    std::copy_n(known.data() + behind, numbers, all.data() + behind_ours);
    write_numbers(to, all.data());
}

void Start::copy_of(const Tensor& given, const View& to) const {
    const View from = weights().master(given);
    const bool others = vocabulary_ || from.shape[0] != to.shape[0];
    if (a_row_for_each_token(given.path) && others) return copy_tokens(from, to);
    copy(from, to);
}

std::string Start::give_weights(Run& run) const {
    const Stacks theirs = stacks(), ours = run.stacks();
    expect_same_sizes(ours);
    const bool from_one = !theirs.decoder;
    // number of rows of a projection to keys
    const int key_width = ours.first.key_heads() * (ours.first.width / ours.first.heads);
    struct Given {
        const Tensor* tensor;
        ParameterPart part;
        bool taken = false;  // whether a parameter of the new model has this part as its counterpart
    };
    std::map<std::string, Given> given;  // all parts of the old weights, by ParameterPart::key
    for (const Tensor& t : weights().all())
        for (const ParameterPart& part : parts_of(t.path, t.shape[0], attention_of(t.path, theirs), key_width))
            given[part.key] = {&t, part};
    const auto find = [&](const std::string& key) {
        const auto found = given.find(key);
        return found == given.end() ? nullptr : &found->second;
    };
    const auto kind_of = [&](const Given& g) { return attention_of(g.tensor->path, theirs); };
    // Names for the messages. fresh: new parts, which are initialised at random. left: old parts without counterpart.
    // lost: the parts in `left` that are trained parameters of attention. replaced: kinds of attention that differ.
    std::set<std::string> fresh, left, replaced, lost;
    if (!gives_head()) fresh.insert("head");
    for (const Tensor& own : run.parameters.all()) {
        const std::string path = from_one ? in_one_stack(own.path) : own.path;
        const AttentionKind *ours_here = attention_of(own.path, ours), *theirs_here = attention_of(path, theirs);
        const std::string added = addition(own.path);
        if (ours_here && ours_here != theirs_here)
            replaced.insert(text(ours_here->name, " in place of ", theirs_here->name));
        for (const ParameterPart& part : parts_of(path, own.shape[0], ours_here, key_width)) {
            const View to = part.rows.of(run.parameters.master(own));
            // `from` is the counterpart with the same path. `other` is the counterpart in the attention of target rows
            // (".target_attention.") if `part` belongs to the attention of source rows, or the reverse. `other` is
            // copied if `from` does not exist, or if only `other` has the new kind of attention.
            Given* from = find(part.key);
            Given* const other = ours_here ? find(of_other_part(part.key)) : nullptr;
            if (other && (!from || (kind_of(*from) != ours_here && kind_of(*other) == ours_here))) from = other;
            if (from && (ours_here || !added.empty()) && from->part.rows.of(from->tensor->view()).shape != to.shape)
                from = nullptr;
            if (!from && !ours_here && added.empty())
                throw Error(source(), " has no ", own.path, " ", own.shape, ", which this model needs");
            if (!from) {
                fresh.insert(ours_here && (added.empty() || !from_one) ? part.name : added);
                continue;
            }
            from->taken = true;
            if (!gives_head() && begins(own.path, "head.")) continue;
            if (part.rows.parts == 1 && from->part.rows.parts == 1)
                copy_of(*from->tensor, to);
            else
                copy(from->part.rows.of(weights().master(*from->tensor)), to);
        }
    }
    run.parameters.round();
    const int deepest = std::max(ours.first.layers, ours.decoder ? ours.decoder->layers : 0);
    for (const auto& [key, from] : given) {
        const std::string& path = from.tensor->path;
        // The upper layers that the new model does not have are not listed.
        if (from.taken || layer_of(path) >= deepest) continue;
        const std::string added = addition(path);
        if (attention_of(path, theirs) && from.tensor->needs_grad) lost.insert(from.part.name);
        left.insert(attention_of(path, theirs) || added.empty() ? from.part.name : added);
    }
    if (!lost.empty())
        log_line("warning: ", source(), ": the attention of this model has no place for ",
                 joined_parts(std::move(lost)), "; what these parameters have learned is lost");

    std::string taken = layers(ours.first.layers, theirs.first.layers), made;
    if (ours.decoder)
        taken = text("encoder ", taken, ", decoder ",
                     layers(ours.decoder->layers, from_one ? theirs.first.layers : theirs.decoder->layers));
    taken += ", embedding";
    if (gives_head()) taken += ", head";
    const auto list = [&](const char* what, const std::set<std::string>& names) {
        if (!names.empty()) made += text("; ", what, ": ", joined_parts(names));
    };
    list("attention", replaced);
    list("new", fresh);
    list("left out", left);
    const WordPiece reader = all_tokens();
    const Vocabulary &all = reader.vocabulary(), &own = vocabulary_ ? *vocabulary_ : all;
    int shared = 0;
    for (int id = 0; id < own.size(); id++) shared += all.id(own.token(id)) >= 0;
    if (kept_ || shared < all.size()) made += text("; ", shared, " of ", all.size(), " tokens");
    if (own.size() > shared) made += text("; ", own.size() - shared, " tokens that it does not know");
    return taken + made;
}

bool is_run(const std::string& path) {
    namespace fs = std::filesystem;
    if (fs::exists(path + "/run.json") || fs::exists(path + "/state.safetensors")) return true;
    // A step folder may lack its state, which only training reads. The model_type of its config.json is then a family.
    if (!fs::exists(path + "/config.json")) return false;
    const nlohmann::json config = read_json(path + "/config.json");
    const auto type = config.is_object() ? config.find("model_type") : config.end();
    return type != config.end() && type->is_string() && contains(names_of(families()), type->get<std::string>());
}

std::unique_ptr<Start> Start::open(const std::string& path) {
    if (!std::filesystem::is_directory(path)) throw BadInput("--init: there is no folder ", path);
    if (!is_run(path)) return std::make_unique<FromHuggingFace>(path);
    std::unique_ptr<Run> run = family_of_run(path).load(path, false, Device::cpu);
    if (run->stacks().none())
        throw BadInput("--init: ", path, " is a run of ", run->common().family(),
                       ", which has no layers to start with; expected a run of another model");
    return std::make_unique<FromRun>(std::move(run));
}

}  // namespace masquerade
