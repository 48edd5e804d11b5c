// SPDX-License-Identifier: MIT
// Tests the fitted prior: its draws, its file, and how a model and a run use it.
#include "models/density/prior.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "engine/ops/cpu/parallel.h"
#include "engine/io/file.h"
#include "engine/io/safetensors.h"
#include "models/runs/univae_run.h"
#include "models/runs/univae_task.h"
#include "tests/normals.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

LatentSpace space_of(LatentKind kind, int layers, int size) {
    LatentOptions o;
    o.kind = kind;
    o.size = size;
    o.kappa = 20;
    return LatentSpace(o, layers);
}

View view_of(const std::vector<float>& numbers, std::int64_t columns) {
    View v;
    v.data = const_cast<float*>(numbers.data());
    v.shape = {std::int64_t(numbers.size()) / columns, columns};
    return v;
}

std::vector<float> normals(std::size_t count, std::uint64_t seed) {
    std::vector<float> all;
    Stream stream = make_stream(seed, "normals", 0);
    for (std::uint32_t i = 0; all.size() < count; i++) {
        FourNormals n = normal4(stream.at(i, 0, 0));
        for (int k = 0; k < 4 && all.size() < count; k++) all.push_back(n[k]);
    }
    return all;
}

// Returns rows (n,D) near a curve. Parts that belong to a sphere are projected onto it.
std::vector<float> codes_of(const LatentSpace& space, int n, std::uint64_t seed) {
    const int D = space.numbers();
    std::vector<float> noise = normals(std::size_t(n * D), seed), rows;
    Sequence random(seed, "curve");
    for (int i = 0; i < n; i++) {
        double t = 6 * random.uniform_double();
        std::vector<double> z;
        for (int j = 0; j < D; j++) z.push_back(std::sin(t + j) + 0.15 * double(noise[std::size_t(i * D + j)]));
        space.project(z);
        rows.insert(rows.end(), z.begin(), z.end());
    }
    return rows;
}

MixturePrior some_prior(const LatentSpace& space, int n = 600) {
    return MixturePrior::fit(space, view_of(codes_of(space, n, 1), space.numbers()), 3);
}

UniVaeSettings small(LatentKind kind, int latent_layers) {
    UniVaeSettings s;
    s.model.backbone.layers = 3;
    s.model.backbone.width = 16;
    s.model.backbone.heads = 2;
    s.model.backbone.inner = 24;
    s.model.backbone.deviation = 0.3;
    s.model.latent.kind = kind;
    s.latent_sizes = "6";
    s.model.latent.kappa = 20;
    s.model.latent_layers = latent_layers;
    s.model.max_length = 12;
    return s;
}

Vocabulary words() {
    std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    for (char c = 'a'; c <= 'z'; c++) tokens.emplace_back(1, c);
    return Vocabulary(tokens);
}

std::vector<std::string> lines(int count, std::uint64_t seed) {
    Sequence random(seed, "lines");
    std::vector<std::string> all;
    for (int i = 0; i < count; i++) {
        std::string line;
        for (std::uint32_t n = 1 + random.below(9); n > 0; n--)
            line += std::string(1, char('a' + random.below(26))) + " ";
        all.push_back(line);
    }
    return all;
}

const LatentKind kinds[] = {LatentKind::vmf, LatentKind::gaussian, LatentKind::none};

}  // namespace

