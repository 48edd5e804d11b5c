// SPDX-License-Identifier: MIT
// A run that writes targets for sources: what ./generate, ./evaluate and the samples of a training ask of it, whatever
// the stacks behind it.
#pragma once
#include "models/writing/cached_writer.h"
#include "models/nets/encoder_decoder.h"
#include "models/tasks/objective.h"
#include "models/runs/measures.h"
#include "models/runs/run_of.h"

namespace masquerade {

// The loss of a model on text it has not seen.
struct ScoredLoss {
    double per_token = 0;     // nats
    double per_document = 0;  // nats
    std::int64_t documents = 0, tokens = 0;
};

// The loss of one of the objectives it is trained to do.
struct PartLoss {
    std::string objective;
    double weight;
    ScoredLoss loss;
};

struct TargetSettings : RunSettings {
    std::string objective;
    int max_length = 64;                   // tokens of a source, [CLS] and [SEP] among them
    int max_target = 24;                   // tokens of a target, its [SEP] among them
    int source_type = 0, target_type = 1;  // segment ids
    double label_smoothing = 0;            // of the loss that is trained on
    // one stack: the target's positions start at max_length, whatever the source's length
    bool fixed_target_start = false;

    TextKind wants(TextKind usual) const override { return mixture().has(Objective::pairs) ? usual : TextKind::any; }
    std::vector<std::string> words() const override { return made.any() ? pair_words(made) : WordList(); }
    virtual const std::vector<Objective>& table() const = 0;  // of its objectives
    ObjectiveMixture mixture() const { return ObjectiveMixture::parse(objective, table()); }
    virtual Stacks stacks() const = 0;  // as they are set
    // The masks in words, of one stack or the decoder, and of the encoder. BadUsage where they say nothing.
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
    // The sizes and the learning rate that all families start with.
    void start_with(BackboneOptions& stack, int layers);
    // Refuses segment ids that the stack has no row for.
    void expect_types(const BackboneOptions& stack) const;
    // The task, lengths, segment ids, and what is otherwise in checkpoints from elsewhere alone.
    void declare_reading(Config& config, BackboneOptions& stack);
    void declare_decoder(Config& config, EncoderDecoderOptions& stacks);
    // Declares what follows the settings of its objectives; `smooths`: its labels can be smoothed.
    void declare_rest(Config& config, BackboneOptions& stack, bool smooths = true);
};

class TargetRun : public Run {
  public:
    const TargetSettings& common() const override = 0;
    std::string writing_command(const std::string& folder) const override;
    Measures measures(const Measuring& how) override;
    std::unique_ptr<RunWriter> writer(const Writing& how) override;
    const std::string& objective() const { return common().objective; }
    // Sources alone, or pairs where there are targets.
    std::vector<Sentence> sentences(const std::vector<std::string>& sources,
                                    const std::vector<std::string>& targets = {}) const;
    virtual const TargetNet& net() const = 0;
    virtual ObjectiveOptions objective_options() const;
    std::unique_ptr<Task> task(const TrainingText& text) override;
    bool reads_pairs() const { return mixture.has(Objective::pairs); }  // whether any objective needs them
    // Whether it was trained to predict what comes next, and its masks let it write; ... what comes before.
    bool writes() const { return mixture.has(Objective::writes) && unwritable().empty(); }
    bool writes_backward() const { return mixture.has(Objective::writes_backward); }
    virtual std::string unwritable() const { return ""; }  // why its mask does not let it write, where that is so
    // BadUsage where it was not.
    void expect_to_write(bool backward) const;
    // BadInput: the text of this name has no targets.
    [[noreturn]] void refuse_sentences(const std::string& name) const;
    // Whether it was trained on one text: it never saw a pair, so it continues what it reads.
    virtual bool continues() const { return false; }
    // Targets of sources by `options`: for each its hypotheses, the best first.
    virtual std::vector<std::vector<Hypothesis>> write(const std::vector<const Sentence*>& sources,
                                                       SearchOptions options, std::uint64_t seed) const = 0;
    // The same from right to left: what comes before endings, in reading order.
    std::vector<std::vector<Hypothesis>> write_before(const std::vector<const Sentence*>& endings,
                                                      SearchOptions options, std::uint64_t seed) const;
    // The losses of each objective; without targets, of the objectives that need none.
    std::vector<PartLoss> losses(const std::vector<const Sentence*>& sentences, bool targets) const;

    // Texts to continue: no [SEP] follows what is given. An empty line gives [CLS] alone; a line that is too long keeps
    // its last tokens, so that a quarter of max_length is left to write.
    std::vector<Sentence> beginnings(const std::vector<std::string>& lines) const;
    // Texts that lack their beginning: no [CLS] stands before what is given; of longer ones the last tokens. An empty
    // line gives [SEP] alone.
    std::vector<Sentence> endings(const std::vector<std::string>& lines) const;

    const ObjectiveMixture mixture;
    const TargetSettings::Masks masks;

  protected:
    // A line for each source; adds rows that say how it was written.
    virtual std::vector<std::string> write_lines(const std::vector<const Sentence*>& sources,
                                                 const SearchOptions& options, std::uint64_t seed,
                                                 std::vector<Measure>& rows) const;
    TargetRun(const TargetSettings& settings, Vocabulary vocabulary, DType storage, Device device);
    virtual void reads(const TrainingText& /*text*/) {}  // it is trained on this text
    // Reads endings, to write at most so many tokens before each; null where writes_backward() is false.
    virtual std::unique_ptr<SourceReader> backward_reader(int) const { return nullptr; }
    // Describes a source to a search that writes at most `maximum` tokens until `end`.
    SearchSource search_source(const Sentence& source, int begin, int end, int maximum) const;
    // Searches with `reader`; forbids all special tokens but the end and [UNK].
    std::vector<std::vector<Hypothesis>> written(SourceReader& reader, const std::vector<SearchSource>& about,
                                                 const std::vector<const Sentence*>& sources, SearchOptions options,
                                                 std::uint64_t seed) const;
};

}  // namespace masquerade
