// SPDX-License-Identifier: MIT
// Tests the vectors of lines that are not the usual ones: hidden states of every family with a stack that reads lines,
// and latents that are drawn from their posterior.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "models/masks/mask.h"
#include "models/runs/classify_run.h"
#include "models/runs/insertion_run.h"
#include "models/runs/seq2seq_run.h"
#include "models/runs/training.h"
#include "models/runs/unilm_run.h"
#include "models/runs/writer.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;
using State = VectorChoice::State;

namespace {

const Strings lines = {"where are you?", "what do you think of it?", "", "who?"};

VectorChoice state_choice(State state) {
    VectorChoice which;
    which.state = state;
    return which;
}

VectorChoice draw_choice(std::uint64_t seed, std::uint32_t first = 0) {
    VectorChoice which;
    which.drawn = true, which.seed = seed, which.first_line = first;
    return which;
}

// Returns the last hidden states (n,C) of the first `layers` layers (-1: of all, with the final norm) of a stack that
// sees the n tokens under a full mask.
Numbers states_by_hand(const Backbone& stack, const Tokens& ids, int layers) {
    TokenRows rows;
    for (int i = 0; i < int(ids.size()); i++) rows.push(ids[std::size_t(i)], 0, i, 0);
    const SegmentGraph graph = full_mask({{rows.count(), 0}});
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f32);
    tape.begin("by hand");
    Tensor* x = stack.run(tape, rows, stack.pass(tape, rows, graph), {}, layers);
    return numbers_of((layers < 0 ? stack.finish(tape, x) : x)->view());
}

bool near(const Numbers& a, const Numbers& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](double x, double y) { return std::abs(x - y) <= 1e-5; });
}

template <class IdsOf>
void check_states(const Run& run, const Backbone& stack, IdsOf ids_of, int layers = -1) {
    const std::size_t C = std::size_t(stack.options.width);
    const auto means = run.vectors(lines, state_choice(State::mean)),
               firsts = run.vectors(lines, state_choice(State::cls));
    REQUIRE((means.size() == lines.size() && firsts.size() == lines.size()));
    for (std::size_t i = 0; i < lines.size(); i++) {
        const Numbers x = states_by_hand(stack, ids_of(lines[i]), layers);
        Numbers mean(C);
        for (std::size_t at = 0; at < x.size(); at++) mean[at % C] += x[at] * double(C) / double(x.size());
        CHECK(near(means[i], mean));
        CHECK(near(firsts[i], {x.begin(), x.begin() + std::ptrdiff_t(C)}));
        CHECK(near(firsts[i], means[i]) == (x.size() == C));  // the state of a single token is its own mean
        CHECK(near(run.vectors({lines[i]}, state_choice(State::mean)).at(0), means[i]));
        CHECK(run.vectors({lines[i]}, state_choice(State::cls)).at(0) == firsts[i]);
    }
}

// Makes a run of a family with tiny settings and these.
template <class R>
std::unique_ptr<R> made(const char* family, std::initializer_list<std::pair<const char*, std::string>> given) {
    const Family& kind = find_family(family);
    const std::unique_ptr<RunSettings> settings = tiny(kind);
    Config keys;
    settings->declare(keys);
    for (const auto& [key, value] : given) keys.set(key, value);
    Vocabulary words = learn_vocabulary(*settings, text_for(kind));
    return std::make_unique<R>(static_cast<const decltype(R::settings)&>(*settings), std::move(words));
}

}  // namespace

