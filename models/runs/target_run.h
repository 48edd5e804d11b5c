// SPDX-License-Identifier: MIT
// A run that generates targets for sources, with one stack or two: the interface for ./generate, ./evaluate and the
// samples shown in training.
#pragma once
#include "models/writing/cached_writer.h"
#include "models/nets/encoder_decoder.h"
#include "models/tasks/objective.h"
#include "models/runs/measures.h"
#include "models/runs/run_of.h"

namespace masquerade {

// The loss of a model on held-out text.
struct ScoredLoss {
    double per_token = 0;     // nats
    double per_document = 0;  // nats
    std::int64_t documents = 0, tokens = 0;
};

// The loss of one objective of a mixture.
struct PartLoss {
    std::string objective;
    double weight;
    ScoredLoss loss;
};

struct TargetSettings : RunSettings {
    std::string objective;
    int max_length = 64;                   // maximum number of tokens of a source, including [CLS] and [SEP]
    int max_target = 24;                   // maximum number of tokens of a target, including its [SEP]
    int source_type = 0, target_type = 1;  // segment ids
    double label_smoothing = 0;            // only in the training loss
    // for one stack: whether the target's positions start at max_length, whatever the length of the source
    bool fixed_target_start = false;

    TextKind wants(TextKind usual) const override { return mixture().has(Objective::pairs) ? usual : TextKind::any; }
    std::vector<std::string> words() const override { return made.any() ? pair_words(made) : WordList(); }
    virtual const std::vector<Objective>& table() const = 0;  // the objectives that the family supports
    ObjectiveMixture mixture() const { return ObjectiveMixture::parse(objective, table()); }
    virtual Stacks stacks() const = 0;  // the sizes according to the settings
    // The masks in words, for the stack that predicts and for the encoder; null if `mask` is empty. Throws BadUsage if
    // `mask` is not valid.
    struct Masks {
        std::shared_ptr<const LayerMasks> own, encoder;
    };
    Masks masks() const;
    std::vector<const char*> reading() const override {
        return {"max_target", "max_length", "source_type", "target_type", "fixed_target_start"};
    }
    LineLimit source_limit() const override { return {"max_length", max_length}; }
    LineLimit target_limit() const override { return {"max_target", max_target}; }

  protected:
    // Sets the default sizes and learning rate, which are the same for all families of this kind.
    void start_with(BackboneOptions& stack, int layers);
    // Throws BadUsage if the stack has no row for a segment id.
    void expect_types(const BackboneOptions& stack) const;
    // Declares the task, lengths, segment ids, and settings that only vary in checkpoints from other programs.
    void declare_reading(Config& config, BackboneOptions& stack);
    void declare_decoder(Config& config, EncoderDecoderOptions& stacks);
    // Takes over the sizes of other weights. If these have no decoder, the decoder gets as many layers as the encoder.
    static void adopt_stacks(EncoderDecoderOptions& ours, const Stacks& theirs);
    // Declares the remaining settings, after those of the objectives. smooths: whether label smoothing is supported.
    void declare_rest(Config& config, BackboneOptions& stack, bool smooths = true);
};

class TargetRun : public Run {
  public:
    const TargetSettings& common() const override = 0;
    std::string writing_command(const std::string& folder) const override;
    Measures measures(const Measuring& how) override;
    std::unique_ptr<RunWriter> writer(const Writing& how) override;
    const std::string& objective() const { return common().objective; }
    // Encodes sources, or pairs if targets are given.
    std::vector<Sentence> sentences(const std::vector<std::string>& sources,
                                    const std::vector<std::string>& targets = {}) const;
    virtual const TargetNet& net() const = 0;
    virtual ObjectiveOptions objective_options() const;
    std::unique_ptr<Task> task(const TrainingText& text) override;
    bool reads_pairs() const { return mixture.has(Objective::pairs); }  // whether any objective needs pairs
    // Whether the run can generate from left to right: an objective trains it, and the masks allow it.
    bool writes() const { return mixture.has(Objective::writes) && unwritable().empty(); }
    // Whether the run can generate from right to left.
    bool writes_backward() const { return mixture.has(Objective::writes_backward); }
    virtual std::string unwritable() const { return ""; }  // why the masks do not allow generation; empty if they do
    // Throws BadUsage if the run cannot generate in this direction.
    void expect_to_write(bool backward) const;
    // Throws BadInput, which says that the text of this name has no targets.
    [[noreturn]] void refuse_sentences(const std::string& name) const;
    // Whether the run continues the texts that it reads, because it was trained on texts without targets.
    virtual bool continues() const { return false; }
    // Generates targets of sources. Returns the hypotheses of each source, best first.
    virtual std::vector<std::vector<Hypothesis>> write(const std::vector<const Sentence*>& sources,
                                                       SearchOptions options, std::uint64_t seed) const = 0;
    // Generates the text before endings, from right to left. The hypotheses are in reading order.
    std::vector<std::vector<Hypothesis>> write_before(const std::vector<const Sentence*>& endings,
                                                      SearchOptions options, std::uint64_t seed) const;
    // Returns the loss of each objective; if `targets` is false, only of the objectives that need no pairs.
    std::vector<PartLoss> losses(const std::vector<const Sentence*>& sentences, bool targets) const;

    // Encodes texts to be continued, without [SEP]. An empty line becomes [CLS]. A long line keeps only [CLS] and its
    // last tokens, so that a quarter of max_length is left for the continuation.
    std::vector<Sentence> beginnings(const std::vector<std::string>& lines) const;
    // Encodes texts whose beginning is missing, without [CLS]. An empty line becomes [SEP]. A long line keeps only its
    // last tokens.
    std::vector<Sentence> endings(const std::vector<std::string>& lines) const;

    const ObjectiveMixture mixture;
    const TargetSettings::Masks masks;

  protected:
    // Generates one line per source, and appends measures of the generation to `rows`.
    virtual std::vector<std::string> write_lines(const std::vector<const Sentence*>& sources,
                                                 const SearchOptions& options, std::uint64_t seed,
                                                 std::vector<Measure>& rows) const;
    TargetRun(const TargetSettings& settings, Vocabulary vocabulary, DType storage, Device device);
    virtual void reads(const TrainingText& /*text*/) {}  // called before training on `text`
    // Returns a reader of endings that generates at most the given number of tokens before each ending. Null if
    // writes_backward() is false.
    virtual std::unique_ptr<SourceReader> backward_reader(int) const { return nullptr; }
    // Describes a source to the search: generates at most `maximum` tokens, or until `end`.
    SearchSource search_source(const Sentence& source, int begin, int end, int maximum) const;
    // Searches with `reader`. Forbids all special tokens except the end token and [UNK].
    std::vector<std::vector<Hypothesis>> written(SourceReader& reader, const std::vector<SearchSource>& about,
                                                 const std::vector<const Sentence*>& sources, SearchOptions options,
                                                 std::uint64_t seed) const;
};

}  // namespace masquerade
