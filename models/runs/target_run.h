// SPDX-License-Identifier: MIT
// A run that generates targets for sources, or continues texts, with one stack or with an encoder and a decoder. This
// is the interface for ./generate, ./evaluate and the samples that are shown in training.
#pragma once
#include "models/writing/cached_writer.h"
#include "models/writing/length_table.h"
#include "models/nets/encoder_decoder.h"
#include "models/tasks/objective.h"
#include "models/runs/measures.h"
#include "models/runs/run_of.h"
#include "models/scoring/metrics.h"

namespace masquerade {

using StoredCanvases = std::vector<MaskedCanvas>;

// The loss of a model on held-out text.
struct ScoredLoss {
    double per_token = 0;     // nats
    double per_document = 0;  // nats
    std::int64_t documents = 0, tokens = 0;
};

// The loss of one objective of a mixture (ObjectiveMixture), and the weight of the objective.
struct PartLoss {
    std::string objective;
    double weight;
    ScoredLoss loss;
};

// An upper bound on the negative log-likelihood of held-out text (Objective::bound), in nats. For each sentence, the
// expected value of this estimate is an upper bound. `noise` says how far the mean over the sentences is from its
// expected value.
struct LikelihoodBound {
    Interval per_token;  // the interval is over the sentences
    // Standard deviation of per_token.mean that is due to the random choice of hidden tokens, if the canvases of a
    // sentence were independent. They spread the number of hidden tokens evenly, so it is usually less.
    double noise = 0;
    double per_document = 0;
    std::int64_t tokens = 0;
};

struct TargetSettings : RunSettings {
    std::string objective;
    int max_length = 64;  // maximum number of tokens of a source, including [CLS] and [SEP]
    int max_target = 24;  // maximum number of tokens of a target, including its [SEP]
    // Options of the training objectives. Only some of them are settings of the user; TargetRun::objective_options()
    // sets those that the run determines, such as the size of the vocabulary.
    ObjectiveOptions how;
    std::string masked = "0:1";  // diffusion: the range of the shares of hidden tokens in training
    double label_smoothing = 0;  // share of the target probability that is spread over all tokens in training
    // Used only by models with one stack. true: the positions of a target start at max_length; false: they start
    // directly after the positions of the source.
    bool fixed_target_start = false;

    TextKind wants(TextKind usual) const override { return mixture().has(Objective::pairs) ? usual : TextKind::any; }
    Strings words() const override { return made.any() ? pair_words(made) : WordList(); }
    virtual const std::vector<Objective>& table() const = 0;  // the objectives that the family supports
    ObjectiveMixture mixture() const { return ObjectiveMixture::parse(objective, table()); }
    virtual Stacks stacks() const = 0;  // sizes of the only stack, or of encoder and decoder, as set by the user
    // Returns the masks that the setting `mask` defines. `own`: masks of the only stack or of the decoder. `encoder`:
    // masks of the encoder; null if there is no encoder. Both are null if `mask` is empty. Throws BadUsage if `mask` is
    // not valid.
    struct Masks {
        std::shared_ptr<const LayerMasks> own, encoder;
    };
    Masks masks() const;
    // Returns the places of a text or of a target in masked diffusion, with one for [SEP].
    int places(bool text) const { return text ? max_length - 1 : max_target; }
    // How many numbers the model can predict, from 0 on, if an objective has the trait `counts`; otherwise 0.
    int counts() const { return mixture().has(Objective::counts) ? std::max(places(false), places(true)) : 0; }
    // Returns how the objectives with the trait `bound` hide tokens. Throws BadUsage if `masked` is not valid.
    DiffusionRule hiding() const;
    std::vector<const char*> reading() const override {
        return {"max_target", "max_length", "source_type", "target_type", "fixed_target_start"};
    }
    LineLimit source_limit() const override { return {"max_length", max_length}; }
    LineLimit target_limit() const override { return {"max_target", max_target}; }

