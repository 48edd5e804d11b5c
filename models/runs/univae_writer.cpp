// SPDX-License-Identifier: MIT
#include <algorithm>

#include "input/number.h"
#include "models/runs/univae_run.h"
#include "models/runs/writer.h"

namespace masquerade {
namespace {

// The numbers [from, to) of a latent vector. The user gives such a slice as "A:B", the numbers from A to before B, or
// as "layers:A:B", all numbers of the latent layers from A to before B.
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

class FromLatents : public RunWriter {
  public:
    FromLatents(UniVaeRun& run, const Writing& a) : a_(a), run_(run), decoder_(run.model, run.special()) {
        const int longest = run.model.options.max_length;
        if (a.length > 0 && !run.model.options.free_length)
            throw BadUsage(text("--length needs a model with free_length=true; ", a.run,
                                " starts to write at position ", longest, " for every length"));
        if (a.length > longest - 2)
            throw BadUsage(text("--length ", a.length, " is more than the ", longest - 2, " pieces that ", a.run,
                                " can write (max_length less [CLS] and [SEP])"));
        if (!a.has_maximum && a.search.minimum > longest)
            throw BadUsage(text("--minimum ", a.search.minimum, " is more than the ", longest, " tokens that ", a.run,
                                " writes (max_length); give --maximum as well"));
        const bool language_model = run.model.options.latent_layers == 0;
        if (a.rewrites() && language_model)
            throw BadUsage(text(a.run,
                                " is a language model without latents (latent_layers=0): it can only "
                                "be sampled, with --count"));
        options_ = a.options_for(run, language_model);
        // A language model has no latents that make samples differ, so its tokens are sampled by default.
        if (language_model && !a.temperature && options_.beams == 1) options_.samples = std::max(1, options_.samples);
        if (!a.has_maximum) options_.maximum = longest;
        const bool draws = !a.rewrites() || !a.resample.empty();
        if (!draws && (!a.sampling.prior.empty() || a.sampling.latent_temperature))
            throw BadUsage(
                "--prior and --latent-temperature apply only where latents are drawn: to samples and --resample");
        if ((a.rewrites() || language_model) && a.sampling.refine > 0)
            throw BadUsage("--refine applies only to samples from latents: leave it out here");
        if (draws) run.choose_prior(a.sampling.prior, a.sampling.latent_temperature);
        for (const std::string& word : {a.resample, a.swap})
            if (!word.empty()) slice_ = slice_of(word, run.model);
        if (a.rewrites() && a.count > 0)
            throw BadUsage(
                "--count draws samples and reads no lines: leave out either --count or the option that reads lines");
    }

    int samples() const override { return a_.rewrites() ? 0 : a_.count > 0 ? a_.count : 10; }
    std::string write(std::vector<std::string> lines, std::uint32_t first) override {
        return a_.rewrites() ? rewrite(lines, first) : drawn(std::uint32_t(lines.size()), first);
    }

  private:
    std::string drawn(std::uint32_t count, std::uint32_t first) {
        std::vector<DecodeRequest> requests;
        for (std::uint32_t i = first; i < first + count; i++)
            requests.push_back({run_.draw(a_.seed, i, 0), i, 0, start_of(run_.draw_length(a_.seed, i))});
        std::string written;
        for (const auto& hypotheses : decoder_.search(std::move(requests), options_, a_.seed, a_.sampling.refine))
            written += a_.line_of(run_, hypotheses) + '\n';
        return written;
    }

    // Returns one line of results for each of `lines`; `first` is the number of the first line.
    std::string rewrite(const std::vector<std::string>& lines, std::uint32_t first) {
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
                    r.latent = run_.prior->draw_rest(latents[i], slice_.from, slice_.to, a_.seed, line,
                                                     std::uint32_t(k), run_.prior_temperature);
                else if (!a_.resample.empty())
                    r.latent =
                        run_.model.space.redrawn(latents[i], slice_.from, slice_.to, a_.seed, line, std::uint32_t(k));
                else if (!a_.swap.empty()) {
                    std::copy(other_latents[i].begin() + slice_.from, other_latents[i].begin() + slice_.to,
                              r.latent.begin() + slice_.from);
                    run_.model.space.project(r.latent);
                }
                requests.push_back(std::move(r));
            }
        std::string all;
        const auto written = decoder_.search(std::move(requests), options_, a_.seed);
        for (std::size_t r = 0; r < written.size(); r++) {
            const std::size_t line = r / std::size_t(points), k = r % std::size_t(points);
            const std::string result = left[line].empty() ? "" : a_.line_of(run_, written[r]);
            all += result + (int(k) + 1 < points ? '\t' : '\n');
        }
        return all;
    }

    // Returns the position at which the decoder starts a sentence of `tokens` tokens, with [CLS] and [SEP]. If --length
    // is given, it replaces the number of tokens. The number matters only if free_length is true.
    int start_of(int tokens) const {
        const int length = a_.length > 0 ? a_.length + 2 : tokens;
        return run_.model.start_position(length);
    }

    const Writing a_;
    UniVaeRun& run_;
    UniVaeDecoder decoder_;
    SearchOptions options_;
    Slice slice_;
};

}  // namespace

std::unique_ptr<RunWriter> UniVaeRun::writer(const Writing& how) { return std::make_unique<FromLatents>(*this, how); }

}  // namespace masquerade