TEST_CASE("prior: draws are points of the space, near codes the nearer the lower the temperature") {
    for (LatentKind kind : kinds) {
        LatentSpace space = space_of(kind, 2, 8);
        std::vector<float> codes = codes_of(space, 600, 1);
        MixturePrior prior = some_prior(space);
        double before = -1;
        for (double temperature : {0.0, 0.5, 1.0}) {
            double distance = 0;
            for (std::uint32_t line = 0; line < 200; line++) {
                std::vector<double> z = prior.draw({5, line, 0, temperature});
                REQUIRE(z.size() == 16);
                for (int l = 0; l < 2 && kind == LatentKind::vmf; l++) {
                    double square = 0;
                    for (int i = 0; i < 8; i++) square += z[std::size_t(l * 8 + i)] * z[std::size_t(l * 8 + i)];
                    CHECK(std::fabs(square - 1) < 1e-12);
                }
                double nearest = INFINITY;
                for (std::size_t n = 0; n < codes.size(); n += 16) {
                    double square = 0;
                    for (std::size_t i = 0; i < 16; i++)
                        square += (z[i] - double(codes[n + i])) * (z[i] - double(codes[n + i]));
                    nearest = std::min(nearest, std::sqrt(square));
                }
                distance += nearest / 200;
            }
            CHECK(distance > before);
            before = distance;
        }
        CHECK(prior.draw({5, 7, 0}) == prior.draw({5, 7, 0, MixturePrior::default_temperature}));
        CHECK(prior.draw({5, 7, 0}) != prior.draw({5, 8, 0}));
        CHECK(prior.draw({5, 7, 0}) != prior.draw({5, 7, 1}));
        CHECK(prior.draw({5, 7, 0}) != prior.draw({6, 7, 0}));
    }
}

TEST_CASE("prior: what is saved comes back, and other files are refused") {
    TemporaryFolder folder;
    const std::string path = folder.file("prior.safetensors");
    for (LatentKind kind : kinds) {
        LatentSpace space = space_of(kind, 2, 8);
        MixturePrior prior = some_prior(space);
        prior.save(path, 77);
        MixturePrior again = MixturePrior::load(path, space, 77);
        for (std::uint32_t line = 0; line < 50; line++) CHECK(prior.draw({1, line, 2}) == again.draw({1, line, 2}));
        CHECK(prior.codes().means() == again.codes().means());
        CHECK(again.draw_length(1, 0) == 0);  // no lengths are known
    }
    LatentSpace sphere = space_of(LatentKind::vmf, 2, 8);
    const std::vector<int> lengths = {3, 9, 5, 5};
    MixturePrior prior = MixturePrior::fit(sphere, view_of(codes_of(sphere, 4, 1), 16), 3, lengths);
    prior.save(path, 77);
    MixturePrior again = MixturePrior::load(path, sphere, 77);
    std::map<int, int> drawn;
    for (std::uint32_t line = 0; line < 4000; line++) {
        drawn[prior.draw_length(1, line)]++;
        CHECK(prior.draw_length(1, line) == again.draw_length(1, line));
    }
    CHECK(drawn.size() == 3);
    for (auto [length, share] : {std::pair(3, 0.25), {5, 0.5}, {9, 0.25}})
        CHECK(std::fabs(drawn[length] / 4000.0 - share) < 0.03);
    LatentSpace space = space_of(LatentKind::none, 2, 8);
    auto refusal = [&](const LatentSpace& s, std::uint64_t model) {
        std::string message = message_of<BadInput>([&] { MixturePrior::load(path, s, model); });
        CHECK_SAYS(message, path);
        return message;
    };
    CHECK_SAYS(refusal(space_of(LatentKind::none, 4, 4), 77), "2 latent layers of 8 numbers, the model has 4 of 4");
    CHECK_SAYS(refusal(space, 78), "fitted to other weights");
    const std::string whole = read_file(path);
    for (std::size_t at = whole.size() / 2; at < whole.size(); at += whole.size() / 11) {
        std::string bytes = whole;
        bytes[at] = char(bytes[at] ^ 16);
        write_file(path, bytes);
        refusal(space, 77);
    }
    write_file(path, whole.substr(0, whole.size() - 100));
    refusal(space, 77);
    write_file(path, "");
    refusal(space, 77);

    // Complete files that contain no valid prior.
    std::vector<double> weights = {0.5, 0.5}, square(256, 0.0);
    std::vector<float> means(32, 0.f);
    Metadata said = {{"layers", "2"}, {"size", "8"}, {"model", "000000000000004d"}};
    auto write = [&](bool with_factor) {
        std::vector<StoredTensor> tensors = {stored("weights", weights),
                                             {"means", Element::f32, {2, 16}, means.data()}};
        if (with_factor) tensors.push_back({"factor", Element::f64, {16, 16}, square.data()});
        write_safetensors(path, tensors, said);
    };
    write(true);
    CHECK_SAYS(refusal(space, 77), "no density");  // the factor is all zeros
    for (std::size_t i = 0; i < 16; i++) square[i * 17] = 1;
    write(true);
    CHECK(MixturePrior::load(path, space, 77).codes().components() == 2);
    said["lengths"] = "0 0 0 4294967295";
    write(true);
    CHECK(MixturePrior::load(path, space, 77).draw_length(1, 0) == 3);
    for (const auto& [numbers, why] :
         {std::pair{"0 0 2147483648 2147483648", "lengths are of 4294967296 sentences, expected at most 4294967295"},
          {"0 4294967296", "lengths hold 4294967296, expected whole numbers"},
          {"3 -1", "lengths hold -1"},
          {"3 x", "lengths hold x"},
          {"99999999999999999999", "lengths hold 99999999999999999999"}}) {
        said["lengths"] = numbers;
        write(true);
        CHECK_SAYS(refusal(space, 77), why);
    }
    said.erase("lengths");
    const LatentSpace vast = space_of(LatentKind::none, 64, 4096);
    said["layers"] = "64", said["size"] = "4096";  // half a terabyte, which the file does not contain
    write(true);
    CHECK_SAYS(refusal(vast, 77), "tensor means is (2,16); (2,262144) is expected");
    said["layers"] = "2", said["size"] = "8";
    write(false);
    CHECK_SAYS(refusal(space, 77), "factor");
    weights = {0.5, 0.6};
    write(true);
    CHECK_SAYS(refusal(space, 77), "sum to 1.1");
    said.erase("layers");
    write(true);
    CHECK_SAYS(refusal(space, 77), "nothing latent layers");
}

