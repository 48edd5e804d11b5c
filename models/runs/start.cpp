// SPDX-License-Identifier: MIT
#include "models/runs/start.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include "engine/base/log.h"
#include "engine/ops/check.h"
#include "engine/tensor/copy.h"
#include "engine/tensor/numbers.h"
#include "input/input.h"
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
        sizes.first.head_rows = BackboneOptions().head_rows;  // the default, from which only insertion models differ
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

// Logs a warning about unused tensors of a checkpoint, except for the parts of BERT that none of our models needs.
void warn_of_unknown(const std::string& path, std::vector<std::string> names) {
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
    ChosenTokens fitted_;  // for each token of the tokenizer, its row in the checkpoint's embedding
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
                                  {"head.dense.weight", "slots"},  // with slots, its input is two hidden rows, not one
                                  {"latent.", "latents"}};

std::string addition(const std::string& path) {
    for (const Addition& a : additions)
        if (path.find(a.path) != path.npos) return a.name;
    return "";
}

bool has_part(const std::string& path, const char* part) { return path.find(part) != path.npos; }

// Returns the kind of attention that a parameter belongs to, or null.
const AttentionKind* attention_of(const std::string& path, const Stacks& stacks) {
    const bool target = has_part(path, ".target_attention.");
    if (!target && !has_part(path, ".attention.") && !has_part(path, ".cross.") && !has_part(path, "norm_packed") &&
        path != "embedding.slots")
        return nullptr;
    const bool decoder = stacks.decoder && begins(path, "decoder.");
    const int layers = decoder ? stacks.decoder->layers : stacks.first.layers;
    const AttentionWords kinds(stacks.first.attention, layers);
    const std::size_t number = path.find("layer.");
    if (number != path.npos) {
        const int layer = std::min(std::atoi(path.c_str() + number + 6), layers - 1);
        return &self_attention(kinds.of(layer, target || decoder).name, decoder && has_part(path, ".attention."));
    }
    // Layers share the parameters of a companion, and those that are named after a kind.
    const bool companion = path == "embedding.slots" || has_part(path, "norm_packed");
    for (const AttentionKind* kind : kinds.named())
        if (companion ? kind->companion != nullptr : has_part(path, kind->name)) return kind;
    return kinds.named()[0];
}

// Returns the path of the parameter with the same meaning in a layer whose rows of A and B have different kinds of
// attention or, from such a layer, in a layer with one kind.
std::string of_other_part(std::string path) {
    const std::size_t target = path.find(".target_attention."), own = path.find(".attention.");
    return target != path.npos ? path.erase(target + 1, 7) : own != path.npos ? path.insert(own + 1, "target_") : path;
}

// Returns the name under which a new parameter of attention, which the old weights lack, is reported to the user.
std::string new_attention(const std::string& path, const AttentionKind& ours, const AttentionKind& theirs) {
    if (has_part(path, ".cross.")) return "cross-attention";
    if (&ours != &theirs) return text("attention (", ours.name, " in place of ", theirs.name, ")");
    const std::size_t place = path.find("attention.");
    return place == path.npos ? path : path.substr(place);  // for example "attention.positions"
}

bool a_row_for_each_token(const std::string& path) { return path == "embedding.token.weight" || path == "head.bias"; }

std::string layers(int taken, int there) {
    return taken == there ? text("all ", there, " layers") : text("the first ", taken, " of ", there, " layers");
}

}  // namespace

void Start::expect_layers(const char* key, int wanted, int there) const {
    if (wanted > there)
        throw BadInput(
            text(source(), " has only ", there, " layers, but ", key, " is ", wanted, "; choose at most ", there));
}

// Throws BadInput unless the weights have the sizes of this model, and equal settings where a difference would not show
// in the shapes, such as gelu. The weights may have more layers.
void Start::expect_same_sizes(const Stacks& ours) const {
    const Stacks theirs = stacks();
    if (theirs.decoder && !ours.decoder)
        throw BadInput(
            text(source(),
                 " has an encoder and a decoder, but this model is one stack; --init needs a run of one stack, "
                 "or a Hugging Face BERT, RoFormer or NomicBERT"));
    BackboneOptions a = theirs.first, b = ours.first;
    auto same = [&](const std::string& key, const std::string& found, const std::string& expected) {
        if (found != expected)
            throw BadInput(text(source(), " has ", key, "=", found, ", but this model has ", key, "=", expected,
                                "; sizes must equal those of the checkpoint: leave ", key, " out"));
    };
    Config of_a, of_b;
    for (const auto& [config, stack] : {std::pair{&of_a, &a}, {&of_b, &b}}) {
        stack->embedding = stack->embedding_width(), stack->kv_heads = stack->key_heads();
        stack->head_bias = stack->biased_head();
        RunSettings::declare_backbone(*config, *stack);
        RunSettings::declare_foreign(*config, *stack);
    }
    for (const char* key : {"width", "heads", "inner", "types", "embedding", "rotary", "rotary_value", "pre_norm",
                            "gelu", "norm_eps", "norm", "ffn", "bias", "kv_heads", "head_bias", "rotary_base"})
        same(key, of_a.value(key), of_b.value(key));
    if (!a.rotary && a.positions != b.positions)
        throw BadInput(text(source(), " has ", a.positions, " positions, but max_length, max_target and ",
                            "positions need ", b.positions, "; choose them so that they need ", a.positions));
    expect_layers("layers", b.layers, a.layers);
    if (!ours.decoder) return;
    expect_layers("decoder_layers", ours.decoder->layers, theirs.decoder ? theirs.decoder->layers : a.layers);
    const auto crossing = [](const Stacks& stacks) { return stacks.decoder->rotary_cross ? "true" : "false"; };
    if (theirs.decoder) same("rotary_cross", crossing(theirs), crossing(ours));
}