  protected:
    // Sets the defaults that all families with TargetSettings share: sizes of the stack, batch size, learning rate and
    // standard deviation of the initial weights.
    void start_with(BackboneOptions& stack, int layers);
    // Throws BadUsage if source_type or target_type is not below the number of segment ids of the stack.
    void expect_types(const BackboneOptions& stack) const;
    // Declares the task, the lengths, the segment ids, and the settings of declare_foreign().
    void declare_reading(Config& config, BackboneOptions& stack);
    void declare_decoder(Config& config, EncoderDecoderOptions& stacks);
    void declare_diffusion(Config& config);
    // Sets `ours` to `theirs`, the sizes of the initial weights. If `theirs` has no decoder, the decoder of `ours` gets
    // the number of layers of the only stack.
    static void adopt_stacks(EncoderDecoderOptions& ours, const Stacks& theirs);
    // Declares the settings that are listed last: label smoothing, positions, batch size, tokenizer and training. If
    // `smooths` is false, the family does not support label smoothing, and this setting is left out.
    void declare_rest(Config& config, BackboneOptions& stack, bool smooths = true);
};

inline Stacks stacks_of(const EncoderDecoderOptions& o) {
    return {o.stack, Stacks::Decoder{o.decoder_layers, o.rotary_cross}};
}

class TargetRun : public Run {
  public:
    const TargetSettings& common() const override = 0;
    std::string writing_command(const std::string& folder) const override;
    LineScores scores(const Strings& lines, int importance, std::uint64_t seed) const override;
    Measures measures(const Measuring& how) override;
    RunWriter writer(const Writing& how) override;
    // The states of the encoder; runs of one stack override this.
    Vectors vectors(const Strings& lines, const VectorChoice& which) const override;
    const std::string& objective() const { return common().objective; }
    virtual const TargetNet& net() const = 0;
    virtual ObjectiveOptions objective_options() const;
    // The same for held-out text.
    ObjectiveOptions measured_options() const {
        ObjectiveOptions o = objective_options();
        o.diffusion = o.diffusion.measured();
        return o;
    }
    std::unique_ptr<Task> task(const TrainingText& text) override;
    bool reads_pairs() const { return mixture.has(Objective::pairs); }  // whether any objective needs pairs
    // Whether the run can generate from left to right: an objective trains this, and the setting `mask` allows it.
    bool writes() const { return mixture.has(Objective::writes) && unwritable(/*backward=*/false).empty(); }
    // Whether the run can generate from right to left.
    bool writes_backward() const {
        return mixture.has(Objective::writes_backward) && unwritable(/*backward=*/true).empty();
    }
    // Returns why the setting `mask` does not allow generation from left to right or, if `backward`, from right to
    // left. Returns "" if the setting allows it.
    virtual std::string unwritable(bool /*backward*/) const { return ""; }
    // Throws BadUsage if the run cannot generate from left to right or, if `backward`, from right to left.
    void expect_to_write(bool backward) const;
    // Throws BadInput. The message says that the text `name` has no targets, and that the objective needs targets.
    [[noreturn]] void refuse_sentences(const std::string& name) const;
    // Whether the run continues its sources, because it was trained on texts without targets.
    virtual bool continues() const { return false; }
    // Generates the targets of sources or, if continues(), their continuations. Returns the hypotheses of each source:
    // best first or, if options.samples > 0, all samples in the order of their numbers.
    virtual std::vector<Hypotheses> write(const Sentences& sources, SearchOptions options,
                                          std::uint64_t seed) const = 0;
    // Generates the text before each ending, from right to left. The tokens of a hypothesis are in reading order.
    std::vector<Hypotheses> write_before(const Sentences& endings, SearchOptions options, std::uint64_t seed) const;
    // Masked diffusion (target_unmask.cpp). diffusion(): this objective of the run; null if it has none. unmasks():
    // whether the run can write whole targets with it, that is, knows how long they are. The second form says whether
    // it does so with these options: a run that also writes from left to right does so only if an option asks for it.
    // counter(): the objective that predicts how many tokens are missing where; null if the run has none. lengths():
    // with canvas=drawn and without such an objective, how long targets are.
    const Objective* diffusion() const { return mixture.find(Objective::bound); }
    const Objective* counter() const { return mixture.find(Objective::counts); }
    bool unmasks() const { return diffusion() && (!draws_length() || counter() || !lengths_.empty()); }
    bool unmasks(const SearchOptions& options) const {
        return unmasks() && (!writes() || changed(options.unmask) || options.canvas.threshold >= 0);
    }
    const LengthTable& lengths() const { return lengths_; }
    // Returns the mean of -log p(n) over the sentences, where n is the number of tokens of the target.
    double length_cost(const Sentences& sentences) const;
    // Writes the hidden places of a canvas for each source: options.samples times, or once. If `starts` is empty, a
    // canvas has all places that the run was trained with, or a number of places by lengths(); the tokens with which a
    // text begins are given. Throws BadUsage if the run does not support an option.
    std::vector<std::vector<Written>> unmask(const Sentences& sources, SearchOptions options, std::uint64_t seed,
                                             const StoredCanvases& starts = {}) const;
    // Makes a canvas from the words of a line, in which [MASK] stands for a hidden place. The text ends behind the
    // line. `number` is the number of the line, for messages.
    MaskedCanvas canvas_of(const std::string& line, std::uint32_t number) const;

