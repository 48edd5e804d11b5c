// SPDX-License-Identifier: MIT
// How a run that was trained with objective=diffusion or block-diffusion writes.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "engine/base/printable.h"
#include "engine/io/file.h"
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
        if (part.objective->has(Objective::bound)) return part.objective;
    return nullptr;
}

bool TargetRun::unmasks() const { return diffusion() && (!draws_length() || !lengths_.empty()); }

bool TargetRun::unmasks(const SearchOptions& options) const {
    return unmasks() && (!writes() || changed(options.unmask) || options.canvas.threshold >= 0);
}

void TargetRun::refuse_unmasking(const SearchOptions& options, const std::string& why, bool from_canvas,
                                 bool show_rounds) const {
    const char* const option = changed(options.unmask)         ? changed(options.unmask)
                               : options.canvas.threshold >= 0 ? "--threshold"
                               : from_canvas                   ? "--canvas"
                               : show_rounds                   ? "--show-rounds"
                                                               : nullptr;
    if (option && diffusion()) throw BadUsage(text(option, " is about writing by masked diffusion, but ", why));
    if (option)
        throw BadUsage(text(
            option, " is an option of runs of objective=diffusion; this run was trained with objective=", objective()));
}

// The number of tokens with which a text begins, if it is continued. They stay, and the continuation lacks them.
std::size_t TargetRun::given_tokens(const Sentence& source) const { return continues() ? source.ids.size() - 1 : 0; }

int TargetRun::places() const { return common().places(continues()); }

bool TargetRun::in_blocks() const { return diffusion() && diffusion()->has(Objective::ranks); }

bool TargetRun::draws_length(const Objective& objective) const {
    return !objective.has(Objective::ranks) && common().how.diffusion.canvas == DiffusionRule::drawn;
}
bool TargetRun::draws_length() const { return diffusion() && draws_length(*diffusion()); }

TargetRun::Sizes TargetRun::sizes(const Sentence& s, bool text) const {
    if (text) return {1, int(s.ids.size()) - 2};
    return {int(s.ids.size()), int(s.target.size()) - 1};
}

void TargetRun::count_lengths(const SentenceList& all) {
    for (std::uint64_t i = 0; i < all.size(); i++) {
        const Sentence s = all.at(i);
        const Sizes n = sizes(s, s.target.empty());
        lengths_.add(n.context, n.target);
    }
}

void TargetRun::save_more(const RunFolder& folder) const {
    if (!lengths_.empty()) folder.write("lengths.txt", lengths_.lines());
}

void TargetRun::load_more(const RunFolder& folder) {
    const std::string path = folder.file("lengths.txt");
    if (draws_length() && std::filesystem::exists(path)) lengths_ = LengthTable::read(read_file(path), path);
}

double TargetRun::length_cost(const Sentences& sentences) const {
    double sum = 0;
    for (const Sentence* s : sentences) {
        const bool text = s->target.empty();
        const Sizes n = sizes(*s, text);
        sum -= lengths_.log_p(n.context, n.target, {0, common().places(text) - 1});
    }
    return sum / double(sentences.size());
}

// The numbers of tokens that a target can have, with the tokens that are given. These are never cut.
LengthTable::Range TargetRun::possible_lengths(const Sentence& source, const SearchOptions& o) const {
    const int given = int(given_tokens(source)), most = std::max(given, std::min(places(), given + o.maximum) - 1);
    return {std::min(given + o.minimum, most), most};
}

