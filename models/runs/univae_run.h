// SPDX-License-Identifier: MIT
// A run of UniVAE: its settings, tokenizer, model and fitted prior.
#pragma once
#include "models/runs/run_of.h"
#include "models/runs/slot_settings.h"
#include "models/nets/univae.h"
#include "models/writing/univae_decoder.h"
#include "models/tasks/univae_prior.h"

namespace masquerade {

using DecodeRequests = std::vector<DecodeRequest>;

struct UniVaeSettings : RunSettings {
    static constexpr const char* name = "univae";
    UniVaeOptions model;
    SlotSettings slots;  // used only by Decoder::insertion
    // Comma-separated lists, as the user gives them. latent_sizes: Z, one number for all latents or one for each
    // (setting latent_size). latent_at: the layers that have a latent; empty: the upper layers. kinds_by_layer: the
    // name of the kind of each latent (setting latent_kinds); empty: the same kind for all.
    std::string latent_sizes = "32", latent_at, kinds_by_layer;
    double beta = 1;  // maximum of the weight of the KL in the schedule kl_schedule
    std::string kl_schedule = "linear";
    // The share of the schedule before which latents have almost no noise, and the share over which the noise then
    // grows.
    double noise_from = 0, noise_over = 0;
    double word_dropout = 0;
    bool pairs = false;
    // Maximum number of training sentences to which a prior is fitted after training; 0: no prior is fitted.
    int prior_sentences = 20000;

    UniVaeSettings();
    const char* family() const override { return name; }
    void declare(Config& config) override;
    TextKind wants(TextKind usual) const override { return pairs ? TextKind::pairs : usual; }
    void adopt(const Stacks& stacks) override;
    std::vector<const char*> reading() const override;
    LineLimit source_limit() const override { return {"max_length", model.max_length}; }
    LineLimit target_limit() const override { return {"max_length", model.max_length - 1}; }
    UniVaeOptions net(int vocabulary) const;
};

class UniVaeRun : public RunOf<UniVaeSettings, UniVae> {
  public:
    using RunOf::RunOf;

    Stacks stacks() const override { return {model.options.backbone}; }
    const Backbone* bert() const override { return model.insertion ? nullptr : &model.backbone; }
    LineScores scores(const Strings& lines, int importance, std::uint64_t seed) const override;
    Measures measures(const Measuring& how) override;
    RunWriter writer(const Writing& how) override;
    Vectors vectors(const Strings& lines, const VectorChoice& which) const override;
    std::string fit_prior(const TrainingText& text) override;
    std::unique_ptr<Task> task(const TrainingText& text) override;
    std::string description() const override;
    std::string writing_command(const std::string& folder) const override;

    // Loads the prior that was fitted to the checkpoint of a loaded run, and draws samples from it. Returns false if
    // there is none.
    bool load_prior();
    // Loads the fitted prior, if there is one, for the lengths that it has stored, and leaves `prior` as it is. Only
    // needed with free_length, and does nothing without.
    void know_lengths();
    bool knows_lengths() const { return fitted && fitted->draw_length(0, 0) > 0; }
    // Chooses the prior from which latents are drawn. `word` is what the user gives for --prior:
    //   fitted    loads the fitted prior; throws BadInput if there is none
    //   uniform   uses the prior of training; throws BadUsage if there is also a temperature
    //   ""        if there is a temperature, like fitted; else loads the fitted prior if there is one, and logs a note
    //             if there is none
    //   a path    loads a flow that was trained on the latents of this run (load_flow_prior)
    // The mean of several checkpoints (Run::averaged) has no fitted prior. If the model has no latents, a word or a
    // temperature is refused with BadUsage; without them, nothing is done. If the prior of the model depends on the
    // source, a word is refused with BadUsage, and a temperature scales the deviation from the mean of this prior.
    void choose_prior(const std::string& word, std::optional<double> temperature);
    static std::string prior_file(const std::string& folder) { return folder + "/prior.safetensors"; }
    // Draws the latents of a sample from `prior` or, if it is null, from the prior of training (LatentSpace::prior).
    // The result has the latents of all latent layers, one layer after another.
    Numbers draw(std::uint64_t seed, std::uint32_t line, std::uint32_t number) const;

    // Returns the request for a sample, with drawn latents and with the start position for a drawn length.
    DecodeRequest sample_request(std::uint64_t seed, std::uint32_t line) const {
        return {draw(seed, line, 0), line, 0, model.start_position(draw_length(seed, line))};
    }
    // Draws the numbers [from, to) of the latent vector of each request anew:
    //   from a prior that depends on the source   given the source and the latents of the layers below
    //   from `prior`                              given all other numbers of the vector (LatentPrior::draws_rest)
    //   from the prior of training                given the latents of the layers below (only gaussian_chain uses them)
    void redraw(DecodeRequests& requests, int from, int to, std::uint64_t seed) const;
    // For conditional models: returns requests for `count` targets of each source. The latents of the requests are
    // drawn from the prior. The draws depend on `seed`, on the line number of the source (first + i for sources[i]),
    // and on the index of the target (0 to count - 1).
    DecodeRequests target_requests(const StoredSentences& sources, int count, std::uint64_t seed,
                                   std::uint32_t first) const;

    // Draws the number of tokens of a sample: the length of a random training sentence if knows_lengths(), otherwise
    // `some_length`; max_length if this is less. The number matters only if free_length is true.
    int draw_length(std::uint64_t seed, std::uint32_t line) const;
    static constexpr int some_length = 12;

    UniVaeDecoder::Special special() const;
    // Throws BadUsage if `options` has options of a way of writing that the decoder half does not have.
    void expect_way_of_writing(const SearchOptions& options, bool show_rounds = false) const;
    ObjectiveOptions objective_options() const;
    // The options for held-out losses, with a seed: no words are dropped.
    ObjectiveOptions measured_options(std::uint64_t seed) const;
    // Returns the training sentences as they are encoded to latents. The maximum number of them to whose latents priors
    // are fitted is prior_count().
    SharedSentences encoded_sentences(const TrainingText& text) const {
        return training_sentences(text, model.options.conditional);
    }
    int prior_count() const;

    // The prior from which samples are drawn: the fitted prior, or a flow. Null: the prior of training.
    std::shared_ptr<const LatentPrior> prior;
    // The fitted prior, which draws the lengths of samples, whatever `prior` draws their latents. Null: not loaded.
    std::shared_ptr<const MixturePrior> fitted;
    std::optional<double> prior_temperature;  // temperature of `prior`; empty: its default
    double source_temperature = 1;            // temperature of a prior that depends on the source

  private:
    std::shared_ptr<const MixturePrior> read_prior() const;  // the fitted prior of a loaded run; null: there is none
};

}  // namespace masquerade
