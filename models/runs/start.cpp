// SPDX-License-Identifier: MIT
#include "models/runs/start.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/log.h"
#include "engine/ops/check.h"
#include "engine/tensor/copy.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "tokenizer/hugging_face/hugging_face.h"

namespace masquerade {
namespace {

class FromRun : public Start {
  public:
    explicit FromRun(std::unique_ptr<Run> run) : held_(std::move(run)), run_(*held_->targets()) {}
    std::string source() const override { return run_.step_folder; }
    WordPiece tokenizer() const override { return run_.tokenizer; }

    void adopt(TargetSettings& s) const override {
        const TargetSettings& theirs = run_.common();
        s.adopt(stacks());
        s.cased = theirs.cased;
        s.max_length = theirs.max_length;
        s.max_target = theirs.max_target;
        s.source_type = theirs.source_type;
        s.target_type = theirs.target_type;
        s.fixed_target_start = theirs.fixed_target_start;
    }

  protected:
    const Parameters& weights() const override { return run_.parameters; }
    Stacks stacks() const override { return run_.stacks(); }

  private:
    std::unique_ptr<Run> held_;
    const TargetRun& run_;
};

// What BERT has and no model here needs is no news.
void warn_of_unknown(const std::string& path, std::vector<std::string> names) {
    const auto known = [](const std::string& name) {
        for (const char* part : {"pooler.", "cls.seq_relationship.", "position_ids",
                                 "cls.predictions.decoder.", "embed_positions."})
            if (name.find(part) != name.npos) return true;
        return false;
    };
    names.erase(std::remove_if(names.begin(), names.end(), known), names.end());
    if (!names.empty())
        log_line("warning: ", path, ": ", names.size(),
                 " tensors are not of this model and were left out; the first is ", names[0]);
}

class FromHuggingFace : public Start {
  public:
    explicit FromHuggingFace(const std::string& path)
        : path_(path),
          config_(read_hugging_face_config(path)),
          tokenizer_(read_tokenizer(path)),
          stack_(parameters_, config_.backbone) {
        for (const std::string& note : tokenizer_.notes) log_line("note: ", note);
        if (tokenizer_.vocabulary.size() != config_.backbone.vocabulary)
            throw BadInput(text(path, ": the vocabulary has ", tokenizer_.vocabulary.size(),
                                " tokens, the model ", config_.backbone.vocabulary, "; ./inspect checkpoint ",
                                path, " --save DIR makes one in which they agree"));
        const HuggingFaceWeights loaded = load_hugging_face(path, stack_, parameters_);
        has_head_ = loaded.head;
        warn_of_unknown(path, loaded.unused);
    }
    std::string source() const override { return path_; }
    WordPiece tokenizer() const override {
        WordPiece::Options options = tokenizer_.options;
        options.recognise_special = false;  // "[SEP]" in a training text is text
        return {tokenizer_.vocabulary, options, tokenizer_.added};
    }

    void adopt(TargetSettings& s) const override {
        s.adopt(stacks());
        s.cased = !tokenizer_.options.lower;
    }

  protected:
    const Parameters& weights() const override { return parameters_; }
    Stacks stacks() const override { return {config_.backbone}; }
    bool has_head() const override { return has_head_; }