TEST_CASE("prior: few codes, equal codes, one code") {
    LatentSpace space = space_of(LatentKind::vmf, 2, 8);
    for (int n : {1, 2, 5, 19, 21}) {
        MixturePrior prior = some_prior(space, n);
        for (double x : prior.draw({1, 0, 0, 1})) CHECK(std::isfinite(x));
    }
    std::vector<float> equal(std::size_t(16 * 40), 0.f);
    for (std::size_t i = 0; i < equal.size(); i += 8) equal[i] = 1;
    MixturePrior prior = MixturePrior::fit(space, view_of(equal, 16), 1);
    std::vector<double> z = prior.draw({1, 0, 0, 1});
    CHECK(z[0] > 0.99);
    CHECK(z[8] > 0.99);
    std::vector<float> three(48, 0.5f);
    CHECK_SAYS(message_of<Error>([&] { MixturePrior::fit(space, view_of(three, 12), 1); }), "(N, 16)");
}

TEST_CASE("prior: a model's is the same for 1, 2 and 5 threads; none without latents or sentences") {
    for (LatentKind kind : kinds) {
        UniVaeRun run(small(kind, 2), words());
        std::vector<Sentence> sentences = run.sentences(lines(300, 1));
        std::vector<MixturePrior> fitted;
        for (int count : {1, 2, 5}) {
            set_threads(count);
            fitted.push_back(fit_prior(run.model, *in_memory(sentences), 200, 4));
        }
        set_threads(0);
        for (const MixturePrior& other : fitted) {
            CHECK(other.codes().means() == fitted[0].codes().means());
            CHECK(other.codes().factor() == fitted[0].codes().factor());
        }
        CHECK(fit_prior(run.model, *in_memory(sentences), 200, 5).codes().means() != fitted[0].codes().means());
        CHECK_SAYS(message_of<BadInput>([&] { fit_prior(run.model, *in_memory({}), 200, 4); }), "no training sentence");
    }
    UniVaeRun plain(small(LatentKind::vmf, 0), words());
    CHECK_SAYS(message_of<BadUsage>([&] { fit_prior(plain.model, *in_memory(plain.sentences(lines(9, 1))), 9, 1); }),
               "latent_layers=0");
}

