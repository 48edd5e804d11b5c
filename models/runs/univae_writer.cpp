// SPDX-License-Identifier: MIT
#include <algorithm>
#include <sstream>

#include "data/points.h"
#include "engine/base/log.h"
#include "input/index_range.h"
#include "input/input.h"
#include "input/number.h"
#include "models/runs/univae_run.h"
#include "models/runs/writer.h"

namespace masquerade {
namespace {

// Returns the range [from, to) of a latent vector that the user's `word` selects. As in Python, "A:B" selects the
// numbers A to B - 1, and "layers:A:B" selects all numbers of the latent layers A to B - 1.
IndexRange slice_of(const std::string& word, const UniVae& model) {
    const bool layers = word.rfind("layers:", 0) == 0;
    const int most = layers ? model.options.latent_layers : model.space.numbers();
    IndexRange given;
    const bool wrong = read_range(layers ? word.substr(7) : word, given, IndexRange::whole - 1).has_value();
    const int from = given.begin(most), to = given.end(most);
    const auto beyond = [&](int index) { return index != IndexRange::whole && (index > most || index < -most); };
    if (wrong || from >= to || beyond(given.from) || beyond(given.to))
        throw BadUsage(
            "the slice ", word, " is not A:B with numbers of the ", most, layers ? " latent layers" : " dimensions",
            ", A before B; dimensions are written A:B, layers layers:A:B, as in Python: -16: is the last 16");
    return layers ? IndexRange{model.space.begin(from), model.space.begin(to)} : IndexRange{from, to};
}

// Returns a code, the discrete latents of a sentence, as text: the parts of each latent layer, lowest layer first, with
// spaces between parts and " | " between layers, as in "12 250 | 3 77".
std::string text_of(const LatentSpace::Code& code) {
    std::string line;
    for (const std::vector<int>& layer : code) {
        if (!line.empty()) line += " |";
        for (int part : layer) line += (line.empty() ? "" : " ") + std::to_string(part);
    }
    return line;
}

// Parses a code in the form of text_of(). `index` is the index of the line, for messages.
LatentSpace::Code code_in(const std::string& line, const LatentSpace& space, std::size_t index) {
    const auto refuse = [&](const auto&... why) {
        refuse_line(index, why..., "; expected a code as --codes prints it: for each of the ", space.layers(),
                    " latent layers its numbers, with | between layers");
    };
    LatentSpace::Code code;
    std::istringstream all(line);
    for (std::string layer; std::getline(all, layer, '|');) {
        if (code.size() == std::size_t(space.layers())) refuse("there are more than ", code.size(), " layers");
        const Latent& latent = space.layer(code.size());
        std::vector<int>& parts = code.emplace_back();
        std::istringstream words(layer);
        for (std::string word; words >> word;)
            if (int& part = parts.emplace_back(); !read_number(word, part) || part < 0 || part >= latent.code_choices())
                refuse("\"", word, "\" is no number from 0 to ", latent.code_choices() - 1);
        if (int(parts.size()) != latent.code_parts())
            refuse("layer ", code.size() - 1, " has ", parts.size(), " numbers, but ", latent.code_parts(),
                   " are needed");
    }
    if (code.size() != std::size_t(space.layers())) refuse("there are ", code.size(), " layers");
    return code;
}

class FromLatents {
  public:
    FromLatents(UniVaeRun& run, const Writing& a)
        : a_(a),
          run_(run),
          model_(run.model),
          conditional_(model_.options.conditional),
          decoder_(model_, run.special(), run.settings.train.graph) {
        const int longest = model_.options.max_length;
        if (a.length > 0 && !model_.options.free_length)
            throw BadUsage("--length needs a model with free_length=true; ", a.run, " starts to write at position ",
                           longest, " for every length");
        if (a.length > longest - 2)
            throw BadUsage("--length ", a.length, " is more than the ", longest - 2, " pieces that ", a.run,
                           " can write (max_length less [CLS] and [SEP])");
        a.expect_room(longest - 2, "max_length less [CLS] and [SEP]");
        const bool language_model = model_.options.latent_layers == 0;
        if (a.rewrites() && language_model)
            throw BadUsage(a.run,
                           " is a language model without latents (latent_layers=0): it can only "
                           "be sampled, with --count");
        run.expect_way_of_writing(a.search, a.show_rounds);
        if (a.from_canvas)
            throw BadUsage("--canvas needs a run of insertion, or of unilm or seq2seq with objective=diffusion; ",
                           a.run, " is a run of univae, which ",
                           model_.insertion   ? "starts from empty canvases"
                           : model_.unmasks() ? "starts from hidden places"
                                              : "generates from left to right");
        if (a.codes || a.from_codes) expect_codes();
        if (conditional_) expect_sources();
        if (!a.from_vectors.empty()) open_vectors();
        if (a.show_rounds && a.sampling.refine > 0)
            throw BadUsage("--refine writes every text several times, --show-rounds shows one: leave out one of them");
        if (a.show_rounds && a.scores) throw BadUsage("--show-rounds shows no scores: leave out --scores");
        options_ = a.options_for(run, language_model);
        // A language model has no latents that make samples differ, so its tokens are sampled by default. If
        // --temperature is given, it decides; if --beam is above 1, tokens are not sampled.
        if (language_model && !a.temperature && options_.beams == 1) options_.samples = std::max(1, options_.samples);
        // Checks the options now, before lines are read.
        if (model_.insertion || model_.unmasks()) decoder_.search({}, options_, a.seed);
        const bool draws = (!a.rewrites() && a.from_vectors.empty()) || !a.resample.empty();
        if (!draws && (!a.sampling.prior.empty() || a.sampling.latent_temperature))
            throw BadUsage(
                "--prior and --latent-temperature apply only where latents are drawn: to samples and --resample");
        if ((!draws || a.rewrites() || language_model) && a.sampling.refine > 0)
            throw BadUsage("--refine applies only to samples from latents: leave it out here");
        if (draws) run.choose_prior(a.sampling.prior, a.sampling.latent_temperature);
        if (!a.from_vectors.empty()) run.know_lengths();
        if (samples() > 0 && model_.options.free_length && a.length == 0 && !run.knows_lengths())
            log_line("note: the lengths of the training sentences are not known without a fitted prior: every text ",
                     "is written as with --length ", run.draw_length(0, 0) - 2);
        if (!a.resample.empty() && run.prior && !run.prior->draws_rest())
            throw BadUsage("--resample draws some latents given the others, but the flow --prior ", a.sampling.prior,
                           " draws only whole vectors: leave out one of the two options");
        for (const std::string& word : {a.resample, a.swap})
            if (!word.empty()) slice_ = slice_of(word, model_);
        if (a.rewrites() && a.count > 0)
            throw BadUsage(
                "--count draws samples and reads no lines: leave out either --count or the option that reads lines");
    }