  private:
    std::string path_;
    HuggingFaceConfig config_;
    HuggingFace tokenizer_;
    Parameters parameters_;
    Backbone stack_;
    bool has_head_ = true;
};

bool begins(const std::string& path, const char* with) { return path.rfind(with, 0) == 0; }

// The path that a parameter of two stacks has in one: "decoder.layer.0.norm1.bias" is "layer.0.norm1.bias" there.
std::string in_one_stack(const std::string& path) {
    for (const std::string stack : {"encoder.", "decoder."})
        if (begins(path, stack.c_str())) return path.substr(stack.size());
    return path;
}

// decoder.layer.0.cross.query.weight, decoder.layer.0.norm_cross.bias
bool of_cross_attention(const std::string& path) { return path.find("cross.") != path.npos; }

bool of_slots(const std::string& path) {
    return begins(path, "slots.") || begins(path, "order.") || path == "head.dense.weight";
}

std::string layers(int taken, int there) {
    return taken == there ? text("all ", there, " layers")
                          : text("the first ", taken, " of ", there, " layers");
}

}  // namespace

void Start::expect_layers(const char* key, int wanted, int there) const {
    if (wanted > there)
        throw BadInput(text(source(), " has ", there, " layers to give, and ", key, " is ", wanted,
                            "; choose at most ", there));
}

// Beside shapes, what no shape betrays.
void Start::expect_same_sizes(const Stacks& ours) const {
    const Stacks theirs = stacks();
    BackboneOptions a = theirs.first, b = ours.first;
    auto same = [&](const std::string& key, const std::string& found, const std::string& expected) {
        if (found != expected)
            throw BadInput(text(source(), " has ", key, "=", found, ", this model ", expected,
                                "; its sizes must be those of the checkpoint: leave ", key, " out"));
    };
    Config of_a, of_b;
    for (const auto& [config, stack] : {std::pair{&of_a, &a}, {&of_b, &b}}) {
        stack->embedding = stack->embedding_width();
        RunSettings::declare_backbone(*config, *stack);
        RunSettings::declare_foreign(*config, *stack);
    }
    for (const char* key : {"width", "heads", "inner", "types", "embedding", "rotary", "rotary_value", "pre_norm",
                            "gelu", "norm_eps"})
        same(key, of_a.value(key), of_b.value(key));
    if (!a.rotary && a.positions != b.positions)
        throw BadInput(text(source(), " knows ", a.positions, " positions, and max_length, max_target and ",
                            "positions ask for ", b.positions, "; choose them so that it is as many"));
    expect_layers("layers", b.layers, a.layers);
    if (!ours.decoder) return;
    expect_layers("decoder_layers", ours.decoder->layers, theirs.decoder ? theirs.decoder->layers : a.layers);
    const auto crossing = [](const Stacks& stacks) { return stacks.decoder->rotary_cross ? "true" : "false"; };
    if (theirs.decoder) same("rotary_cross", crossing(theirs), crossing(ours));
}

std::string Start::give_weights(TargetRun& run) const {
    const Stacks theirs = stacks(), ours = run.stacks();
    expect_same_sizes(ours);
    const bool from_one = !theirs.decoder;
    bool slots = false;
    for (const Tensor& own : run.parameters.all()) {
        const Tensor* given = weights().find(from_one ? in_one_stack(own.path) : own.path);
        if (given && given->shape != own.shape && own.path == "head.dense.weight") given = nullptr;  // that of slots reads two rows
        if (!given && !of_cross_attention(own.path) && !of_slots(own.path))
            throw Error(text(source(), " has no ", own.path, " ", own.shape, ", which this model needs"));
        if (given && (has_head() || !begins(own.path, "head.")))
            copy(weights().master(*given), run.parameters.master(own));
        slots |= !given && of_slots(own.path);
    }
    run.parameters.round();

    std::string taken = layers(ours.first.layers, theirs.first.layers), fresh;
    if (ours.decoder)
        taken = text("encoder ", taken, ", decoder ",
                     layers(ours.decoder->layers, from_one ? theirs.first.layers : theirs.decoder->layers));
    taken += ", embedding";
    if (has_head()) taken += ", head";
    if (!has_head()) fresh += ", head";
    if (ours.decoder && from_one) fresh += ", cross-attention";
    if (slots) fresh += ", slots";
    return fresh.empty() ? taken : text(taken, "; new: ", fresh.substr(2));
}

std::unique_ptr<Start> Start::open(const std::string& path, const std::string& model) {
    namespace fs = std::filesystem;
    if (!fs::is_directory(path)) throw BadInput(text("--init: there is no folder ", path));
    const bool ours = fs::exists(path + "/run.json") || fs::exists(path + "/state.safetensors");
    if (!ours) return std::make_unique<FromHuggingFace>(path);
    const ModelKind& kind = model_of_run(path);
    std::unique_ptr<Run> run;
    if (kind.settings()->targets()) run = kind.load(path, false, Device::cpu);
    if (!run || (kind.name != model && run->stacks().decoder))
        throw BadInput(text(path, " is a run of ", kind.name, "; --init of ", model, " takes a run of ",
                            model == "unilm" ? "" : model + " or ",
                            "unilm, or a BERT or RoFormer of Hugging Face's"));
    return std::make_unique<FromRun>(std::move(run));
}

}  // namespace masquerade
