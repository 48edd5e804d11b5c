// SPDX-License-Identifier: MIT
// Tests that evaluation, latents, priors and decoding have the same results on the fake device as on the CPU. The fake
// device computes with the CPU's ops, but the host cannot access its memory.
#include "engine/tape/rehearsal.h"
#include "models/tasks/univae_evaluation.h"
#include "tests/cuda/fake_device.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

// A model after a few training steps, loaded twice: `here` on the CPU, `there` on the fake device.
struct Pair {
    TemporaryFolder folder;
    std::unique_ptr<UniVaeRun> here, there;
    std::vector<Sentence> text;

    explicit Pair(const UniVaeSettings& s) {
        TinyRun run(s, RunFolder::create(folder.file("run")), 10);
        run.trainer.run(never);
        run.folder.write("vocab.txt", run.model.tokenizer.vocabulary().lines());
        run.folder.write("run.json", "{}");
        here = load_run<UniVaeRun>(run.folder.path(), false);
        there = load_run<UniVaeRun>(run.folder.path(), false, Device::cuda);
        text = run.model.sentences(grammar_questions(4, 70));
    }
    std::vector<const Sentence*> sentences() const {
        std::vector<const Sentence*> all;
        for (const Sentence& s : text) all.push_back(&s);
        return all;
    }
};

enum class How { greedy, sampled, beams };

std::vector<Tokens> written(const UniVaeRun& run, How how, int refinements, bool graph = true) {
    UniVaeDecoder decoder(run.model, run.special(), graph);
    std::vector<DecodeRequest> requests;
    for (std::uint32_t i = 0; i < 70; i++)  // the decoder writes at most 64 at a time
        requests.push_back({run.draw(3, i, 0), i, 0, run.model.start_position(12)});
    SearchOptions options;
    options.samples = how == How::sampled;
    options.beams = how == How::beams ? 3 : 1;
    return decoder.write(requests, options, 3, refinements);
}

}  // namespace

TEST_CASE("cuda decoding: the numbers and texts of the CPU") {
    for (LatentKind kind : {LatentKind::vmf, LatentKind::gaussian, LatentKind::none}) {
        FakeDevice fake;
        UniVaeSettings s = tiny_settings(kind);
        s.prior_sentences = 100;
        Pair pair(s);
        const UniVae &here = pair.here->model, &there = pair.there->model;
        const auto sentences = pair.sentences();
        CHECK(there.backbone.device() == Device::cuda);

        const HeldOut a = held_out_losses(here, sentences, 2), b = held_out_losses(there, sentences, 2);
        CHECK(a.tokens == b.tokens);
        CHECK(a.own == b.own);
        CHECK(a.mean_path == b.mean_path);
        CHECK(a.other == b.other);
        CHECK(a.kl == b.kl);
        CHECK(a.elbo == b.elbo);
        CHECK((mean_latents(here, sentences) == mean_latents(there, sentences)));

        const bool uses_cuda = fake.control->ways[1] > 0;
        CHECK(uses_cuda);
        CHECK(checksum_of(pair.here->parameters) == checksum_of(pair.there->parameters));
        REQUIRE(pair.here->load_prior());
        REQUIRE(pair.there->load_prior());
        if (kind != LatentKind::none)  // LatentKind::none has no density
            CHECK((importance_weighted_nll(here, sentences, 2, 5) == importance_weighted_nll(there, sentences, 2, 5)));
        for (How how : {How::greedy, How::sampled, How::beams}) {
            const std::vector<Tokens> expected = written(*pair.here, how, 1);
            const int before = fake.control->graphs;
            CHECK((written(*pair.there, how, 1, false) == expected));
            CHECK(fake.control->graphs == before);
            CHECK((written(*pair.there, how, 1) == expected));
            CHECK(fake.control->graphs > before + 10);  // each decoding step is one graph
        }
    }
}