TEST_CASE("vectors of lines: hidden states of every family, of their stack under its mask") {
    const auto ids_by = [](const auto& run) {
        return [&](const std::string& line) { return run.sentences({line}).at(0).ids; };
    };
    SUBCASE("univae: the layers below the last latent") {
        for (const char* decoder : {"causal", "insertion", "diffusion"}) {
            const auto run = made<UniVaeRun>("univae", {{"latent_layers", "1"}, {"decoder", decoder}});
            check_states(*run, run->model.backbone, ids_by(*run), 2);
        }
    }
    SUBCASE("univae: a latent without a linear map is the state of [CLS]") {
        const auto run =
            made<UniVaeRun>("univae", {{"latent", "none"}, {"latent_projection", "false"}, {"latent_size", "16"}});
        const auto latents = run->features(lines), states = run->vectors(lines, state_choice(State::cls));
        for (std::size_t i = 0; i < lines.size(); i++)
            CHECK(Numbers(latents[i].begin() + 16, latents[i].end()) == states[i]);
    }
    SUBCASE("unilm") {
        const auto run = made<UniLmRun>("unilm", {{"objective", "mlm"}});
        check_states(*run, run->model.backbone, ids_by(*run));
        CHECK(run->features(lines) == run->vectors(lines, state_choice(State::mean)));
    }
    SUBCASE("seq2seq: the encoder") {
        const auto run = made<Seq2SeqRun>("seq2seq", {});
        check_states(*run, run->model.encoder, ids_by(*run));
        CHECK(run->features(lines) == run->vectors(lines, state_choice(State::mean)));
    }
    SUBCASE("insertion: the encoder, or the only stack") {
        for (const char* objective : {"insertion", "insertion-one-stack", "kermit"}) {
            const auto run = made<InsertionRun>("insertion", {{"objective", objective}});
            const EncoderDecoder* two = run->model.two_stacks();
            check_states(*run, two ? two->encoder : run->model.head_stack(), ids_by(*run));
            CHECK(run->features(lines) == run->vectors(lines, state_choice(State::mean)));
        }
    }
    SUBCASE("classify: a line is read as a file") {
        const TemporaryFolder files;
        for (const char* kind : {"a", "b"}) {
            std::filesystem::create_directory(files.file(kind));
            for (int i = 0; i < 40; i++) files.write(text(kind, "/", i), text(kind, " text ", i, kind));
        }
        const auto run = made<ClassifyRun>("classify", {{"task", files.path}});
        check_states(*run, run->model.backbone, [](const std::string& line) {
            Tokens ids = {cls_id};
            for (const char c : line.substr(0, 16)) ids.push_back(first_word + std::uint8_t(c));  // max_length=16
            return ids;
        });
        for (const auto& [key, value] : {std::pair("paired", "true"), {"task", "recall"}})
            CHECK(made<ClassifyRun>("classify", {{"task", files.path}, {key, value}})->features(lines).empty());
    }
}

TEST_CASE("vectors of lines: latents drawn from the posterior, for every kind that has noise") {
    for (const LatentKindRow& kind : latent_kinds()) {
        CAPTURE(std::string(kind.name));
        const auto run = made<UniVaeRun>("univae", {{"latent", kind.name}});
        const auto drawn = run->vectors(lines, draw_choice(1));
        if (!kind.has(LatentKindRow::noise)) {
            CHECK(drawn.empty());
            Writing how;
            how.run = "RUN", how.vectors = "unused.npy", how.posterior = true;
            CHECK_SAYS(message_of<BadUsage>([&] { neighbour_writer(*run, how); }),
                       "--posterior: RUN is a run of univae whose vectors have no noise; expected a univae with one of "
                       "these kinds of latents: vmf, ");
            continue;
        }
        REQUIRE(drawn.size() == lines.size());
        const auto means = run->features(lines), other = run->vectors(lines, draw_choice(2));
        for (std::size_t i = 0; i < lines.size(); i++) {
            CHECK(run->vectors({lines[i]}, draw_choice(1, std::uint32_t(i))).at(0) == drawn[i]);
            CHECK(run->vectors({lines[i]}, draw_choice(1, 7)).at(0) != drawn[i]);
            for (std::size_t z = 0; z < drawn[i].size(); z++) {  // every number has noise
                CHECK(drawn[i][z] != means[i][z]);
                CHECK(drawn[i][z] != other[i][z]);
            }
            Numbers projected = drawn[i];
            run->model.space.project_stored(projected);
            CHECK(projected == drawn[i]);
        }
    }
}

// z = mu + exp(l/2) e, so e can be computed from z, mu and l.
TEST_CASE("vectors of lines: the noise of a Gaussian posterior has the mean 0 and the variance 1") {
    const auto run = made<UniVaeRun>("univae", {{"latent", "gaussian"}, {"latent_layers", "1"}});
    const Strings many = grammar_questions(5, 200);
    const auto drawn = run->vectors(many, draw_choice(3));
    const std::vector<Sentence> sentences = run->sentences(many);
    Numbers y;  // (B,2Z): the means, then the log variances
    each_batch(run->model, pointers_to(sentences), [&](Tape& tape, const Batch& batch, std::size_t) {
        tape.begin("encode");
        for (double each : numbers_of(run->model.encode(tape, batch, nullptr).at(0).y->view())) y.push_back(each);
        tape.end();
    });
    const std::size_t Z = 8;
    double sum = 0, squares = 0;
    const double n = double(many.size() * Z);
    for (std::size_t i = 0; i < many.size(); i++)
        for (std::size_t z = 0; z < Z; z++) {
            const double e = (drawn[i][z] - y[i * 2 * Z + z]) / std::exp(y[i * 2 * Z + Z + z] / 2);
            sum += e / n, squares += e * e / n;
        }
    CHECK(std::abs(sum) < 0.1);  // four standard deviations
    CHECK(std::abs(squares - 1) < 0.15);
}
