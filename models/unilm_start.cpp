// SPDX-License-Identifier: MIT
#include "models/unilm_start.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/log.h"
#include "engine/ops/check.h"
#include "engine/tensor/copy.h"
#include "models/hugging_face/hugging_face.h"
#include "tokenizer/hugging_face/hugging_face.h"

namespace masquerade {
namespace {

class FromRun : public UniLmStart {
  public:
    explicit FromRun(const std::string& path) : run_(UniLmRun::load(path, true)) {}
    std::string source() const override { return run_->step_folder; }
    const Vocabulary& vocabulary() const override { return run_->tokenizer.vocabulary(); }

    void adopt(UniLmSettings& s) const override {
        const UniLmSettings& theirs = run_->settings;
        s.model = run_->model.backbone.options;
        s.cased = theirs.cased;
        s.max_length = theirs.max_length;
        s.max_target = theirs.max_target;
        s.fixed_target_start = theirs.fixed_target_start;
        s.source_type = theirs.source_type;
        s.target_type = theirs.target_type;
    }

    void give_weights(UniLmRun& to) const override {
        const auto& theirs = run_->parameters.all();
        const auto& ours = to.parameters.all();
        const bool alike = std::equal(
            ours.begin(), ours.end(), theirs.begin(), theirs.end(),
            [](const Tensor& a, const Tensor& b) { return a.path == b.path && a.shape == b.shape; });
        if (!alike) refuse(to);
        for (std::size_t i = 0; i < ours.size(); i++)
            copy(run_->parameters.master(theirs[i]), to.parameters.master(ours[i]));
        to.parameters.round();
    }

  private:
    [[noreturn]] void refuse(const UniLmRun& to) const {
        const auto& theirs = run_->parameters.all();
        const auto& ours = to.parameters.all();
        for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); i++)
            if (ours[i].path != theirs[i].path || ours[i].shape != theirs[i].shape)
                throw BadInput(text(source(), " has ", theirs[i].path, " ", theirs[i].shape,
                                    " where this model has ", ours[i].path, " ", ours[i].shape,
                                    "; its sizes must be those of the checkpoint"));
        throw BadInput(text(source(), " has ", theirs.size(), " tensors, this model ", ours.size(),
                            "; its sizes must be those of the checkpoint"));
    }
    std::unique_ptr<UniLmRun> run_;
};

class FromHuggingFace : public UniLmStart {
  public:
    explicit FromHuggingFace(const std::string& path)
        : path_(path), config_(read_hugging_face_config(path)), tokenizer_(read_tokenizer(path)) {
        for (const std::string& note : tokenizer_.notes) log_line("note: ", note);
        if (tokenizer_.vocabulary.size() != config_.backbone.vocabulary)
            throw BadInput(text(path, ": the vocabulary has ", tokenizer_.vocabulary.size(),
                                " tokens, the model ", config_.backbone.vocabulary, "; ./inspect checkpoint ",
                                path, " --save DIR makes one in which they agree"));
    }
    std::string source() const override { return path_; }
    const Vocabulary& vocabulary() const override { return tokenizer_.vocabulary; }

    void adopt(UniLmSettings& s) const override {
        s.model = config_.backbone;
        s.cased = !tokenizer_.options.lower;
    }

    void give_weights(UniLmRun& to) const override {
        const BackboneOptions& b = to.model.backbone.options;
        if (!b.rotary && b.positions != config_.backbone.positions)
            throw BadInput(text(path_, " knows ", config_.backbone.positions,
                                " positions; max_length + max_target is ",
                                to.settings.max_length + to.settings.max_target, "; make them shorter"));
        const HuggingFaceWeights found = load_hugging_face(path_, to.model.backbone, to.parameters);
        if (!found.head)
            log_line("note: ", path_, " has no masked-language-model head; this one starts from new weights");
    }

  private:
    std::string path_;
    HuggingFaceConfig config_;
    HuggingFace tokenizer_;
};

}  // namespace

std::unique_ptr<UniLmStart> UniLmStart::open(const std::string& path) {
    namespace fs = std::filesystem;
    if (!fs::is_directory(path)) throw BadInput(text("--init: there is no folder ", path));
    const bool ours = fs::exists(path + "/run.json") || fs::exists(path + "/state.safetensors");
    if (ours) return std::make_unique<FromRun>(path);
    return std::make_unique<FromHuggingFace>(path);
}

}  // namespace masquerade