// On the CPU, the search sees all logits. On the device, it sees shortlists, except for samples without top_k.
TEST_CASE("cuda decoding: hypotheses from shortlists have the bits of the CPU") {
    FakeDevice fake;
    Pair pair(tiny_settings(LatentKind::vmf));
    std::vector<SearchOptions> all(5);
    all[1].beams = all[1].n_best = 3, all[1].no_repeat_ngram = 2;
    all[2].beams = 2, all[2].repetition_penalty = 1.3, all[2].minimum = 4;
    all[3].samples = 2, all[3].top_k = 6, all[3].top_p = 0.9, all[3].temperature = 0.8;
    all[4].samples = 2, all[4].top_p = 0.9;
    for (const SearchOptions& options : all) {
        CAPTURE(&options - all.data());
        std::vector<Hypotheses> found[2];
        for (const UniVaeRun* run : {pair.here.get(), pair.there.get()}) {
            UniVaeDecoder decoder(run->model, run->special());
            std::vector<DecodeRequest> requests;
            for (std::uint32_t i = 0; i < 9; i++)
                requests.push_back({pair.here->draw(3, i, 0), i, 0, run->model.start_position(12)});
            found[run == pair.there.get()] = decoder.search(requests, options, 3);
        }
        for (std::size_t i = 0; i < found[0].size(); i++) {
            REQUIRE(found[0][i].size() == found[1][i].size());
            for (std::size_t k = 0; k < found[0][i].size(); k++) {
                CHECK(found[0][i][k].tokens == found[1][i][k].tokens);
                CHECK(found[0][i][k].score == found[1][i][k].score);
                CHECK(found[0][i][k].ended == found[1][i][k].ended);
            }
        }
    }
}

TEST_CASE("cuda decoding: words are written in any order from latents as on the CPU") {
    for (const auto decoder : {UniVaeOptions::Decoder::insertion, UniVaeOptions::Decoder::diffusion}) {
        FakeDevice fake;
        UniVaeSettings s = tiny_settings(LatentKind::gaussian);
        s.model.decoder = decoder;
        const Pair pair(s);
        const auto sentences = pair.sentences();
        const HeldOut a = held_out_losses(pair.here->model, sentences, pair.here->measured_options(2)),
                      b = held_out_losses(pair.there->model, sentences, pair.there->measured_options(2));
        CHECK(a.own == b.own);
        CHECK(a.other == b.other);
        CHECK((written(*pair.here, How::greedy, 1) == written(*pair.there, How::greedy, 1)));
        CHECK(fake.control->ways[1] > 0);
    }
}

TEST_CASE("cuda decoding: a pass that cannot be captured runs op by op, and its memory grows by more than it needs") {
    FakeDevice fake;
    Arena arena(Device::cuda, Blocks::kept);
    Tape tape(arena, DType::f32);
    const float numbers[16] = {1, 2};
    Tensor* x = nullptr;
    int calls = 0;
    auto work = [&] {
        x = tape.constant("x", {16}, DType::f32, numbers);
        if (calls++ == 0) throw Error("a tensor is allocated while a step is captured");
    };
    run_pass(tape, "pass", true, work);
    CHECK(calls == 2);
    CHECK(fake.control->graphs == 0);
    CHECK(OnHost(x->view())[1] == 2);
    tape.end();
    CHECK(arena.planned_bytes() == 64 + 32);
    run_pass(tape, "pass", true, work);
    CHECK(calls == 3);
    CHECK(fake.control->graphs == 1);
    CHECK(OnHost(x->view())[1] == 2);
    tape.end();
    CHECK_SAYS(message_of<Error>([&] { run_pass(tape, "pass", true, [] { throw Error("of another kind"); }); }),
               "of another kind");
    Observer sees_every_op;
    tape.observe(&sees_every_op);
    run_pass(tape, "pass", true, work);
    tape.end();
    CHECK(calls == 4);
    CHECK(fake.control->graphs == 1);
}

TEST_CASE("cuda decoding: a prior is fitted to the same bytes") {
    FakeDevice fake;
    UniVaeSettings s = tiny_settings(LatentKind::vmf);
    s.prior_sentences = 0;
    Pair pair(s);
    std::string bytes[2];
    for (const UniVaeRun* run : {pair.here.get(), pair.there.get()}) {
        const std::string file = pair.folder.file("prior.safetensors");
        fit_prior(run->model, *in_memory(pair.text), 60, 1).save(file, checksum_of(run->parameters));
        bytes[run == pair.there.get()] = read_bytes(file);
    }
    CHECK((bytes[0] == bytes[1]));
}

TEST_CASE("cuda decoding: a language model without latents writes the same") {
    FakeDevice fake;
    UniVaeSettings s = tiny_settings(LatentKind::vmf);
    s.model.latent_layers = 0;
    s.model.backbone.pre_norm = true;
    s.model.backbone.rotary = false;
    Pair pair(s);
    CHECK((written(*pair.here, How::sampled, 0) == written(*pair.there, How::sampled, 0)));
    CHECK((importance_weighted_nll(pair.here->model, pair.sentences(), 1, 5) ==
           importance_weighted_nll(pair.there->model, pair.sentences(), 1, 5)));
}
