// SPDX-License-Identifier: MIT
// Tests a run of a conditional UniVAE, which is trained on pairs. It writes several targets for each source, which
// depend on the line but not on its neighbours. It reads pairs if latents are encoded. It measures its targets, and
// refuses options that write without a source.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "models/runs/training.h"
#include "models/runs/univae_run.h"
#include "models/runs/writer.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

Strings parts_of(const std::string& all, char between) {
    std::istringstream in(all);
    Strings parts;
    for (std::string part; std::getline(in, part, between);) parts.push_back(part);
    return parts;
}

struct Trained {
    TemporaryFolder folder;
    Strings samples;
    std::unique_ptr<UniVaeRun> run;
    explicit Trained(const Strings& latent) {
        std::string pairs;
        for (const std::string& line : grammar_questions(3, 100)) pairs += line + "\t" + line.substr(0, 20) + "\n";
        folder.write("pairs", pairs);
        NewTraining wanted;
        wanted.words = {"univae",        "pairs=true",         "conditional=true",   "width=16",
                        "heads=2",       "inner=32",           "layers=3",           "latent_layers=2",
                        "warmup=1",      "deviation=0.4",      "vocabulary=120",     "batch_tokens=200",
                        "latent_size=8", "latent_deviation=3", "prior_sentences=60", "precision=f32",
                        "max_length=16"};
        wanted.words.insert(wanted.words.end(), latent.begin(), latent.end());
        wanted.data = folder.file("pairs"), wanted.out = folder.file("run");
        Training training(wanted);
        training.options.steps = 2, training.options.minutes = 0;
        training.trainer().quiet = true;
        training.trainer().run(never);
        run = load_run<UniVaeRun>(folder.file("run"));
    }
    std::string written(Writing how, const Strings& lines, std::uint32_t first = 0) {
        how.run = "RUN";
        return run->writer(how).write(lines, first);
    }
    // Returns the values of all measures, by their keys.
    std::map<std::string, double> measured() const {
        Measuring how;
        how.run = folder.file("run"), how.limit = 6, how.importance = 2, how.samples = 7;
        std::map<std::string, double> found;
        for (const Measure& m : run->measures(how).rows) found[m.key] = m.value;
        return found;
    }
};

}  // namespace

TEST_CASE(
    "conditional run: several targets of a source, whatever its neighbours; pairs are encoded; measures; refusals") {
    Trained t({"latent=vq", "codes=16"});
    const Strings lines = {"how can i clean the old window ?", "", "where is the red bus ?\tthis is not read"};
    Writing three;
    three.count = 3;
    const Strings all = parts_of(t.written(three, lines, 5), '\n');
    REQUIRE(all.size() == 3);
    CHECK(all[1] == "\t\t");
    for (int i : {0, 2}) {
        const Strings targets = parts_of(all[std::size_t(i)], '\t');
        REQUIRE(targets.size() == 3);
        CHECK((targets[0] != targets[1] || targets[1] != targets[2]));
        Writing one;
        CHECK(t.written(one, {lines[std::size_t(i)]}, std::uint32_t(5 + i)) == targets[0] + "\n");
    }
    CHECK(all[0] != all[2]);
    CHECK(t.run->writer(three).samples == 0);

    Writing pairs;
    pairs.reconstruct = true;
    CHECK_SAYS(message_of<BadInput>([&] {
                   t.written(pairs, {"", "no target"}, 3);
               }),
               "standard input, line 5: expected source<TAB>target");
    pairs.reconstruct = false, pairs.codes = true;
    Strings both = {""};
    for (const std::string& line : grammar_questions(4, 20)) both.push_back("where is it ?\t" + line.substr(0, 20));
    const Strings codes = parts_of(t.written(pairs, both), '\n');
    REQUIRE(codes.size() == 21);
    CHECK(codes[0].empty());
    CHECK(std::set<std::string>(codes.begin() + 1, codes.end()).size() > 1);  // the latents depend on the whole pair

    for (const auto& [option, set] : std::initializer_list<std::pair<const char*, void (*)(Writing&)>>{
             {"--swap", [](Writing& w) { w.swap = "0:2"; }},
             {"--interpolate", [](Writing& w) { w.interpolate = true; }},
             {"--from-codes", [](Writing& w) { w.from_codes = true; }}}) {
        Writing how;
        set(how);
        CHECK_SAYS(message_of<BadUsage>([&] { t.written(how, {}); }), text(option, ": RUN has conditional=true"));
    }
    CHECK(t.run->features({"a line"}).empty());

    const std::map<std::string, double> found = t.measured();
    CHECK(found.at("samples") == 7);
    CHECK(found.at("targets_different") > 1);
    CHECK(found.at("targets_different") <= 5);
    CHECK(found.at("targets_self_bleu4") < 100);
    CHECK(found.at("targets_best_bleu4") >= found.at("targets_bleu4"));
    CHECK(found.at("nll") > 0);
    UniVaeSettings alone;
    alone.model.conditional = true;
    CHECK_SAYS(message_of<BadUsage>([&] { alone.net(100); }), "conditional=true needs pairs=true");
}

TEST_CASE("conditional run with a prior of the source: targets are drawn from it; --resample, measures, refusals") {
    Trained t({"latent=gaussian", "source_prior=true"});
    CHECK_FALSE(std::filesystem::exists(UniVaeRun::prior_file(t.run->step_folder)));
    const Strings lines = {"how can i clean the old window ?", "where is the red bus ?"};
    Writing three;
    three.count = 3;
    const Strings all = parts_of(t.written(three, lines, 5), '\n');
    REQUIRE(all.size() == 2);
    for (int i : {0, 1}) {
        const Strings targets = parts_of(all[std::size_t(i)], '\t');
        CHECK((targets[0] != targets[1] || targets[1] != targets[2]));
        CHECK(t.written({}, {lines[std::size_t(i)]}, std::uint32_t(5 + i)) == targets[0] + "\n");
    }
    // The same noise with another source gives other latents.
    const auto latents = [&](std::uint64_t seed, const std::string& line) {
        return t.run->target_requests(t.run->sentences({line}), 1, seed, 7).at(0).latent;
    };
    const Numbers own = latents(1, lines[0]);
    CHECK(own == latents(1, lines[0]));
    CHECK(own != latents(1, lines[1]));
    CHECK(own != latents(2, lines[0]));
    CHECK(own != t.run->model.space.prior(1, 7, 0));

    three.sampling.latent_temperature = 0;  // at temperature 0, every draw is the mean
    const Strings means = parts_of(parts_of(t.written(three, lines, 5), '\n').at(0), '\t');
    CHECK((means[0] == means[1] && means[1] == means[2]));
    Writing pairs;
    pairs.reconstruct = true;
    const Strings line = {lines[0] + "\tthe old window"};
    const std::string reconstructed = t.written(pairs, line);
    pairs.reconstruct = false, pairs.resample = "layers:0:2", pairs.each = 3;
    CHECK(t.written(pairs, line) != reconstructed);

    Writing how;
    how.sampling.prior = "fitted";
    CHECK_SAYS(message_of<BadUsage>([&] { t.written(how, lines); }), "--prior fitted: the run has source_prior=true");
    CHECK_SAYS(message_of<BadUsage>([&] { t.run->fit_prior({}); }), "--fit-prior: the run has source_prior=true");

    const std::map<std::string, double> found = t.measured();
    CHECK(found.at("samples") == 7);
    CHECK(found.at("kl") > 0);
    CHECK(found.at("nll") > 0);
    CHECK(found.at("targets_different") > 1);
}
