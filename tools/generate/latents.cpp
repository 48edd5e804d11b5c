// SPDX-License-Identifier: MIT
#include <algorithm>

#include "input/number.h"
#include "models/runs/univae_run.h"
#include "tools/generate/generate.h"

namespace masquerade {
namespace {

// "A:B" dimensions of the whole latent vector, or "layers:A:B".
struct Slice {
    int from = 0, to = 0;
};
Slice slice_of(const std::string& word, const UniVae& model) {
    const int K = model.options.latent_layers;
    bool layers = word.rfind("layers:", 0) == 0;
    std::string numbers = layers ? word.substr(7) : word;
    int from = 0, to = 0;
    const std::size_t colon = std::min(numbers.find(':'), numbers.size());
    const bool read = read_number(numbers.substr(0, colon), from) &&
                      read_number(numbers.substr(std::min(colon + 1, numbers.size())), to);
    const int most = layers ? K : model.space.numbers();
    if (!read || from < 0 || from >= to || to > most)
        throw BadUsage(text("the slice ", word, " is not A:B with 0 <= A < B <= ", most,
                            layers ? " (latent layers)" : " (dimensions)",
                            "; dimensions are written A:B, layers layers:A:B"));
    return layers ? Slice{model.space.begin(from), model.space.begin(to)} : Slice{from, to};
}

class Generator {
  public:
    Generator(const LatentWriting& a, UniVaeRun& run, const Common& common)
        : a_(a), run_(run), decoder_(run.model, run.special()), seed_(common.seed) {
        const Searching& searching = a.searching;
        const bool language_model = run.model.options.latent_layers == 0;
        if (a.reads() && language_model)
            throw BadUsage(text(searching.folder,
                                " is a language model without latents (latent_layers=0): it can only "
                                "be sampled, with --count"));
        options_ = searching.options_for(run, language_model);
        // A language model has no other source of variety than draws.
        if (language_model && !searching.temperature && options_.beams == 1)
            options_.samples = std::max(1, options_.samples);
        if (!searching.maximum.given()) options_.maximum = run.model.options.max_length;
        const bool draws = !a.reads() || !a.resample.empty();
        if (!draws && (!a.sampling.prior.empty() || a.sampling.latent_temperature))
            throw BadUsage("--prior and --latent-temperature are of drawn latents: of --count and --resample");
        if ((a.reads() || language_model) && a.sampling.refine > 0)
            throw BadUsage("--refine is of samples from latents: it goes with --count alone");
        if (draws) run.choose_prior(a.sampling.prior, a.sampling.latent_temperature);
        for (const std::string& word : {a.resample, a.swap})
            if (!word.empty()) slice_ = slice_of(word, run.model);
    }

    void samples(int count) {
        for (int first = 0; first < count; first += 64) {
            std::vector<DecodeRequest> requests;
            for (auto i = std::uint32_t(first); int(i) < std::min(count, first + 64); i++)
                requests.push_back({run_.draw(seed_, i, 0), i, 0, start_of(run_.draw_length(seed_, i))});
            for (const auto& hypotheses : decoder_.search(std::move(requests), options_, seed_, a_.sampling.refine))
                write_out(a_.searching.line_of(run_, hypotheses) + '\n');
            flush_out();
        }
    }

