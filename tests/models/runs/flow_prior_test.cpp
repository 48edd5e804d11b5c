// SPDX-License-Identifier: MIT
// Tests a flow as a prior of the latents of a univae run: the latents that it is trained on, what run.json records,
// resuming, the latents that are drawn from it, and what is refused.
#include "models/runs/flow_prior.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/io/checksum.h"
#include "engine/io/file.h"
#include "models/runs/flow_run.h"
#include "models/runs/origin.h"
#include "models/runs/training.h"
#include "models/runs/writer.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

void train(Training& training, std::int64_t steps) {
    training.options.steps = steps, training.options.minutes = 0;
    training.trainer().quiet = true;
    training.trainer().run(never);
}

// Trains runs in a temporary folder, and returns their paths.
struct Runs {
    TemporaryFolder folder;
    std::string text, pairs;
    Runs() {
        for (const std::string& line : grammar_questions(3, 100))
            text += line + "\n", pairs += line + "\t" + line.substr(0, 20) + "\n";
        folder.write("text", text), folder.write("pairs", pairs);
    }
    std::string run(const std::string& name, Strings words, std::int64_t steps, const std::string& data = "") const {
        NewTraining wanted;
        wanted.words = std::move(words);
        wanted.data = data.empty() ? "" : folder.file(data);
        wanted.out = folder.file(name);
        Training training(wanted);
        train(training, steps);
        return wanted.out;
    }
    std::string univae(const std::string& name, const Strings& more = {"latent=gaussian"},
                       const std::string& data = "text") const {
        Strings words = {"univae",        "width=16",      "heads=2",        "inner=32",          "layers=3",
                         "warmup=1",      "deviation=0.4", "vocabulary=120", "batch_tokens=200",  "latent_layers=2",
                         "latent_size=8", "precision=f32", "max_length=16",  "prior_sentences=60"};
        words.insert(words.end(), more.begin(), more.end());
        return run(name, words, 2, data);
    }
    std::string flow(const std::string& name, const std::string& points, std::int64_t steps = 6) const {
        return run(name,
                   {"flow", "points=" + points, "flow_steps=2", "flow_width=8", "batch_rows=16", "warmup=2",
                    "schedule_start=3", "schedule_steps=8"},
                   steps);
    }
};

std::string written(const std::string& path, Writing how, const Strings& lines, std::uint32_t first = 0) {
    how.run = path;
    return load_run<UniVaeRun>(path)->writer(how).write(lines, first);
}

}  // namespace

TEST_CASE("flow prior: the points are the latents to which the mixture is fitted, and one in ten is held out") {
    const Runs runs;
    const std::string path = runs.univae("run", {"latent=gaussian", "seed=5"});
    const auto run = load_latent_run(path);
    const auto points = latents_as_points(*run, 3);
    CHECK(points->columns == 16);
    CHECK(points->step == 2);
    CHECK(points->hash() == checksum_of(run->parameters));
    CHECK(points->name == path);

    // The latents of all training sentences, each encoded by itself.
    Strings train;
    for (const std::string& line : grammar_questions(3, 100))
        if (make_stream(0, line, 0).key0 % 50 != 0) train.push_back(line);
    std::vector<Numbers> latents;
    for (const std::string& line : train) latents.push_back(run->features({line}).at(0));
    std::vector<Numbers> chosen;
    for (std::size_t i : drawn(train.size(), 60, Sequence(5, "prior.sentences"))) chosen.push_back(latents[i]);
    REQUIRE(points->held_out() == 6);
    std::set<Numbers> held_out, seen;
    for (std::uint64_t i = 0; i < 6; i++) {
        CHECK(points->row(i, true) == chosen[10 * i + 9]);
        held_out.insert(points->row(i, true));
    }
    for (std::uint64_t i = 0; i < 900; i++) seen.insert(points->row(i, false));
    const std::set<Numbers> all(chosen.begin(), chosen.end());
    CHECK(held_out.size() + seen.size() == all.size());
    for (const Numbers& z : seen) CHECK((all.count(z) == 1 && held_out.count(z) == 0));
    // A point depends only on the seed and its number.
    const auto again = latents_as_points(*load_latent_run(path, 2), 3), other = latents_as_points(*run, 4);
    int different = 0;
    for (std::uint64_t i = 20; i > 0; i--) {
        CHECK(points->row(i, false) == again->row(i, false));
        different += points->row(i, false) != other->row(i, false);
    }
    CHECK(different > 10);
}