    int samples() const {
        return a_.rewrites() || conditional_ ? 0
               : !a_.from_vectors.empty()    ? int(vectors_.rows)
               : a_.count > 0                ? a_.count
                                             : 10;
    }
    std::string write(const Strings& lines, std::uint32_t first) {
        return a_.codes        ? codes_of(lines, first)
               : a_.rewrites() ? rewrite(lines, first)
               : conditional_  ? targets_of(lines, first)
                               : drawn(lines.size(), first);
    }

  private:
    void open_vectors() {
        vectors_ = a_.given_vectors ? *a_.given_vectors : read_vectors(a_.from_vectors);
        const int Z = model_.space.numbers();
        if (model_.options.latent_layers == 0 || vectors_.columns != Z)
            throw BadInput(a_.from_vectors, " has ", vectors_.rows, " rows of ", vectors_.columns, " numbers, but ",
                           a_.run, " has latents of ", Z, "; expected a row of as many for each sentence");
        if (vectors_.rows == 0 && !a_.given_vectors)
            throw BadInput(a_.from_vectors, " has no rows; expected a row of ", Z, " numbers for each sentence");
        if (a_.count > 0) throw BadUsage("--from-vectors writes a sentence for each row: leave out --count");
        for (std::int64_t i = 0; i < vectors_.rows; i++)
            for (int l = 0; l < model_.space.layers(); l++) {
                const auto row = vectors_.numbers.begin() + i * Z;
                const auto begin = row + model_.space.begin(l), end = row + model_.space.begin(l + 1);
                if (model_.space.layer(l).cosines() && std::all_of(begin, end, [](double z) { return z == 0; }))
                    throw BadInput(a_.from_vectors, ": row ", i, " has only zeros in latent layer ", l,
                                   ", to which no point of the sphere is nearest; expected a number that is not 0 ",
                                   "(rows and layers are counted from 0)");
            }
    }