    // Returns the loss of each objective on these sentences. If `targets` is false, leaves out the objectives that need
    // pairs.
    std::vector<PartLoss> losses(const Sentences& sentences, bool targets) const;

    ScoredLoss loss(const Objective& objective, const Sentences& sentences) const;
    // `objective` must have the trait `bound`.
    LikelihoodBound bound(const Objective& objective, const Sentences& sentences, std::uint64_t seed) const;
    // Another bound: -log of the mean over random orders of the probability with which the tokens are predicted one by
    // one. With one order, its expected value is that of bound(); with more orders, it is smaller. The noise is not
    // set.
    LikelihoodBound bound_by_orders(const Objective& objective, const Sentences& sentences, int orders,
                                    std::uint64_t seed) const;

    // Encodes texts that will be continued, with [CLS] but without [SEP]. If a line has more than 3/4 of max_length
    // tokens, including [CLS], the first tokens after [CLS] are dropped, so that there is room for the continuation.
    StoredSentences beginnings(const Strings& lines) const;
    // Encodes texts whose beginning will be generated, with [SEP] but without [CLS]. If a line is too long, its first
    // tokens are dropped until max_length - 1 tokens remain.
    StoredSentences endings(const Strings& lines) const;

    const ObjectiveMixture mixture;
    const TargetSettings::Masks masks;