TEST_CASE("flow prior: run.json records the run; a resumed flow has the bits of a flow without a stop") {
    const Runs runs;
    const std::string path = runs.univae("run"), straight = runs.flow("straight", path);
    const std::string halves = runs.flow("halves", path, 3);
    {
        Training rest(halves, {});
        train(rest, 6);
    }
    const auto flow = load_run<FlowRun>(straight);
    CHECK(bits_of(flow->parameters.values()) == bits_of(load_run<FlowRun>(halves)->parameters.values()));
    CHECK(flow->of_latents());
    CHECK(flow->description() == "2 steps of width 8 on latents of 16 numbers, " + path);
    CHECK(flow->writing_command("FLOW") == "./generate " + path + "/step-000002 --prior FLOW --count 10");
    const nlohmann::json data = nlohmann::json::parse(read_file(straight + "/run.json")).at("data");
    CHECK(data.at("file") == path);
    CHECK(data.at("step") == 2);
    CHECK(data.at("hash") == hexadecimal(checksum_of(load_run<UniVaeRun>(path)->parameters)));
    CHECK(flow->measures(100).at(3).value == 6);  // held-out vectors
}

TEST_CASE("flow prior: a draw depends on seed, line and number; samples are generated and measured") {
    const Runs runs;
    const std::string path = runs.univae("run", {"latent=gaussian", "free_length=true", "max_length=40"}),
                      flow = runs.flow("flow", path);
    const auto run = load_run<UniVaeRun>(path);
    run->load_prior();
    const auto fitted = run->fitted;
    run->choose_prior(flow, {});
    REQUIRE(run->prior != fitted);
    const auto same = load_run<UniVaeRun>(path), uniform = load_run<UniVaeRun>(path);
    same->choose_prior(flow, {});
    uniform->choose_prior("uniform", {});
    CHECK_FALSE(uniform->prior);
    std::set<Numbers> drawn;
    std::set<int> lengths;
    for (std::uint32_t line = 9; line > 0; line--) {
        const Numbers z = run->draw(4, line, 0);
        CHECK(z == load_run<FlowRun>(flow)->draw(4, line));
        for (const std::uint64_t seed : {4, 5})
            for (std::uint32_t number : {0, 1}) drawn.insert(run->draw(seed, line, number));
        CHECK(z == same->draw(4, line, 0));
        lengths.insert(fitted->draw_length(4, line));
        // The lengths are those of training sentences, whatever the latents are drawn from.
        for (const auto& any : {run.get(), same.get(), uniform.get()})
            CHECK(any->draw_length(4, line) == fitted->draw_length(4, line));
    }
    CHECK(drawn.size() == 36);
    CHECK(lengths.size() > 3);
    run->choose_prior(flow, 0);
    CHECK(run->draw(4, 1, 0) == run->draw(5, 2, 1));  // without noise, there is one vector
    run->choose_prior(flow, 0.5);
    CHECK(run->draw(4, 1, 0) == load_run<FlowRun>(flow)->draw(4, 1, 0.5));

    Writing how;
    how.sampling.prior = flow, how.seed = 4;
    const std::string all = written(path, how, {"", "", ""}, 5);
    CHECK(std::count(all.begin(), all.end(), '\n') == 3);
    const std::size_t second = all.find('\n') + 1;
    CHECK(written(path, how, {""}, 6) == all.substr(second, all.find('\n', second) + 1 - second));
    how.sampling.prior = "uniform";
    CHECK(written(path, how, {"", "", ""}, 5) != all);
    Measuring measuring;
    measuring.run = path, measuring.limit = 1, measuring.importance = 1, measuring.samples = 5;
    measuring.sampling.prior = flow;
    const std::vector<Measure> rows = load_run<UniVaeRun>(path)->measures(measuring).rows;
    CHECK(std::any_of(rows.begin(), rows.end(), [](const Measure& m) { return m.key == "samples_perplexity"; }));
}