TEST_CASE("prior: of sentences drawn by the seed, codes are the latents by the mean path") {
    UniVaeRun run(small(LatentKind::gaussian, 2), words());
    const std::vector<Sentence> sentences = run.sentences(lines(20, 1));
    const std::vector<std::vector<double>> latents = mean_latents(run.model, pointers_to(sentences));
    std::set<std::size_t> chosen;
    // The mean of a prior that is fitted to one sentence is the code of this sentence.
    for (std::uint64_t seed = 0; seed < 8; seed++) {
        const std::vector<double> code = fit_prior(run.model, *in_memory(sentences), 1, seed).codes().means();
        const auto found = std::find_if(latents.begin(), latents.end(), [&](const std::vector<double>& each) {
            return std::equal(code.begin(), code.end(), each.begin(), each.end(),
                              [](double a, double b) { return std::fabs(a - b) < 1e-5; });
        });
        REQUIRE(found != latents.end());
        chosen.insert(std::size_t(found - latents.begin()));
    }
    CHECK(chosen.size() > 4);
}

TEST_CASE("prior: a finished run holds it, a loaded one draws from it") {
    TemporaryFolder folder;
    UniVaeSettings settings = small(LatentKind::vmf, 2);
    settings.prior_sentences = 100;
    UniVaeRun run(settings, words());
    UniVaeTask task(run, in_memory(run.sentences(lines(150, 1))), {});
    CHECK(run.draw(1, 2, 3) == run.model.space.prior(1, 2, 3));
    task.finish(folder.path);
    REQUIRE(run.prior);
    CHECK(run.draw(1, 0, 0) == run.prior->draw({1, 0, 0}));
    CHECK(run.draw(1, 0, 0) != run.model.space.prior(1, 0, 0));

    UniVaeRun loaded(settings, words());
    loaded.step_folder = folder.path;
    REQUIRE(loaded.load_prior());  // the weights are the same, because the seed is the same
    CHECK(loaded.draw(1, 0, 0) == run.draw(1, 0, 0));
    loaded.prior_temperature = 1;
    CHECK(loaded.draw(1, 0, 0) != run.draw(1, 0, 0));

    settings.train.seed = 2;
    UniVaeRun other(settings, words());
    other.step_folder = folder.path;
    CHECK_SAYS(message_of<BadInput>([&] { other.load_prior(); }), "fitted to other weights");
    TemporaryFolder empty;
    loaded.step_folder = empty.path;
    CHECK(!loaded.load_prior());
    settings.prior_sentences = 0;
    UniVaeRun none(settings, words());
    UniVaeTask(none, in_memory(none.sentences(lines(150, 1))), {}).finish(empty.path);
    CHECK(!none.prior);
}

TEST_CASE("refined: reads what it wrote and writes it again") {
    UniVaeRun run(small(LatentKind::vmf, 2), words());
    UniVaeDecoder decoder(run.model, run.special());
    std::vector<DecodeRequest> requests;
    for (std::uint32_t i = 0; i < 70; i++) requests.push_back({run.draw(1, i, 0), i, 0, run.model.start_position(12)});
    std::vector<Tokens> plain = decoder.write(requests, {}, 1);
    CHECK(decoder.write(requests, {}, 1, 0) == plain);
    const std::vector<DecodeRequest> drawn = requests;
    std::vector<Tokens> last = plain;
    for (int rounds : {1, 2}) {
        CAPTURE(rounds);
        std::vector<Sentence> sentences;
        for (const Tokens& t : last) {
            sentences.emplace_back();
            sentences.back().ids = {2};
            sentences.back().ids.insert(sentences.back().ids.end(), t.begin(), t.end());
            sentences.back().ids.push_back(3);
        }
        const auto latents = mean_latents(run.model, pointers_to(sentences));
        for (std::size_t i = 0; i < requests.size(); i++) requests[i].latent = latents[i];
        const std::vector<Tokens> again = decoder.write(requests, {}, 1);
        CHECK(decoder.write(drawn, {}, 1, rounds) == again);
        CHECK(again != last);
        last = again;
    }
}