std::vector<MaskedCanvas> TargetRun::canvases_for(const Sentence& s, const SearchOptions& o, std::uint64_t seed) const {
    const int given = int(given_tokens(s));
    MaskedCanvas c;
    c.end = tokenizer.vocabulary().sep();
    c.tokens.assign(s.ids.begin() + 1, s.ids.begin() + 1 + given);
    if (!draws_length()) {
        c.minimum = given + o.minimum;
        c.tokens.resize(std::min(places(), given + o.maximum - 1), int(MaskedCanvas::hidden));
        c.tokens.resize(places(), c.end);
        return std::vector<MaskedCanvas>(std::max(1, o.samples), c);
    }
    const LengthTable::Range range = possible_lengths(s, o);
    const int context = sizes(s, continues()).context;
    std::vector<int> lengths;
    if (o.samples == 0) lengths = lengths_.best(context, std::max(1, o.unmask.lengths), range);
    for (int i = 0; i < o.samples; i++)
        lengths.push_back(lengths_.draw(
            context, sampling_draw(seed, std::uint32_t(s.name), std::uint32_t(i), 0, "generate.length"), range));
    std::vector<MaskedCanvas> all;
    for (int n : lengths) {
        all.push_back(c);
        all.back().minimum = n;
        all.back().tokens.resize(n, int(MaskedCanvas::hidden));
        all.back().tokens.push_back(c.end);
    }
    return all;
}

MaskedCanvas TargetRun::canvas_of(const std::string& line, std::uint32_t number) const {
    MaskedCanvas c;
    Encoder encoder(tokenizer);
    std::istringstream words(line);
    for (std::string word; words >> word;)
        if (word == "[MASK]")
            c.tokens.push_back(MaskedCanvas::hidden);
        else if (word.find("[MASK]") != word.npos)
            throw BadInput(text("standard input, line ", number + 1, ": found \"", printable(word),
                                "\", expected spaces around each [MASK]"));
        else
            encoder.append(word, c.tokens);
    const int n = int(c.tokens.size());
    if (n >= places())
        throw BadInput(text("standard input, line ", number + 1, ": ", n, " tokens, expected at most ", places() - 1,
                            " (", continues() ? common().source_limit().setting : common().target_limit().setting,
                            ")"));
    if (std::count(c.tokens.begin(), c.tokens.end(), int(MaskedCanvas::hidden)) == 0)
        throw BadInput(text("standard input, line ", number + 1, ": nothing to write, expected at least one [MASK]"));
    c.end = tokenizer.vocabulary().sep();
    c.minimum = n;
    c.tokens.resize(draws_length() ? n + 1 : places(), c.end);
    return c;
}

// Adds log p(n) to the scores of targets whose length n comes from the table. If several lengths were tried, only the
// target with the best score a token is kept.
void TargetRun::choose_length(const Sentence& source, const SearchOptions& o, std::vector<Written>& found) const {
    for (Written& w : found)
        w.score +=
            lengths_.log_p(sizes(source, continues()).context, int(w.tokens.size()), possible_lengths(source, o));
    if (o.samples > 0) return;
    int rounds = 0;
    for (const Written& w : found) rounds += w.rounds;
    const auto a_token = [](const Written& w) { return w.score / double(w.tokens.size() + 1); };
    found = {*std::max_element(found.begin(), found.end(),
                               [&](const Written& a, const Written& b) { return a_token(a) < a_token(b); })};
    found[0].rounds_of_others = rounds - found[0].rounds;
}