WordPiece Start::tokenizer() const {
    return chosen_     ? with_tokens(all_tokens(), chosen_->vocabulary)
           : extended_ ? with_tokens(all_tokens(), *extended_)
                       : all_tokens();
}

void Start::extend(const std::vector<std::string>& words, const std::string& task) {
    Vocabulary wanted(words);
    const WordPiece reader = all_tokens();
    for (int id = 0; id < reader.vocabulary().size(); id++)
        if (const std::string& token = reader.vocabulary().token(id); wanted.id(token) < 0)
            throw BadInput(text("the vocabulary is not that of task ", task, ": ", source(), " has the token ",
                                clipped(token), ", which is none of the ", words.size(),
                                " words of the task; --init expects weights ",
                                "whose tokens are all words of the task"));
    if (wanted.lines() != reader.vocabulary().lines()) extended_ = std::move(wanted);
}

void Start::keep(const TrainingText& t) {
    const WordPiece reader = all_tokens();
    const Vocabulary& v = reader.vocabulary();
    std::set<int> used;
    for (int id : {v.pad(), v.unk(), v.cls(), v.sep(), v.mask()})
        if (id >= 0) used.insert(id);
    for (const AddedToken& token : reader.added()) used.insert(token.id);
    for (const auto* lines : {&t.train, &t.train_targets, &t.held_out, &t.held_out_targets})
        for (const std::string& line : *lines)
            for (int id : reader.encode(line)) used.insert(id);
    std::vector<std::string> tokens;
    for (int id : used) tokens.push_back(v.token(id));
    chosen_ = wanted_tokens(reader, Vocabulary(std::move(tokens)));
}

void Start::copy_known(const View& from, const View& to) const {
    const std::vector<double> known = numbers_of(from);
    std::vector<double> all = numbers_of(to);
    const auto size = [](const std::vector<double>& v) {
        return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0) / double(v.size()));
    };
    const double drawn = size(all), larger = drawn > 0 ? size(known) / drawn : 1;
    for (double& x : all) x *= larger;
    const WordPiece reader = all_tokens();
    const std::size_t E = known.size() / std::size_t(reader.vocabulary().size());
    for (std::size_t id = 0; id * E < known.size(); id++)
        std::copy_n(known.data() + id * E, E,
                    all.data() + std::size_t(extended_->id(reader.vocabulary().token(int(id)))) * E);
    write_numbers(to, all.data());
}

void Start::copy_of(const Tensor& given, const View& to) const {
    const View from = weights().master(given);
    if (extended_ && a_row_for_each_token(given.path)) return copy_known(from, to);
    if (!chosen_ || !a_row_for_each_token(given.path)) return copy(from, to);
    write_numbers(to, choose_rows(chosen_->choice, numbers_of(from), int(given.shape[0])).data());
}

std::string Start::give_weights(Run& run) const {
    const Stacks theirs = stacks(), ours = run.stacks();
    expect_same_sizes(ours);
    const bool from_one = !theirs.decoder;
    std::set<std::string> fresh;
    if (!has_head()) fresh.insert("head");
    for (const Tensor& own : run.parameters.all()) {
        const std::string path = from_one ? in_one_stack(own.path) : own.path;
        const Tensor* given = weights().find(path);
        const AttentionKind* const our_kind = attention_of(own.path, ours);
        const AttentionKind* their_kind = attention_of(path, theirs);
        const auto fits = [&](const AttentionKind* kind) { return std::string(our_kind->weights) == kind->weights; };
        if (our_kind && !(given && fits(their_kind))) {
            const std::string other = of_other_part(path);
            given = fits(attention_of(other, theirs)) ? weights().find(other) : nullptr;
            if (given) their_kind = attention_of(other, theirs);
        }
        const std::string added = our_kind ? new_attention(own.path, *our_kind, *their_kind) : addition(own.path);
        if (given && given->shape != own.shape && !added.empty()) given = nullptr;
        if (!given && added.empty())
            throw Error(text(source(), " has no ", own.path, " ", own.shape, ", which this model needs"));
        if (!given)
            fresh.insert(added);
        else if (has_head() || !begins(own.path, "head."))
            copy_of(*given, run.parameters.master(own));
    }
    run.parameters.round();

    std::string taken = layers(ours.first.layers, theirs.first.layers), made;
    if (ours.decoder)
        taken = text("encoder ", taken, ", decoder ",
                     layers(ours.decoder->layers, from_one ? theirs.first.layers : theirs.decoder->layers));
    taken += ", embedding";
    if (has_head()) taken += ", head";
    for (const std::string& name : fresh) made += text(made.empty() ? "; new: " : ", ", name);
    const int theirs_in_all = all_tokens().vocabulary().size();
    if (chosen_) made += text("; ", chosen_->vocabulary.size(), " of ", theirs_in_all, " tokens");
    if (extended_) made += text("; ", extended_->size() - theirs_in_all, " tokens that it does not know");
    return taken + made;
}

std::unique_ptr<Start> Start::open(const std::string& path) {
    namespace fs = std::filesystem;
    if (!fs::is_directory(path)) throw BadInput(text("--init: there is no folder ", path));
    const bool ours = fs::exists(path + "/run.json") || fs::exists(path + "/state.safetensors");
    if (!ours) return std::make_unique<FromHuggingFace>(path);
    return std::make_unique<FromRun>(family_of_run(path).load(path, false, Device::cpu));
}

}  // namespace masquerade