    void expect_codes() const {
        const std::string option = a_.codes ? "--codes" : "--from-codes";
        for (int l = 0; l < model_.space.layers(); l++)
            if (const Latent& latent = model_.space.layer(l); latent.code_parts() == 0)
                throw BadUsage(option, ": ", a_.run, " has latent=", row_of(latent.options.kind).name,
                               run_.settings.kinds_by_layer.empty() ? "" : text(" in latent layer ", l),
                               ", whose latents are no codes; runs with latent=vq or latent=fsq have codes");
        if (a_.from_codes && model_.options.free_length && a_.length == 0)
            throw BadUsage("--from-codes: ", a_.run, " has free_length=true, and a code does not hold the length ",
                           "of its sentence: give --length");
    }

    void expect_sources() const {
        for (const auto& [given, option] : {std::pair(a_.from_codes, "--from-codes"),
                                            {!a_.from_vectors.empty(), "--from-vectors"},
                                            {a_.interpolate, "--interpolate"},
                                            {!a_.swap.empty(), "--swap"},
                                            {a_.length > 0, "--length"}})
            if (given)
                throw BadUsage(option, ": ", a_.run, " has conditional=true, so every target needs a source; ",
                               "expected no option, --count, --reconstruct, --resample or --codes");
    }

    // Returns the two sides of each line. A side without a token, such as one of blanks, is empty.
    Split sides_of(const Strings& lines) const {
        Split split = at_tabs(lines);
        for (Strings* side : {&split.left, &split.right})
            for (std::string& words : *side)
                if (run_.tokenizer.encode(words).empty()) words.clear();
        return split;
    }

    // Returns the sentences whose latents are to be computed: the sentences before the tabs or, in a conditional model,
    // the pairs of source and target. Throws BadInput if a conditional model gets a source without a target.
    StoredSentences encoded(const Split& split, std::uint32_t first) const {
        for (std::size_t i = 0; conditional_ && i < split.left.size(); i++)
            if (!split.left[i].empty() && split.right[i].empty())
                refuse_line(first + i, "expected source<TAB>target, because the latents of ", a_.run,
                            " are those of a pair (conditional=true)");
        return run_.sentences(split.left, conditional_ ? split.right : Strings());
    }

    // Returns a line of text for each source: its targets (--count of them, or one), separated by tabs. The line is
    // empty if the source is empty.
    std::string targets_of(const Strings& lines, std::uint32_t first) {
        const Strings sources = sides_of(lines).left;
        auto requests = run_.target_requests(run_.sentences(sources), std::max(1, a_.count), a_.seed, first);
        return written(sources, std::move(requests), a_.sampling.refine);
    }

    // Returns a line of text for each input line: the code of the sentence before the tab or, in a conditional model,
    // the code of the pair. The line is empty if there is no sentence.
    std::string codes_of(const Strings& lines, std::uint32_t first) const {
        const Split split = sides_of(lines);
        const auto latents = mean_latents(model_, pointers_to(encoded(split, first)));
        std::string all;
        for (std::size_t i = 0; i < lines.size(); i++)
            all += (split.left[i].empty() ? "" : text_of(model_.space.code_of(latents[i]))) + '\n';
        return all;
    }

    std::string drawn(std::uint32_t count, std::uint32_t first) {
        DecodeRequests requests;
        for (std::uint32_t i = first; i < first + count; i++) {
            requests.push_back(run_.sample_request(a_.seed, i));
            if (a_.from_vectors.empty()) continue;
            Numbers& latent = requests.back().latent;
            const auto row = vectors_.numbers.begin() + i * vectors_.columns;
            latent.assign(row, row + vectors_.columns);
            model_.space.project_stored(latent);
        }
        return written(Strings(count, "no empty line"), std::move(requests), a_.sampling.refine);
    }