std::vector<std::vector<Written>> TargetRun::unmask(const Sentences& sources, SearchOptions options, std::uint64_t seed,
                                                    const std::vector<MaskedCanvas>& starts) const {
    if (options.unmask.lengths > 0 && (!draws_length() || !starts.empty()))
        throw BadUsage(
            "--lengths is of runs with canvas=drawn, and without --canvas: otherwise, no length has to be chosen");
    if (in_blocks()) {
        if (options.unmask.block > 0 || options.unmask.steps > 0)
            throw BadUsage(text(options.unmask.block > 0 ? "--block" : "--steps",
                                " is of runs of objective=diffusion; this run writes its blocks of ",
                                common().how.diffusion.block,
                                " tokens one after the other, with --per-pass, "
                                "--threshold or --entropy-bound"));
        options.unmask.block = common().how.diffusion.block;
    }
    for (int id : special_tokens())
        if (id != tokenizer.vocabulary().sep() && id != tokenizer.vocabulary().unk()) options.forbidden.push_back(id);
    std::vector<MaskedCanvas> canvases;
    std::vector<std::size_t> ends;  // of the canvases of each source
    for (std::size_t i = 0; i < sources.size(); i++) {
        const auto own = starts.empty() ? canvases_for(*sources[i], options, seed)
                                        : std::vector<MaskedCanvas>(std::max(1, options.samples), starts[i]);
        for (std::size_t sample = 0; sample < own.size(); sample++) {
            canvases.push_back(own[sample]);
            canvases.back().source = int(i);
            canvases.back().line = std::uint32_t(sources[i]->name);
            canvases.back().sample = std::uint32_t(sample);
        }
        ends.push_back(canvases.size());
    }
    UnmaskDecoder decoder(net(), *diffusion(), objective_options(), continues());
    std::vector<Written> written;
    for (std::size_t from = 0, to; from < canvases.size(); from = to) {
        constexpr int most_rows = 4096;  // of the sources and canvases that are written at a time
        std::vector<MaskedCanvas> some;
        Sentences read;
        int rows = 0, places = 0;
        for (to = from; to < canvases.size() && rows < most_rows; to++) {
            some.push_back(canvases[to]);
            const Sentence* const source = sources[std::size_t(some.back().source)];
            if (read.empty() || read.back() != source) read.push_back(source), rows += int(source->ids.size());
            some.back().source = int(read.size()) - 1;
            places = std::max(places, int(some.back().tokens.size()));
            rows += int(some.back().tokens.size());
        }
        decoder.read(read, int(some.size()), places);
        for (Written& each : unmask_canvases(decoder, std::move(some), options, seed))
            written.push_back(std::move(each));
    }
    std::vector<std::vector<Written>> all;
    for (std::size_t i = 0, from = 0; i < ends.size(); from = ends[i++]) {
        all.emplace_back(written.begin() + from, written.begin() + ends[i]);
        if (draws_length() && starts.empty()) choose_length(*sources[i], options, all.back());
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
    if (how.count > 0 && continuing && how.from_canvas) throw BadUsage("--canvas reads lines: leave out --count");
    if (how.count > 0 && !continuing) refuse_count();
    if (!unmasks() && !how.from_canvas)
        throw BadUsage(text(no_lengths, ": give lines with a [MASK] for each token to write (--canvas)"));
    unmask({}, options, how.seed);  // checks the options now, before input lines are read
    if (how.show_rounds && how.scores) throw BadUsage("--show-rounds shows no scores: leave out --scores");
    return {how.count, [=, told = false](const Strings& lines, std::uint32_t first) mutable {
                const Split split = at_tabs(lines);
                std::vector<MaskedCanvas> starts;
                for (std::size_t i = 0; i < lines.size() && how.from_canvas; i++) {
                    const std::uint32_t number = first + std::uint32_t(i);
                    if (!continuing && split.left[i] == lines[i])
                        throw BadInput(text("standard input, line ", number + 1,
                                            ": there is no tab, expected source<TAB>words with [MASK]"));
                    starts.push_back(canvas_of(continuing ? lines[i] : split.right[i], number));
                }
                const auto shown = [&](const Sentence& source, const std::vector<Written>& samples) {
                    if (!how.show_rounds) return how.line_of(*this, behind(given_tokens(source), samples));
                    std::string rounds;
                    for (const Written& w : samples)
                        rounds += (&w == &samples[0] ? "" : "\n") + draw_rounds(w, pieces_of(w.tokens), "_");
                    return rounds;
                };
                const bool canvas = how.from_canvas;
                std::vector<Sentence> sources = continuing ? beginnings(canvas ? Strings(lines.size()) : lines)
                                                           : sentences(canvas ? split.left : before_tabs(lines, told));
                return lines_for(std::move(sources), first, continuing || canvas ? 1 : 3, [&](const Sentences& some) {
                    Strings all;
                    for (const auto& samples : unmask(some, options, how.seed, starts))
                        all.push_back(shown(*some[all.size()], samples));
                    return all;
                });
            }};
}

}  // namespace masquerade
