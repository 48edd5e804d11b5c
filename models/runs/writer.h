// SPDX-License-Identifier: MIT
// The options of ./generate, and the interface through which it generates text with a run of any family.
#pragma once
#include <functional>

#include "input/npy.h"
#include "models/runs/measures.h"
#include "models/runs/run.h"

namespace masquerade {

struct Writing {
    // For all models: the options that control the search, such as beams, sampling, and rules for the generated tokens.
    std::string run;  // path of the run, for messages
    std::uint64_t seed = 1;
    int count = 0;                      // number of samples; 0: not given
    std::optional<double> temperature;  // 0: no sampling; empty: not given
    SearchOptions search;
    Strings forbidden;
    bool scores = false;

    // Returns the search options for this run. If `count_draws` is true and no temperature is given, a `count` above 0
    // also means that tokens are sampled. Throws BadUsage if options exclude each other.
    SearchOptions options_for(const Run& run, bool count_draws) const;
    // Throws BadUsage if search.minimum is above `longest`, the number of tokens that `setting` lets the run write.
    void expect_room(int longest, const char* setting) const;
    // Returns the texts of the hypotheses of one source, separated by tabs. If `scores` is true, a tab and the score of
    // the hypothesis follow each text.
    std::string line_of(const Run& run, const Hypotheses& hypotheses) const;

    // For runs with latents: how samples are drawn, or how the latents of input lines are changed before the latents
    // are decoded. resample: the slice of the latents that is drawn anew. swap: the slice that is taken from a second
    // sentence. points: number of sentences of an interpolation. each: number of results of --resample per line.
    // length: length in tokens of the generated text, if free_length=true; 0: drawn.
    SampleOptions sampling;
    std::string resample, swap;
    int points = 5, each = 1, length = 0;
    bool reconstruct = false, interpolate = false;
    // For discrete latents. codes: whether to print the codes of input lines. from_codes: whether input lines are
    // codes, which are decoded.
    bool codes = false, from_codes = false;
    std::string from_vectors;  // path of a .npy file whose rows are decoded instead of drawn latents; empty: none
    // The rows that are decoded instead of those of a file; from_vectors is then their name in messages. Null: none.
    std::shared_ptr<const Matrix> given_vectors;
    // For runs that generate token by token: whether input lines are the ends of texts, whose beginnings are generated.
    bool backward = false;
    // For insertion models and masked diffusion: whether input lines contain a canvas (the words to start from), and
    // whether the canvas is shown after every round. search.canvas and search.unmask have further options.
    bool from_canvas = false, show_rounds = false;

    // For finding neighbours instead of generating text (models/runs/neighbours.cpp). nearest: the file whose sentences
    // are searched. vectors: the file for the vectors of the input lines (of a flow: of the samples). Empty: not given.
    // neighbours: how many to find for each line. states: "mean" or "cls", if the vectors are hidden states
    // (VectorChoice::State); empty: the usual vectors. posterior: whether the latents in the file `vectors` are drawn
    // from the posterior.
    std::string nearest, vectors, states;
    int neighbours = 1;
    bool posterior = false;

    bool rewrites() const {
        return reconstruct || interpolate || codes || from_codes || !resample.empty() || !swap.empty();
    }

  private:
    void expect_agreement(bool draws) const;
};

// The number of lines or samples that programs pass to RunWriter::write() at a time.
constexpr std::size_t lines_together = 64;

struct RunWriter {
    int samples = 0;  // number of samples to generate without input lines; 0: input lines are read
    // Returns one result for each line; each result ends with '\n'. Returns "" if only vectors are saved
    // (Writing::vectors). If `samples` is above 0, the results are samples, and `lines` has an empty string for each
    // sample. `first` is the number of the first line or sample.
    std::function<std::string(Strings lines, std::uint32_t first)> write;
    std::function<void()> finish = [] {};  // called after the last line
};

// The parts of input lines before and after their first tab. A line without a tab has an empty right part.
struct Split {
    Strings left, right;
};
Split at_tabs(const Strings& lines);

// Throws BadInput for a line of standard input; `i` is its index, from 0.
template <class... Parts>
[[noreturn]] void refuse_line(std::size_t i, const Parts&... why) {
    throw BadInput("standard input, line ", i + 1, ": ", why...);
}

// Returns a writer for two options. If how.nearest is given, the writer finds the sentences of a corpus that are
// nearest to each input line. If how.vectors is given, it saves the vectors of the input lines. Run::vectors() computes
// the vectors of sentences and lines. Throws BadUsage if the run has no such vectors.
RunWriter neighbour_writer(const Run& run, const Writing& how);

}  // namespace masquerade