TEST_CASE("flow prior: a flow is the prior of one call; without a fitted prior, the next one has that of training") {
    const Runs runs;
    const std::string path = runs.univae("run", {"latent=gaussian", "prior_sentences=0"}),
                      flow = runs.flow("flow", path);
    const auto run = load_run<UniVaeRun>(path);
    run->choose_prior(flow, {});
    REQUIRE(run->prior);
    run->choose_prior("", {});
    CHECK_FALSE(run->prior);
}

TEST_CASE("flow prior: the moving average of the weights, bf16, and targets of a conditional model") {
    const Runs runs;
    const std::string path =
        runs.univae("run", {"latent=gaussian", "ema=0.5", "precision=bf16", "pairs=true", "conditional=true"}, "pairs");
    const std::string flow = runs.flow("flow", path, 1);
    const auto run = load_run<UniVaeRun>(path);
    run->choose_prior(flow, {});
    const auto requests = run->target_requests(run->sentences({"is it ?", "who ?"}), 2, 4, 7);
    REQUIRE(requests.size() == 4);
    for (std::uint32_t i = 0; i < 4; i++)
        CHECK(requests[i].latent == load_run<FlowRun>(flow)->draw(4, 7 + i / 2, 1, i % 2));
    // The latents are those of pairs: the targets change them.
    const auto points = latents_as_points(*load_latent_run(path), 1);
    const auto trained = load_latent_run(path);
    const TrainingText text = read_again(origin_of(trained->run_json, "run.json"));
    const auto all = in_memory(trained->sentences(text.train, text.train_targets));
    const std::vector<Sentence> chosen = sentences_for_prior(trained->model, *all, 60, trained->settings.train.seed);
    CHECK(points->row(0, true) == mean_latents(trained->model, {&chosen[9]}).at(0));
    run->average_checkpoints(1);  // the last weights instead of their moving average
    CHECK_SAYS(message_of<BadInput>([&] { run->choose_prior(flow, {}); }), "was trained on latents of the weights");
}

TEST_CASE("flow prior: runs without a density of latents are refused") {
    const Runs runs;
    int able = 0;
    for (const LatentKindRow& kind : latent_kinds()) {
        CAPTURE(std::string(kind.name));
        const std::string path = runs.univae(kind.name, {text("latent=", kind.name)});
        const std::string said = message_of<BadUsage>([&] { load_latent_run(path); });
        const bool codes = kind.kind == LatentKind::vq || kind.kind == LatentKind::fsq;
        const bool sphere = kind.kind == LatentKind::vmf || kind.kind == LatentKind::power_spherical;
        able += said.empty();
        CHECK(said.empty() == !(codes || sphere));
        if (!said.empty())
            CHECK_SAYS(said, text("the latents of latent=", kind.name, codes ? " are codes" : " lie on a sphere"));
        if (sphere) CHECK_SAYS(said, "expected a run with latent=gaussian, gaussian_chain, flow, none");
    }
    CHECK(able == 4);
    const auto refuses = [&](const std::string& path, const std::string& why) {
        CHECK_SAYS(message_of<BadUsage>([&] { runs.flow("refused", path); }), why);
    };
    refuses(runs.univae("mixed", {"latent_kinds=gaussian,vq"}), "the latents of latent=vq are codes");
    refuses(runs.univae("plain", {"latent_layers=0"}), "a language model without latents");
    refuses(runs.univae("source", {"latent=gaussian", "pairs=true", "conditional=true", "source_prior=true"}, "pairs"),
            "the run has source_prior=true");
    refuses(runs.flow("moons", "moons", 1), "is a run of flow; expected a run of univae");
    CHECK_SAYS(message_of<BadInput>([&] { load_latent_run(runs.folder.path); }), runs.folder.path);
}

