// SPDX-License-Identifier: MIT
// How a run that was trained with objective=diffusion writes.
#include <algorithm>
#include <sstream>

#include "engine/base/processes.h"
#include "models/runs/target_run.h"
#include "models/runs/writer.h"
#include "models/writing/unmask_decoder.h"

namespace masquerade {
namespace {

// Returns the hypotheses without their first `given` tokens.
Hypotheses behind(std::size_t given, const std::vector<Written>& samples) {
    Hypotheses all;
    for (const Written& w : samples) all.push_back({{w.tokens.begin() + given, w.tokens.end()}, w.score, w.ended});
    return all;
}

}  // namespace

const Objective* TargetRun::diffusion() const {
    for (const ObjectiveMixture::Part& part : mixture.parts)
        if (part.objective->name == std::string("diffusion")) return part.objective;
    return nullptr;
}

bool TargetRun::unmasks() const { return diffusion() && common().how.diffusion.canvas == DiffusionRule::ends; }

bool TargetRun::unmasks(const SearchOptions& options) const {
    return unmasks() && (!writes() || changed(options.unmask) || options.canvas.threshold > 0);
}

void TargetRun::refuse_unmasking(const SearchOptions& options, bool from_canvas, bool show_rounds) const {
    const char* const option = changed(options.unmask)        ? changed(options.unmask)
                               : options.canvas.threshold > 0 ? "--threshold"
                               : from_canvas                  ? "--canvas"
                               : show_rounds                  ? "--show-rounds"
                                                              : nullptr;
    if (option)
        throw BadUsage(text(
            option, " is an option of runs of objective=diffusion; this run was trained with objective=", objective()));
}

// The number of tokens with which a text begins, if it is continued. They stay, and the continuation lacks them.
std::size_t TargetRun::given_tokens(const Sentence& source) const { return continues() ? source.ids.size() - 1 : 0; }

MaskedCanvas TargetRun::canvas_for(const Sentence& source, const SearchOptions& options) const {
    const DiffusionRule rule = objective_options().diffusion;
    MaskedCanvas c;
    const int given = int(given_tokens(source));
    c.tokens.assign(source.ids.begin() + 1, source.ids.begin() + 1 + given);
    const int places = continues() ? rule.text_places : rule.target_places;
    c.end = tokenizer.vocabulary().sep();
    c.minimum = given + options.minimum;
    c.tokens.resize(places, int(MaskedCanvas::hidden));
    for (int i = given + options.maximum - 1; i < places; i++) c.tokens[i] = c.end;
    return c;
}

MaskedCanvas TargetRun::canvas_of(const std::string& line, std::uint32_t number) const {
    const DiffusionRule rule = objective_options().diffusion;
    MaskedCanvas c;
    Encoder encoder(tokenizer);
    std::istringstream words(line);
    for (std::string word; words >> word;)
        if (word == "[MASK]")
            c.tokens.push_back(MaskedCanvas::hidden);
        else
            encoder.append(word, c.tokens);
    const int places = continues() ? rule.text_places : rule.target_places, n = int(c.tokens.size());
    if (n >= places)
        throw BadInput(text("standard input, line ", number + 1, ": ", n, " tokens, expected at most ", places - 1,
                            " (", continues() ? common().source_limit().setting : common().target_limit().setting,
                            ")"));
    if (std::count(c.tokens.begin(), c.tokens.end(), int(MaskedCanvas::hidden)) == 0)
        throw BadInput(text("standard input, line ", number + 1, ": nothing to write, expected at least one [MASK]"));
    c.end = tokenizer.vocabulary().sep();
    c.minimum = n;
    c.tokens.resize(rule.canvas == DiffusionRule::ends ? places : n + 1, c.end);
    return c;
}

std::vector<std::vector<Written>> TargetRun::unmask(const Sentences& sources, SearchOptions options, std::uint64_t seed,
                                                    std::vector<MaskedCanvas> starts) const {
    for (int id : special_tokens())
        if (id != tokenizer.vocabulary().sep() && id != tokenizer.vocabulary().unk()) options.forbidden.push_back(id);
    if (starts.empty())
        for (const Sentence* s : sources) starts.push_back(canvas_for(*s, options));
    UnmaskDecoder decoder(net(), *diffusion(), objective_options(), continues());
    std::vector<std::vector<Written>> all;
    constexpr std::size_t most_places = 4096;  // in the canvases that are written at a time
    for (std::size_t first = 0; first < sources.size(); first = all.size()) {
        std::vector<MaskedCanvas> some;
        Sentences read;
        for (std::size_t i = first, places = 0; i < sources.size() && (i == first || places < most_places); i++) {
            starts[i].source = int(read.size());
            starts[i].line = std::uint32_t(sources[i]->name);
            read.push_back(sources[i]);
            for (int sample = 0; sample < std::max(1, options.samples); sample++) {
                starts[i].sample = std::uint32_t(sample);
                places += starts[i].tokens.size();
                some.push_back(starts[i]);
            }
        }
        decoder.read(read);
        std::vector<Written> written = unmask_canvases(decoder, std::move(some), options, seed);
        const auto each = written.size() / read.size();
        for (auto w = written.begin(); w != written.end(); w += each) all.emplace_back(w, w + each);
    }
    return all;
}

std::vector<Hypotheses> TargetRun::unmasked(const Sentences& sources, const SearchOptions& options,
                                            std::uint64_t seed) const {
    std::vector<Hypotheses> all;
    for (const std::vector<Written>& samples : unmask(sources, options, seed))
        all.push_back(behind(given_tokens(*sources[all.size()]), samples));
    return all;
}

RunWriter TargetRun::unmask_writer(const Writing& how, const SearchOptions& options) const {
    check_unmasking(options);
    const bool continuing = continues();
    if (how.backward) expect_to_write(true);
    if (how.count > 0 && (!continuing || how.from_canvas))
        throw BadUsage(
            "--count needs a model that samples text; this one writes a target for each line of standard input");
    if (!unmasks() && !how.from_canvas)
        throw BadUsage(
            "this run was trained with canvas=drawn and does not know how long a target is: give lines with a [MASK] "
            "for each token to write (--canvas), or train with canvas=ends");
    if (how.show_rounds && how.scores) throw BadUsage("--show-rounds shows no scores: leave out --scores");
    return {how.count, [=](const Strings& lines, std::uint32_t first) {
                const Split split = at_tabs(lines);
                std::vector<MaskedCanvas> starts;
                for (std::size_t i = 0; i < lines.size() && how.from_canvas; i++)
                    starts.push_back(canvas_of(continuing ? lines[i] : split.right[i], first + std::uint32_t(i)));
                std::vector<Sentence> sources = !continuing       ? sentences(split.left)
                                                : how.from_canvas ? beginnings(Strings(lines.size()))
                                                                  : beginnings(lines);
                for (std::size_t i = 0; i < sources.size(); i++) sources[i].name = int(first + i);
                std::string all;
                std::size_t i = 0;
                for (const auto& samples : unmask(pointers_to(sources), options, how.seed, std::move(starts))) {
                    const std::size_t given = given_tokens(sources[i++]);
                    if (!how.show_rounds) all += how.line_of(*this, behind(given, samples)) + '\n';
                    for (const Written& w : samples)
                        if (how.show_rounds) all += draw_rounds(w, pieces_of(w.tokens), "_") + '\n';
                }
                return all;
            }};
}

}  // namespace masquerade
