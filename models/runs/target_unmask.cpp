// SPDX-License-Identifier: MIT
// How a run that was trained with objective=diffusion, block-diffusion or any-order writes.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <sstream>

#include "engine/base/printable.h"
#include "engine/io/file.h"
#include "models/runs/target_run.h"
#include "models/runs/writer.h"
#include "models/tasks/diffusion_objective.h"
#include "models/writing/unmask_decoder.h"

namespace masquerade {
namespace {

// Returns the hypotheses without their first `given` tokens.
Hypotheses behind(std::size_t given, const std::vector<Written>& samples) {
    Hypotheses all;
    for (const Written& w : samples) all.push_back({{w.tokens.begin() + given, w.tokens.end()}, w.score, w.ended});
    return all;
}

// Calls `write` for the canvases, some at a time, after the decoder has read their sources. The decoder has room for as
// many places in every canvas as the longest canvas of the group has.
void in_groups(UnmaskDecoder& decoder, const Sentences& sources, const StoredCanvases& canvases,
               const std::function<void(StoredCanvases)>& write) {
    constexpr std::size_t most_rows = 4096;  // of a group
    for (std::size_t from = 0, to; from < canvases.size(); from = to) {
        StoredCanvases some;
        Sentences read;
        std::size_t source_rows = 0, longest = 0;
        for (to = from; to < canvases.size(); to++) {
            const Sentence* const source = sources[canvases[to].source];
            const bool is_new = read.empty() || read.back() != source;
            const std::size_t rows = source_rows + (is_new ? source->ids.size() : 0),
                              places = std::max(longest, canvases[to].tokens.size());
            if (to > from && rows + (some.size() + 1) * places > most_rows) break;
            source_rows = rows, longest = places;
            if (is_new) read.push_back(source);
            some.push_back(canvases[to]);
            some.back().source = read.size() - 1;
        }
        decoder.read(read, some.size(), longest);
        write(std::move(some));
    }
}

// The numbers of tokens of a context and of its target without [SEP]. If `text`, the sentence is the target of [CLS].
struct Sizes {
    int context, target;
};
Sizes sizes(const Sentence& s, bool text) {
    if (text) return {1, int(s.ids.size()) - 2};
    return {int(s.ids.size()), int(s.target.size()) - 1};
}

// If several lengths were tried, keeps only the target with the best score a token.
void choose_length(const SearchOptions& o, std::vector<Written>& found) {
    if (o.samples > 0) return;
    int rounds = 0;
    for (const Written& w : found) rounds += w.rounds;
    const auto a_token = [](const Written& w) { return w.score / (w.tokens.size() + 1); };
    found = {*std::max_element(found.begin(), found.end(),
                               [&](const Written& a, const Written& b) { return a_token(a) < a_token(b); })};
    found[0].rounds_of_others = rounds - found[0].rounds;
}

}  // namespace

void TargetRun::refuse_unmasking(const SearchOptions& options, const std::string& why, bool from_canvas,
                                 bool show_rounds) const {
    const char* const option = changed(options.unmask)         ? changed(options.unmask)
                               : options.canvas.threshold >= 0 ? "--threshold"
                               : from_canvas                   ? "--canvas"
                               : show_rounds                   ? "--show-rounds"
                                                               : nullptr;
    if (option && diffusion()) throw BadUsage(option, " is about writing by masked diffusion, but ", why);
    if (option)
        throw BadUsage(option, " is an option of runs of objective=diffusion; this run was trained with objective=",
                       objective());
}

bool TargetRun::in_blocks() const { return diffusion() && diffusion_form(*diffusion()) == DiffusionForm::blocks; }

bool TargetRun::draws_length(const Objective& objective) const {
    return masquerade::draws_length(diffusion_form(objective), common().how.diffusion);
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
    std::vector<LengthRange> ranges;
    for (const Sentence* s : sentences) ranges.push_back({0, common().places(s->target.empty()) - 1});
    const bool text = sentences[0]->target.empty();
    const Vectors laws = length_laws(sentences, text, std::vector<Tokens>(sentences.size()), ranges);
    double sum = 0;
    for (std::size_t i = 0; i < sentences.size(); i++) sum -= laws[i].at(sizes(*sentences[i], text).target);
    return sum / sentences.size();
}

// UnmaskDecoder::missing(), if the run has an objective that trains it; otherwise, returns nothing.
std::vector<Vectors> TargetRun::missing(const Sentences& sentences, bool text, const std::vector<Tokens>& left) const {
    if (!counter() || sentences.empty()) return {};
    UnmaskDecoder decoder(net(), *counter(), objective_options(), text);
    return decoder.missing(sentences, left, tokenizer.vocabulary().sep());
}

// For each sentence, the law of the number of tokens of its target, which begins with given tokens. If `text`, the
// target is that of [CLS].
Vectors TargetRun::length_laws(const Sentences& sentences, bool text, const std::vector<Tokens>& given,
                               const std::vector<LengthRange>& ranges) const {
    Vectors laws;
    const auto missing = this->missing(sentences, text, given);
    for (std::size_t i = 0; i < sentences.size(); i++) {
        if (!counter()) {
            laws.push_back(lengths_.law(sizes(*sentences[i], text).context, ranges[i]));
            continue;
        }
        Numbers scores(given[i].size(), -INFINITY);  // of the tokens that are given and those that are missing
        const Numbers& last = missing[i].back();
        append(scores, last);
        laws.push_back(length_law(scores, ranges[i]));
    }
    return laws;
}

// The numbers of tokens that a target can have, with the tokens that are given. These are never cut.
LengthRange TargetRun::possible_lengths(const Sentence& source, const SearchOptions& o) const {
    const int given = given_tokens(source), most = std::max(given, std::min(places(), given + o.maximum) - 1);
    return {std::min(given + o.minimum, most), most};
}

// `law` is the law of the number of tokens, if the canvas has one place for each.
StoredCanvases TargetRun::canvases_for(const Sentence& s, const Numbers& law, const SearchOptions& o,
                                       std::uint64_t seed) const {
    const int given = given_tokens(s);
    MaskedCanvas c;
    c.end = tokenizer.vocabulary().sep();
    c.tokens.assign(s.ids.begin() + 1, s.ids.begin() + 1 + given);
    if (!draws_length()) {
        c.minimum = given + o.minimum;
        c.tokens.resize(std::min(places(), given + o.maximum - 1), MaskedCanvas::hidden);
        c.tokens.resize(places(), c.end);
        return StoredCanvases(std::max(1, o.samples), c);
    }
    std::vector<int> lengths;
    if (o.samples == 0) lengths = best_lengths(law, std::max(1, o.unmask.lengths));
    for (int i = 0; i < o.samples; i++)
        lengths.push_back(draw_length(law, sampling_draw(seed, s.name, i, 0, "generate.length")));
    StoredCanvases all;
    for (int n : lengths) {
        all.push_back(c);
        all.back().minimum = n;
        all.back().tokens.resize(n, MaskedCanvas::hidden);
        all.back().tokens.push_back(c.end);
        all.back().score = law.at(n);
    }
    return all;
}

// Hides as many tokens before each token of a text as are missing there by the most likely numbers, or by drawn ones.
// `missing` are the results of UnmaskDecoder::missing(). Goes from left to right, as long as there are places left.
StoredCanvases TargetRun::with_gaps(const MaskedCanvas& text, const Vectors& missing, const Sentence& source,
                                    const SearchOptions& o, std::uint64_t seed) const {
    StoredCanvases all(std::max(1, o.samples), text);
    for (std::size_t sample = 0; sample < all.size(); sample++) {
        MaskedCanvas& c = all[sample];
        c.tokens.clear();
        int room = places() - int(text.tokens.size());
        for (std::size_t i = 0; i < text.tokens.size(); i++) {
            const Numbers law = length_law(missing.at(i), {0, room});
            const double u = sampling_draw(seed, source.name, sample, i, "generate.length");
            const int n = o.samples > 0 ? draw_length(law, u) : best_lengths(law, 1).at(0);
            c.tokens.insert(c.tokens.end(), n, MaskedCanvas::hidden);
            c.tokens.push_back(text.tokens[i]);
            c.score += law[n];
            room -= n;
        }
        c.minimum = c.tokens.size() - 1;
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
            refuse_line(number, "found \"", printable(word), "\", expected spaces around each [MASK]");
        else
            encoder.append(word, c.tokens);
    const int n = c.tokens.size();
    if (n >= places())
        refuse_line(number, n, " tokens, expected at most ", places() - 1, " (",
                    continues() ? common().source_limit().setting : common().target_limit().setting, ")");
    if (!counter() && std::count(c.tokens.begin(), c.tokens.end(), MaskedCanvas::hidden) == 0)
        refuse_line(number, "nothing to write, expected at least one [MASK]");
    c.end = tokenizer.vocabulary().sep();
    c.minimum = n;
    c.tokens.resize(draws_length() ? n + 1 : places(), c.end);
    return c;
}

std::vector<std::vector<Written>> TargetRun::unmask(const Sentences& sources, SearchOptions options, std::uint64_t seed,
                                                    const StoredCanvases& starts) const {
    if (options.unmask.lengths > 0 && (!draws_length() || !starts.empty()))
        throw BadUsage(
            "--lengths is of runs with canvas=drawn or any-order, and without --canvas: otherwise, no length has to be "
            "chosen");
    if (in_blocks()) {
        const UnmaskOptions& o = options.unmask;
        if (const char* option = o.block > 0                      ? "--block"
                                 : o.steps > 0                    ? "--steps"
                                 : o.remask != 0                  ? "--remask"
                                 : o.plan != UnmaskOptions().plan ? "--plan"
                                                                  : nullptr)
            throw BadUsage(option, " is of runs of objective=diffusion; this run writes its blocks of ",
                           common().how.diffusion.block,
                           " tokens one after the other, with --per-pass, "
                           "--threshold or --entropy-bound");
        options.unmask.block = common().how.diffusion.block;
    }
    check_unmasking(options);
    forbid_all_but(tokenizer.vocabulary().sep(), options);
    const bool from_laws = draws_length() && starts.empty();
    std::vector<Tokens> given;
    std::vector<LengthRange> ranges;
    for (const Sentence* s : sources) {
        given.emplace_back(s->ids.begin() + 1, s->ids.begin() + 1 + given_tokens(*s));
        ranges.push_back(possible_lengths(*s, options));
    }
    const auto laws = from_laws ? length_laws(sources, continues(), given, ranges) : Vectors(sources.size());
    const auto hides = [&](const MaskedCanvas& c) {
        return !counter() || std::count(c.tokens.begin(), c.tokens.end(), MaskedCanvas::hidden) > 0;
    };
    std::vector<Tokens> left;  // of the texts from which an unknown number of tokens are missing
    for (const MaskedCanvas& c : starts)
        left.push_back(hides(c) ? Tokens() : Tokens(c.tokens.begin(), c.tokens.end() - 1));
    const auto missing = this->missing(left.empty() ? Sentences() : sources, continues(), left);
    StoredCanvases canvases;
    std::vector<std::size_t> ends;  // of the canvases of each source
    for (std::size_t i = 0; i < sources.size(); i++) {
        const auto own = starts.empty()     ? canvases_for(*sources[i], laws[i], options, seed)
                         : hides(starts[i]) ? StoredCanvases(std::max(1, options.samples), starts[i])
                                            : with_gaps(starts[i], missing.at(i), *sources[i], options, seed);
        for (std::size_t sample = 0; sample < own.size(); sample++) {
            canvases.push_back(own[sample]);
            canvases.back().source = i;
            canvases.back().line = sources[i]->name;
            canvases.back().sample = sample;
        }
        ends.push_back(canvases.size());
    }
    UnmaskDecoder decoder(net(), *diffusion(), objective_options(), continues());
    std::vector<Written> written;
    in_groups(decoder, sources, canvases, [&](StoredCanvases some) {
        for (Written& each : unmask_canvases(decoder, std::move(some), options, seed))
            written.push_back(std::move(each));
    });
    std::vector<std::vector<Written>> all;
    for (std::size_t i = 0, from = 0; i < ends.size(); from = ends[i++]) {
        all.emplace_back(written.begin() + from, written.begin() + ends[i]);
        if (from_laws) choose_length(options, all.back());
    }
    return all;
}

LikelihoodBound TargetRun::bound_by_orders(const Objective& objective, const Sentences& all, int orders,
                                           std::uint64_t seed) const {
    const Sentences some = own_part(all, 64);
    const bool text = !all.empty() && all[0]->target.empty();
    const int longest = common().places(text), sep = tokenizer.vocabulary().sep();
    const int block = diffusion_form(objective) == DiffusionForm::blocks ? common().how.diffusion.block : 0;
    StoredCanvases canvases;
    std::vector<Tokens> truths;
    Numbers tokens;  // of each sentence, as they count in the bound
    for (std::size_t i = 0; i < some.size(); i++) {
        const Sentence& s = *some[i];
        MaskedCanvas c;
        c.source = i, c.line = s.name, c.end = sep;
        Tokens truth = text ? Tokens(s.ids.begin() + 1, s.ids.end()) : s.target;
        const int n = truth.size() - 1;
        if (!draws_length(objective)) truth.resize(std::max(n + 1, longest), sep);
        c.tokens.assign(truth.size(), MaskedCanvas::hidden);
        if (draws_length(objective)) c.tokens.back() = sep;
        tokens.push_back(n + !draws_length(objective));
        for (int order = 0; order < orders; order++) {
            c.sample = order;
            canvases.push_back(c);
            truths.push_back(truth);
        }
    }
    UnmaskDecoder decoder(net(), objective, measured_options(), text);
    Numbers log_p;
    in_groups(decoder, some, canvases, [&](StoredCanvases group) {
        const auto first = truths.begin() + log_p.size();
        const std::vector<Tokens> own(first, first + group.size());
        const Numbers found = log_p_in_random_order(decoder, std::move(group), own, block, seed);
        append(log_p, found);
    });
    Numbers bounds;
    for (std::size_t i = 0; i < some.size(); i++) {
        const auto first = log_p.begin() + i * orders;
        const double largest = *std::max_element(first, first + orders);
        double sum = 0;
        for (auto each = first; each < first + orders; each++) sum += std::exp(*each - largest);
        bounds.push_back(std::log(double(orders)) - largest - std::log(sum));
    }
    return likelihood_bound(gather_numbers(bounds), gather_numbers(tokens), seed);
}

std::vector<Hypotheses> TargetRun::unmasked(const Sentences& sources, const SearchOptions& options,
                                            std::uint64_t seed) const {
    std::vector<Hypotheses> all;
    for (const std::vector<Written>& samples : unmask(sources, options, seed))
        all.push_back(behind(given_tokens(*sources[all.size()]), samples));
    return all;
}

RunWriter TargetRun::unmask_writer(const Writing& how, const SearchOptions& options) const {
    const bool continuing = continues();
    if (how.count > 0 && continuing && how.from_canvas) throw BadUsage("--canvas reads lines: leave out --count");
    if (how.count > 0 && !continuing) refuse_count();
    if (!unmasks() && !how.from_canvas)
        throw BadUsage(no_lengths, ": give lines with a [MASK] for each token to write (--canvas)");
    unmask({}, options, how.seed);  // checks the options now, before input lines are read
    if (how.from_canvas && (options.minimum > 0 || options.maximum != longest_target))
        throw BadUsage(options.minimum > 0 ? "--minimum" : "--maximum",
                       counter() ? ": the number of tokens follows from the canvas (--canvas) and the model"
                                 : ": a text has as many tokens as its canvas (--canvas)",
                       ": leave it out");
    // A canvas of a drawn length ends with a visible [SEP]; otherwise, the end may stay unwritten.
    how.expect_room(places() - draws_length(), "max_target, or max_length of a text");
    if (how.show_rounds && how.scores) throw BadUsage("--show-rounds shows no scores: leave out --scores");
    return {how.count, [=, told = false](const Strings& lines, std::uint32_t first) mutable {
                const Split split = at_tabs(lines);
                StoredCanvases starts;
                for (std::size_t i = 0; i < lines.size() && how.from_canvas; i++) {
                    const std::uint32_t number = first + i;
                    if (!continuing && split.left[i] == lines[i])
                        refuse_line(number, "there is no tab, expected source<TAB>words with [MASK]");
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
                StoredSentences sources = continuing ? beginnings(canvas ? Strings(lines.size()) : lines)
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