TEST_CASE("flow prior: a flow of other weights, other runs, and slices are refused") {
    const Runs runs;
    const std::string path = runs.univae("run"), other = runs.univae("other", {"latent=gaussian", "seed=9"});
    const std::string flow = runs.flow("flow", path, 1), moons = runs.flow("moons", "moons", 1);
    const auto run = load_run<UniVaeRun>(path), stranger = load_run<UniVaeRun>(other);
    for (const auto& [prior, why] : {std::pair(runs.folder.file("none"), "there is no run "),
                                     {other, "other is a run of univae"},
                                     {moons, "moons was trained on moons, not on latents of a run"}}) {
        const std::string said = message_of<BadUsage>([&, word = prior] { run->choose_prior(word, {}); });
        CHECK_SAYS(said, why);
        CHECK_SAYS(said, "expected fitted, uniform or a run of ./train flow points=RUN");
    }
    const std::string said = message_of<BadInput>([&] { stranger->choose_prior(flow, {}); });
    CHECK_SAYS(said, "flow was trained on latents of the weights " + hexadecimal(checksum_of(run->parameters)));
    CHECK_SAYS(said, "has the weights " + hexadecimal(checksum_of(stranger->parameters)));
    CHECK_SAYS(message_of<BadUsage>([&] { run->choose_prior("uniform", 1); }), "leave out --prior uniform");
    Writing how;
    how.sampling.prior = flow, how.resample = "0:4";
    CHECK_SAYS(message_of<BadUsage>([&] { written(path, how, {"is it ?"}); }),
               "--resample draws some latents given the others, but the flow --prior " + flow);
    run->choose_prior(flow, {});
    CHECK_SAYS(message_of<Error>([&] { run->prior->draw_rest({}, 0, 4, {1, 1, 1}); }), "draws whole codes");
}

TEST_CASE("flow prior: if the weights of the run change, or the run is gone, the flow is refused") {
    namespace fs = std::filesystem;
    const Runs runs;
    const std::string path = runs.univae("run"), flow = runs.flow("flow", path, 3);
    const auto refused = [&](const std::string& why) {
        Measuring measuring;
        measuring.run = flow;
        Writing writing;
        CHECK_SAYS(message_of<BadInput>([&] { Training(flow, {}); }), why);
        CHECK_SAYS(message_of<BadInput>([&] { load_run<FlowRun>(flow)->measures(measuring); }), why);
        CHECK_SAYS(message_of<BadInput>([&] { load_run<FlowRun>(flow)->writer(writing); }), why);
    };
    {
        Training more(path, {});  // the run goes on, and keeps the step
        train(more, 3);
        CHECK(load_run<FlowRun>(flow)->measures(10).at(3).value == 6);  // also while the run trains
    }
    fs::rename(path + "/step-000002", runs.folder.file("step"));
    refused("no longer has step 2");
    fs::rename(path, runs.folder.file("elsewhere"));
    refused("run is gone: the flow was trained on the latents of this run");
    fs::rename(runs.univae("other", {"latent=gaussian", "seed=9"}), path);
    refused("but the flow was trained on latents of the weights ");

    // The prior needs only the weights, wherever they are.
    fs::remove_all(path);
    fs::rename(runs.folder.file("step"), runs.folder.file("elsewhere/step-000002"));
    Writing how;
    how.sampling.prior = flow;
    CHECK_FALSE(written(runs.folder.file("elsewhere/step-000002"), how, {""}).empty());
    CHECK_SAYS(message_of<BadInput>([&] { written(runs.folder.file("elsewhere"), how, {""}); }),
               "was trained on latents of the weights");
}
