// SPDX-License-Identifier: MIT
// ./inspect report: writes a page about a run, with its settings, curves and attention. If the run is a univae with
// latents, the page also has reconstructions, samples and statistics of the latents.
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "data/text.h"
#include "engine/base/log.h"
#include "engine/io/file.h"
#include "models/masks/mask.h"
#include "models/runs/flow_run.h"
#include "models/runs/univae_run.h"
#include "models/scoring/latent_use.h"
#include "models/tasks/univae_evaluation.h"
#include "tools/inspect/inspect.h"
#include "tools/inspect/page.h"
#include "models/runs/attention_maps.h"
#include "models/runs/origin.h"

namespace masquerade {
namespace {

constexpr std::size_t shown = 8;

// Projects vectors onto the two directions in which they vary most (principal components), which the power method
// finds.
Points flattened(Vectors v) {
    const std::size_t D = v.empty() ? 0 : v[0].size();
    const auto dot = [&](const Numbers& a, const Numbers& b) {
        return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    };
    const auto add = [&](Numbers& to, double factor, const Numbers& some) {
        for (std::size_t i = 0; i < D; i++) to[i] += factor * some[i];
    };
    Numbers mean(D);
    for (const Numbers& row : v) add(mean, 1 / double(v.size()), row);
    for (Numbers& row : v) add(row, -1, mean);
    Points places(v.size());
    for (auto [start, coordinate] : {std::pair(1, &Point::first), {2, &Point::second}}) {
        Numbers axis(D);
        for (std::size_t i = 0; i < D; i++) axis[i] = std::cos(double(i + 1) * start);
        for (int round = 0; round < 100; round++) {
            Numbers next(D);
            for (const Numbers& row : v) add(next, dot(row, axis), row);
            const double length = std::sqrt(dot(next, next));
            if (!(length > 0)) break;  // the vectors have no further variance
            for (std::size_t i = 0; i < D; i++) axis[i] = next[i] / length;
        }
        for (std::size_t n = 0; n < v.size(); n++) {
            places[n].*coordinate = dot(v[n], axis);
            add(v[n], -(places[n].*coordinate), axis);
        }
    }
    return places;
}

// Returns the training line whose set of tokens is most similar to `tokens`, by intersection over union.
std::string nearest(const std::vector<Sentence>& train, const Strings& lines, const Tokens& tokens) {
    const std::set<int> own(tokens.begin(), tokens.end());
    double best = -1;
    std::size_t at = 0;
    for (std::size_t i = 0; i < train.size(); i++) {
        const std::set<int> theirs(train[i].ids.begin() + 1, train[i].ids.end() - 1);
        double both = 0;
        for (int id : theirs) both += double(own.count(id));
        const double share = both / std::max(1.0, double(own.size() + theirs.size()) - both);
        if (share > best) best = share, at = i;
    }
    return best < 0 ? "" : lines[at];
}

std::string curves(const std::string& run) {
    std::string all;
    for (const auto& [name, curve] : curves_of(RunFolder::open(run).file("log.jsonl"), "step"))
        if (is_of_model(name) && curve.size() > 1) all += line_chart(name, curve);
    return all;
}

std::string settings(Run& run, const Family& kind) {
    Config now, start;
    const auto defaults = kind.settings();
    defaults->declare(start);
    run.settings_to_change().declare(now);
    std::vector<Strings> rows = {{"setting", "value", "default"}};
    for (const std::string& key : now.keys())
        if (start.value(key) != now.value(key) && key != "precision")
            rows.push_back({key, now.value(key), start.value(key)});
    return table(rows);
}

// Returns those sections of the page that only a model with latents has: two pictures of masks, statistics of the
// latents (if they have a density), scatter plots of the latents of held-out lines, reconstructions of these lines
// (also with one latent of another line), interpolations, samples, and a note about the text.
std::string latents(UniVaeRun& run, const TrainingText& text, const ReportSettings& s, std::uint64_t seed) {
    const UniVae& model = run.model;
    const LatentSpace& space = model.space;
    const Strings& lines = text.held_out;
    const auto sentences = run.sentences(lines), train = run.sentences(text.train);
    const auto all = pointers_to(sentences);
    UniVaeDecoder decoder(model, run.special());
    const Vectors means = mean_latents(model, all);
    const auto write = [&](const Vectors& z, const std::vector<int>& starts) {
        std::vector<DecodeRequest> requests;
        for (std::size_t i = 0; i < z.size(); i++) requests.push_back({z[i], std::uint32_t(i), 0, starts[i]});
        return decoder.write(requests, {}, seed);
    };
    const std::size_t n = std::min(shown, lines.size());
    std::vector<int> starts;
    for (std::size_t i = 0; i < n; i++) starts.push_back(model.start_position(sentences[i].ids.size()));
    const Vectors first(means.begin(), means.begin() + n);
    const bool causal = model.options.decoder == UniVaeOptions::Decoder::causal;
    std::string out = section("Masks", "The halves of a sentence in layers without a latent, and with one.",
                              mask_svg(causal ? "independent" : "A full; B full", 5, 4) +
                                  mask_svg(causal ? "uniae" : "A full; B full sees A[0]", 5, 4));
    if (space.has_density()) {
        const LatentUse use = latent_use(model, all, seed);
        std::vector<std::pair<std::string, double>> kl;
        for (double nats : held_out_losses(model, all, run.measured_options(seed)).layer_kl)
            kl.emplace_back(fmt::format("latent {}, layer {}", kl.size(), model.options.latent_at[kl.size()]), nats);
        out += section(
            "What the latents hold",
            fmt::format(
                "{} of {} numbers vary from sentence to sentence; {:.2f} nats tell sentences apart, of at most {:.2f} that {} sentences can need.",
                use.active, use.units, std::max(0.0, use.mutual_information), std::log(double(all.size())), all.size()),
            bars("KL, nats a sentence", kl));
    }
    const bool labelled = text.held_out_targets.size() == lines.size();
    std::map<std::string, std::vector<std::size_t>> groups;  // indices of lines, by label or length
    for (std::size_t i = 0; i < lines.size(); i++) {
        const std::size_t tokens = sentences[i].ids.size() / 6 * 6;
        groups[labelled ? text.held_out_targets[i] : fmt::format("{:>2} to {} tokens", tokens, tokens + 5)].push_back(
            i);
    }
    std::vector<std::size_t> group(lines.size());
    Strings under(lines.size());
    std::string key;
    std::size_t number = 0;
    for (const auto& [name, members] : groups) {
        for (std::size_t i : members) group[i] = number, under[i] = name + ": " + lines[i];
        key += fmt::format("<span style=\"color:{}\">&#9679;</span> {} &nbsp; ", colour(number++), letters(name));
    }
    std::string maps = scatter("all latents", flattened(means), group, under);
    for (int l = 0; l < space.layers(); l++) {
        Vectors own;
        for (const auto& z : means) own.emplace_back(z.begin() + space.begin(l), z.begin() + space.begin(l + 1));
        maps += scatter(fmt::format("latent {}", l), flattened(own), group, under);
    }
    out += section(
        "Where sentences lie",
        fmt::format(
            "The means of {} sentences along the two directions in which they vary most. Point at one to read it.",
            lines.size()),
        maps + "<p>" + key + "</p>");

    std::vector<Strings> rows = {{"held-out sentence", "written again", "each latent by itself of the next sentence"}};
    const auto again = write(first, starts);
    Strings swapped(n);
    for (int l = 0; l < space.layers(); l++) {
        Vectors z = first;
        for (std::size_t i = 0; i < n; i++)
            std::copy_n(first[(i + 1) % n].begin() + space.begin(l), space.begin(l + 1) - space.begin(l),
                        z[i].begin() + space.begin(l));
        const auto written = write(z, starts);
        for (std::size_t i = 0; i < n; i++)
            swapped[i] += fmt::format("{}z{}: {}", l ? " | " : "", l, run.decode(written[i]));
    }
    for (std::size_t i = 0; i < n; i++) rows.push_back({lines[i], run.decode(again[i]), swapped[i]});
    out += section("Sentences and their latents", "Chosen as the first of the held-out text.", table(rows));

    rows = {{"from", "a quarter", "half", "three quarters", "to"}};
    for (std::size_t i = 0; i + 1 < n; i += 2) {
        Vectors z;
        for (double t : {0.0, 0.25, 0.5, 0.75, 1.0}) z.push_back(space.interpolate(means[i], means[i + 1], t));
        rows.emplace_back();
        for (const Tokens& t : write(z, std::vector<int>(z.size(), starts[i]))) rows.back().push_back(run.decode(t));
    }
    out += section("Between sentences", "Written from points between two means.", table(rows));

    Vectors drawn;
    std::vector<int> lengths;
    for (std::uint32_t i = 0; i < 20; i++)
        drawn.push_back(run.draw(seed, i, 0)), lengths.push_back(model.start_position(run.draw_length(seed, i)));
    rows = {{"sample", text.packed ? "" : "the training line that shares most tokens"}};
    for (const Tokens& t : write(drawn, lengths)) rows.push_back({run.decode(t), nearest(train, text.train, t)});
    return out +
           section("Samples",
                   fmt::format("The first twenty draws of seed {}, none left out, {}.", seed,
                               run.prior ? "from the fitted prior" : "from the prior of training"),
                   table(rows)) +
           (s.data.empty() ? "" : section("Text", "Sentences are of " + s.data + ".", ""));
}

// Returns the section of the page about a flow, which is a model of vectors. The section shows held-out vectors beside
// samples and, if vectors have two numbers, the density.
std::string vectors(FlowRun& run, int limit, std::uint64_t seed) {
    const std::uint64_t count = std::min(std::uint64_t(limit), run.points().held_out());
    Vectors all = run.rows(0, count, true);
    for (std::uint32_t i = 0; i < count; i++) all.push_back(run.draw(seed, i));
    std::vector<std::size_t> group(count, 0);
    group.resize(all.size(), 1);
    Strings under(count, "held out");
    under.resize(all.size(), "sample");
    const bool plane = run.settings.columns == 2;
    Points places;
    for (const Numbers& v : all)
        if (plane) places.emplace_back(v[0], v[1]);
    std::string pictures = scatter("held-out vectors and samples", plane ? places : flattened(all), group, under);
    const auto density = [&](double x, double y) {
        double log_det = 0;
        const Numbers u = run.model.steps.forward({x, y}, log_det);
        return std::exp(log_det - (u[0] * u[0] + u[1] * u[1]) / 2);
    };
    if (plane) {
        places.resize(count);
        pictures += field("density", places, density);
    }
    return section("What the flow has learned",
                   fmt::format("{} held-out vectors (blue) and as many samples of seed {} (red){}", count, seed,
                               plane ? ", and the density: the darker, the larger."
                                     : ", along the two directions in which they vary most."),
                   pictures);
}

}  // namespace

void write_report(const ReportSettings& s, std::uint64_t seed, Device device) {
    const Family& kind = family_of_run(s.run);
    const auto run = kind.load(s.run, false, device);
    auto* const univae = dynamic_cast<UniVaeRun*>(run.get());
    const bool latent = univae && univae->model.options.latent_layers > 0 && !univae->model.options.conditional;
    if (!s.data.empty() && !latent)
        throw BadUsage("--data gives the sentences of a univae with latents and conditional=false; ", s.run,
                       " is none: leave out --data");
    std::string body = section("The run", fmt::format("{}: {}; step {}.", kind.name, run->description(), run->step),
                               settings(*run, kind)) +
                       section("Training", "Over the steps.", curves(s.run));
    TrainingText text = read_again(origin_of(run->run_json, s.run + "/run.json"));
    const Text given = s.data.empty() ? Text() : read_text(s.data);
    // A run of pairs keeps its own pair here, because the lines that are given have labels and no targets.
    const TrainingText one = given.source.empty() || text.origin.pairs
                                 ? first_line(text)
                                 : given_line(given.source[0], TextKind::sentences, "--data");
    if (const std::string pictures = attention_pictures(*kind.load(s.run, false, Device::cpu), one, false);
        !pictures.empty())
        body += attention_section(pictures);
    if (latent) {
        text.held_out_targets.clear();  // the targets of pairs are not labels; only --data has labels
        if (!text.train_targets.empty()) text.train = text.train_targets;
        if (!s.data.empty()) text.held_out = given.source, text.held_out_targets = given.target;
        for (Strings* lines : {&text.held_out, &text.held_out_targets})
            lines->resize(std::min(lines->size(), std::size_t(s.limit)));
        if (text.held_out.empty()) throw BadInput("there is no held-out sentence to show; give --data FILE");
        univae->load_prior();
        body += latents(*univae, text, s, seed);
    }
    if (auto* of = dynamic_cast<FlowRun*>(run.get())) body += vectors(*of, s.limit, seed);
    replace_file(s.out, page(name_of_folder(s.run), body));
    log_line("wrote ", s.out);
}

}  // namespace masquerade