    // Computes the latents of each line, changes them as the options say, and decodes them. Returns one line of results
    // for each of `lines`; `first` is the number of the first line.
    std::string rewrite(const Strings& lines, std::uint32_t first) {
        const Split split = sides_of(lines);
        const bool two = a_.interpolate || !a_.swap.empty();
        for (std::size_t i = 0; two && i < lines.size(); i++)
            if (split.right[i].empty() && !split.left[i].empty())
                refuse_line(first + i, "expected two sentences with a tab between them");
        const LatentSpace& space = model_.space;
        DecodeRequests own;
        Vectors others;
        if (a_.from_codes)
            for (std::uint32_t i = 0; i < lines.size(); i++)
                own.push_back(
                    {lines[i].empty() ? Numbers(space.numbers()) : space.latent_of(code_in(lines[i], space, first + i)),
                     i, 0, model_.start_position(0)});
        else
            own = reconstructions(model_, pointers_to(encoded(split, first)));
        if (two) others = mean_latents(model_, pointers_to(run_.sentences(split.right)));
        const int points = a_.interpolate ? a_.points : a_.each;
        DecodeRequests requests;
        for (std::size_t i = 0; i < lines.size(); i++)
            for (int k = 0; k < points; k++) {
                DecodeRequest r = own[i];
                r.line += first, r.sample = k;
                if (a_.interpolate)
                    r.latent = space.interpolate(r.latent, others[i], double(k) / (points - 1));
                else if (!a_.swap.empty()) {
                    std::copy(others[i].begin() + slice_.from, others[i].begin() + slice_.to,
                              r.latent.begin() + slice_.from);
                    space.project(r.latent);
                }
                requests.push_back(std::move(r));
            }
        if (!a_.resample.empty()) run_.redraw(requests, slice_.from, slice_.to, a_.seed);
        return written(a_.from_codes ? lines : split.left, std::move(requests), 0);
    }

    // Decodes the requests; every input line has the same number of requests. Returns a line of text for each input
    // line: the results of the line, separated by tabs, or an empty line if the input line is empty. If --length is
    // given, all requests get the start position for this length (only possible with free_length).
    std::string written(const Strings& lines, DecodeRequests requests, int refinements) {
        for (DecodeRequest& r : requests)
            if (a_.length > 0) r.start = model_.start_position(a_.length + 2);
        if (a_.show_rounds) return rounds_of(lines, requests);
        const auto found = decoder_.search(std::move(requests), options_, a_.seed, refinements);
        const std::size_t each = lines.empty() ? 1 : found.size() / lines.size();
        std::string all;
        for (std::size_t r = 0; r < found.size(); r++)
            all += (lines[r / each].empty() ? "" : a_.line_of(run_, found[r])) + ((r + 1) % each ? '\t' : '\n');
        return all;
    }

    // Returns the rounds in which the texts of each request are written. A request whose input line is empty has none.
    std::string rounds_of(const Strings& lines, const DecodeRequests& requests) {
        const std::size_t each = lines.empty() ? 1 : requests.size() / lines.size();
        const auto all = decoder_.in_any_order(requests, options_, a_.seed);
        const char* const hidden = model_.unmasks() ? "_" : "";
        std::string drawn;
        for (std::size_t r = 0; r < all.size(); r++)
            for (const Written& w : all[r])
                if (!lines[r / each].empty()) drawn += draw_rounds(w, run_.pieces_of(w.tokens), hidden) + '\n';
        return drawn;
    }

    const Writing a_;
    UniVaeRun& run_;
    const UniVae& model_;
    const bool conditional_;
    UniVaeDecoder decoder_;
    SearchOptions options_;
    IndexRange slice_;
    Matrix vectors_;  // the rows of the file --from-vectors
};

}  // namespace

RunWriter UniVaeRun::writer(const Writing& how) {
    const auto writer = std::make_shared<FromLatents>(*this, how);
    return {writer->samples(), [=](const Strings& lines, std::uint32_t first) { return writer->write(lines, first); }};
}

}  // namespace masquerade