  protected:
    // Generates one line per source for ./evaluate. May append measures of the generation to `rows`.
    virtual Strings write_lines(const Sentences& sources, const SearchOptions& options, std::uint64_t seed,
                                MeasureRows& rows) const;
    Strings sampled_lines(int count, SearchOptions options, std::uint64_t seed, MeasureRows& rows) const;
    // Like write(), by masked diffusion.
    std::vector<Hypotheses> unmasked(const Sentences& sources, const SearchOptions& options, std::uint64_t seed) const;
    RunWriter unmask_writer(const Writing& how, const SearchOptions& options) const;
    // Throws BadUsage if the user gave options of masked diffusion, for a run that does not write with it. `why` is the
    // reason if the run was trained for it.
    void refuse_unmasking(const SearchOptions& options, const std::string& why, bool from_canvas = false,
                          bool show_rounds = false) const;
    // Throws BadUsage: --count was given to a writer that needs input lines.
    [[noreturn]] static void refuse_count();
    static constexpr const char* no_lengths =
        "this run has no file lengths.txt, so it does not know how long a target is";
    // Returns the sources of lines for a run of pairs: what stands before the first tab. Tells the user once.
    static Strings before_tabs(const Strings& lines, bool& told);
    // Gives the sources the numbers from `first`, and returns a line for each of them: what write() returns or, for a
    // source with fewer than `least` tokens, an empty line.
    static std::string lines_for(StoredSentences sources, std::uint32_t first, std::size_t least,
                                 const std::function<Strings(const Sentences&)>& write);
    StoredCanvases canvases_for(const Sentence& source, const Numbers& law, const SearchOptions& options,
                                std::uint64_t seed) const;
    StoredCanvases with_gaps(const MaskedCanvas& text, const Vectors& missing, const Sentence& source,
                             const SearchOptions& options, std::uint64_t seed) const;
    std::vector<Vectors> missing(const Sentences& sentences, bool text, const std::vector<Tokens>& left) const;
    Vectors length_laws(const Sentences& sentences, bool text, const std::vector<Tokens>& given,
                        const std::vector<LengthRange>& ranges) const;
    // The number of tokens with which a text begins, if it is continued. They stay, and the continuation lacks them.
    std::size_t given_tokens(const Sentence& source) const { return continues() ? source.ids.size() - 1 : 0; }
    LengthRange possible_lengths(const Sentence& source, const SearchOptions& options) const;
    void save_more(const RunFolder& folder) const override;
    void load_more(const RunFolder& folder) override;
    // Returns an example whose source has a row for each token of the sentence, including [CLS] and [SEP].
    Example source_of(const Sentence& s) const;
    // Returns the vectors of lines that vectors() should return: the state_vectors() of the lines, or an empty list if
    // latents are asked for. `example` makes the rows of a line. give_masks() sets the masks of a batch.
    Vectors states(const Strings& lines, const VectorChoice& which, const Backbone& stack,
                   const std::function<Example(const Sentence&)>& example,
                   const std::function<void(Batch&)>& give_masks, const StateReader& read) const;
    TargetRun(const TargetSettings& settings, Vocabulary vocabulary, DType storage, Device device);
    virtual void reads(const TrainingText& /*text*/) {}  // called before training on `text`
    // Returns a reader of endings that can generate the given number of tokens before each ending; null if
    // writes_backward() is false.
    virtual std::unique_ptr<SourceReader> backward_reader(int) const { return nullptr; }
    // The search for a target starts after the token `begin`. At most `maximum` tokens are generated, including the end
    // token; SearchOptions::maximum may be smaller.
    struct Start {
        int begin, maximum;
    };
    // Reads the sources with `reader` and searches for their targets, which end with the token `end`. Forbids all other
    // special tokens except [UNK]. Returns tokens in reading order, also if they were generated from the last to the
    // first: before an ending (`end` is then [CLS]), or by an objective with the trait last_first. Sets reader.graph as
    // the run's settings say.
    std::vector<Hypotheses> written(SourceReader& reader, const Sentences& sources, SearchOptions options,
                                    std::uint64_t seed, int end,
                                    const std::function<Start(const Sentence&)>& start) const;

  private:
    // Computes the loss of each prediction of the sentences of this process, in batches that the objective makes.
    void each_measured_batch(const Objective& objective, const Sentences& sentences, const ObjectiveOptions& options,
                             const std::function<void(const Batch&, const Numbers& losses)>& use) const;
    static LikelihoodBound likelihood_bound(const Numbers& bounds, const Numbers& tokens, std::uint64_t seed);
    void forbid_all_but(int end, SearchOptions& options) const;
    bool in_blocks() const;  // whether the objective is block-diffusion
    // Whether the setting canvas is drawn: for this objective, which has the trait `bound`, or for diffusion().
    bool draws_length(const Objective& objective) const;
    bool draws_length() const { return diffusion() && draws_length(*diffusion()); }
    // Whether draws_length(), and the run has a law of the lengths: length_cost() is then a part of -log p.
    bool knows_length(const Objective& objective) const {
        return draws_length(objective) && (counter() || !lengths_.empty());
    }
    // Returns the largest number of places, with one for [SEP].
    int places() const { return common().places(continues()); }
    void count_lengths(const SentenceList& all);
    LengthTable lengths_;
};

}  // namespace masquerade