    // All lines of `lines`, numbered from `first`; a result a line.
    void rewrite(const std::vector<std::string>& lines, std::uint32_t first) {
        std::vector<std::string> left, right;
        for (const std::string& line : lines) {
            std::size_t tab = line.find('\t');
            left.push_back(line.substr(0, tab));
            right.push_back(tab == std::string::npos ? "" : line.substr(tab + 1));
            if ((a_.interpolate || !a_.swap.empty()) && right.back().empty() && !left.back().empty())
                throw BadInput(text("standard input, line ", first + left.size(),
                                    ": expected two sentences with a tab between them"));
        }
        const std::vector<Sentence> sentences = run_.sentences(left), others = run_.sentences(right);
        const auto latents = mean_latents(run_.model, pointers_to(sentences)),
                   other_latents = mean_latents(run_.model, pointers_to(others));
        const int points = a_.interpolate ? a_.points : a_.each;
        std::vector<DecodeRequest> requests;
        for (std::size_t i = 0; i < lines.size(); i++)
            for (int k = 0; k < points; k++) {
                auto line = std::uint32_t(first + i);
                DecodeRequest r{latents[i], line, std::uint32_t(k), start_of(int(sentences[i].ids.size()))};
                if (a_.interpolate)
                    r.latent = run_.model.space.interpolate(latents[i], other_latents[i], double(k) / (points - 1));
                else if (!a_.resample.empty() && run_.prior)
                    r.latent = run_.prior->draw_rest(latents[i], slice_.from, slice_.to, seed_, line, std::uint32_t(k),
                                                     run_.prior_temperature);
                else if (!a_.resample.empty())
                    r.latent =
                        run_.model.space.redrawn(latents[i], slice_.from, slice_.to, seed_, line, std::uint32_t(k));
                else if (!a_.swap.empty()) {
                    std::copy(other_latents[i].begin() + slice_.from, other_latents[i].begin() + slice_.to,
                              r.latent.begin() + slice_.from);
                    run_.model.space.project(r.latent);
                }
                requests.push_back(std::move(r));
            }
        const auto written = decoder_.search(std::move(requests), options_, seed_);
        for (std::size_t r = 0; r < written.size(); r++) {
            const std::size_t line = r / std::size_t(points), k = r % std::size_t(points);
            const std::string result = left[line].empty() ? "" : a_.searching.line_of(run_, written[r]);
            write_out(result + (int(k) + 1 < points ? '\t' : '\n'));
        }
        flush_out();
    }

  private:
    // Where the decoder starts; --length says how long a sentence should become, for models of free length.
    int start_of(int tokens) const {
        const int length = a_.length > 0 ? a_.length + 2 : tokens;
        return run_.model.start_position(length);
    }

    const LatentWriting& a_;
    UniVaeRun& run_;
    UniVaeDecoder decoder_;
    SearchOptions options_;
    std::uint64_t seed_;
    Slice slice_;
};

}  // namespace

void LatentWriting::declare(Options& app) {
    own = app.group("of univae");
    const Option ways[] = {
        own.flag("--reconstruct", reconstruct, "write every input line again"),
        own.value("--resample", resample, "SLICE",
                  "the same with these latents drawn anew, given the others: A:B or layers:A:B"),
        own.value("--swap", swap, "SLICE", "lines A<TAB>B: A with these latents of B"),
        own.flag("--interpolate", interpolate, "lines A<TAB>B: points between them, with tabs"),
    };
    for (const Option& one : ways)
        for (const Option& other : ways)
            if (&one != &other) one.excludes(other);
    own.number("--each", each, 1, 1000, "so many draws of --resample for each line, with tabs between (default: 1)")
        .needs(ways[1]);
    own.number("--points", points, 2, 1000, "points of an interpolation (default: 5)").needs(ways[3]);
    sampling.declare(own);
    own.number("--length", length, 1, 65536,
               "pieces wanted, of a model with free_length=true (default: as sentences of training have)");
}

void LatentWriting::generate(UniVaeRun& run, const Common& common) const {
    if (length > 0 && !run.model.options.free_length)
        throw BadUsage(text("--length is of models with free_length=true; ", searching.folder, " starts to write at ",
                            run.model.options.max_length, " whatever the length"));
    if (const int most = run.model.options.max_length - 2; length > most)
        throw BadUsage(text("--length ", length, " is more than the ", most, " pieces that ", searching.folder,
                            " can write (max_length less [CLS] and [SEP])"));
    if (const int most = run.model.options.max_length; !searching.maximum.given() && searching.search.minimum > most)
        throw BadUsage(text("--minimum ", searching.search.minimum, " is more than the ", most, " tokens that ",
                            searching.folder, " writes (max_length); give --maximum as well"));
    Generator generator(*this, run, common);
    if (reads() && searching.count > 0) throw BadUsage("--count is of samples: it does not go with what reads lines");
    if (!reads()) return generator.samples(searching.count > 0 ? searching.count : 10);
    each_batch_of_lines(
        [&](const std::vector<std::string>& lines, std::uint32_t first) { generator.rewrite(lines, first); });
}

}  // namespace masquerade
