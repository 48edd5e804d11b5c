// SPDX-License-Identifier: MIT
// Tests latents as files: latents that --vectors saves, and that --from-vectors decodes, must give the very text of
// --reconstruct. The kinds of latents are the rows of latent_kinds(), so a new kind is tested without a change here.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "data/points.h"
#include "engine/tape/trace.h"
#include "models/runs/writer.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

Strings lines_of(const std::string& all) {
    std::istringstream in(all);
    Strings lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

// Writes `lines` in two batches, as ./generate does for long inputs.
std::string written(const RunWriter& writer, const Strings& lines) {
    const auto half = lines.begin() + std::ptrdiff_t(lines.size() / 2);
    std::string all = writer.write({lines.begin(), half}, 0);
    all += writer.write({half, lines.end()}, std::uint32_t(half - lines.begin()));
    writer.finish();
    return all;
}

// Options of a decoder half and of the latents, with which the test runs each kind.
struct Variant {
    const char* name;
    void (*set)(UniVaeSettings& s);
};
const Variant variants[] = {
    {"causal", [](UniVaeSettings&) {}},
    {"free_length", [](UniVaeSettings& s) { s.model.free_length = true; }},
    {"latent_projection=false",
     [](UniVaeSettings& s) {
         s.model.latent.projects = false, s.latent_sizes = std::to_string(s.model.backbone.width);
     }},
    {"latent_norm and sizes by layer", [](UniVaeSettings& s) { s.model.latent.norm = true, s.latent_sizes = "8,16"; }},
    {"insertion", [](UniVaeSettings& s) { s.model.decoder = UniVaeOptions::Decoder::insertion; }},
    {"diffusion", [](UniVaeSettings& s) { s.model.decoder = UniVaeOptions::Decoder::diffusion; }},
};

UniVaeSettings settings_of(LatentKind kind) {
    UniVaeSettings s = tiny_settings(kind);
    s.model.backbone.deviation = 0.4;  // so that the texts depend on all latents
    s.model.latent.out_deviation = 2;
    s.model.latent.groups = 4;
    s.model.latent.codes = 16;
    s.model.max_length = 20;
    return s;
}

// Checks the way through a file. All sentences have the same number of tokens: with free_length, the latents do not
// hold the length of a sentence, so that --from-vectors writes the same text only with --length.
void check_way_back(const UniVaeSettings& s, const TemporaryFolder& folder) {
    const Strings text = grammar_questions(3, 300);
    UniVaeRun run(s, train_vocabulary(text, 200));
    const auto length_of = [&](const std::string& line) { return run.sentences({line})[0].ids.size(); };
    const std::size_t length = length_of(text[0]);
    Strings lines;
    for (const std::string& line : text)
        if (length_of(line) == length && lines.size() < 20) lines.push_back(line);
    REQUIRE(lines.size() > 10);

    Writing how;
    how.run = "RUN";
    how.reconstruct = true;
    const std::string expected = written(run.writer(how), lines);
    const Strings each = lines_of(expected);
    CHECK(std::set<std::string>(each.begin(), each.end()).size() > 5);

    Writing saving;
    saving.vectors = folder.file("latents.npy");
    CHECK(written(neighbour_writer(run, saving), lines).empty());
    Writing reading;
    reading.run = "RUN";
    reading.from_vectors = saving.vectors;
    if (s.model.free_length) reading.length = int(length) - 2;
    const RunWriter writer = run.writer(reading);
    REQUIRE(writer.samples == int(lines.size()));
    CHECK(written(writer, Strings(lines.size())) == expected);

    const Matrix stored = read_vectors(saving.vectors);
    for (std::int64_t row = 0; row < stored.rows; row++) {
        const auto begin = stored.numbers.begin() + row * stored.columns;
        const Numbers latent(begin, begin + stored.columns);
        Numbers decoded = latent;
        run.model.space.project_stored(decoded);  // as the writer does
        CHECK(decoded == latent);
        for (double& number : decoded) number *= 1.01;  // other vectors are moved to the nearest point
        Numbers nearest = decoded;
        run.model.space.project(nearest);
        run.model.space.project_stored(decoded);
        CHECK(decoded == nearest);
    }
}

}  // namespace

TEST_CASE("latents as files: the way back writes what --reconstruct writes, for every kind and every decoder") {
    const TemporaryFolder folder;
    const auto& kinds = latent_kinds();
    for (std::size_t k = 0; k < kinds.size(); k++) {
        CAPTURE(std::string(kinds[k].name));
        for (const Variant& variant : variants) {
            CAPTURE(std::string(variant.name));
            UniVaeSettings s = settings_of(kinds[k].kind);
            variant.set(s);
            const std::string refused = message_of<BadUsage>([&] {
                Parameters parameters;
                UniVae model(parameters, s.net(200));
            });
            if (refused.empty())
                check_way_back(s, folder);
            else  // some kinds read more numbers than they make, and need the linear maps
                CHECK_SAYS(refused, "latent_projection=false: latent=");
        }
        UniVaeSettings two = settings_of(kinds[k].kind);
        two.kinds_by_layer = text(kinds[k].name, ",", kinds[(k + 1) % kinds.size()].name);
        CAPTURE(two.kinds_by_layer);
        check_way_back(two, folder);
    }
}

TEST_CASE("latents as files: samples of a short run with a free length, and the lengths of rows") {
    const Strings text = grammar_questions(3, 100);
    for (const Variant& variant : {variants[0], variants[4], variants[5]})
        for (int longest : {3, 6, 8, 9, 11, 13}) {
            CAPTURE(std::string(variant.name));
            CAPTURE(longest);
            UniVaeSettings s = settings_of(LatentKind::gaussian);
            variant.set(s);
            s.model.free_length = true, s.model.max_length = longest;
            UniVaeRun run(s, train_vocabulary(text, 200));
            CHECK(run.draw_length(1, 0) == std::min(12, longest));
            Writing samples;
            samples.run = "RUN", samples.count = 3;
            written(run.writer(samples), Strings(3));
        }

    UniVaeSettings s = settings_of(LatentKind::gaussian);
    s.model.free_length = true;
    s.prior_sentences = 60;
    UniVaeRun run(s, train_vocabulary(text, 200)), trained(s, train_vocabulary(text, 200));
    const TemporaryFolder folder;
    run.step_folder = folder.path;  // the weights are the same, because the seed is the same
    UniVaeTask(trained, in_memory(trained.sentences(text)), {}).finish(folder.path);
    Matrix rows{8, run.model.space.numbers(), {}};
    for (std::uint32_t i = 0; i < 8; i++) append(rows.numbers, run.draw(1, i, 0));
    Writing decoding;
    decoding.run = "RUN", decoding.from_vectors = "latents", decoding.seed = 7;
    decoding.given_vectors = std::make_shared<const Matrix>(rows);
    const Strings drawn = lines_of(written(run.writer(decoding), Strings(8)));
    CHECK_FALSE(run.prior);
    std::set<int> lengths;
    for (std::uint32_t i = 0; i < 8; i++) {
        decoding.length = trained.draw_length(7, i) - 2;
        lengths.insert(decoding.length);
        CHECK(lines_of(written(run.writer(decoding), Strings(8))).at(i) == drawn.at(i));
    }
    CHECK(lengths.size() > 3);
    decoding.length = 10;
    CHECK(lines_of(written(run.writer(decoding), Strings(8))) != drawn);
}

TEST_CASE("latents as files: a direction of any length is moved to the sphere, and one of zeros is refused") {
    UniVaeRun run(settings_of(LatentKind::vmf), train_vocabulary(grammar_questions(3, 100), 200));
    const LatentSpace& space = run.model.space;
    const Numbers direction = space.prior(1, 2, 0);
    Numbers nearest = direction;
    space.project(nearest);
    for (int exponent : {-900, -30, 30, 900}) {
        CAPTURE(exponent);
        Numbers z = direction;
        for (double& number : z) number = std::ldexp(number, exponent);
        space.project_stored(z);
        CHECK(z == nearest);
    }
    Numbers smallest(std::size_t(space.numbers()), std::numeric_limits<double>::denorm_min());
    space.project(smallest);
    for (double number : smallest) CHECK(std::fabs(number - std::sqrt(1.0 / space.begin(1))) < 1e-12);

    Matrix rows{2, space.numbers(), Numbers(std::size_t(2 * space.numbers()), 0.5)};
    std::fill(rows.numbers.begin() + space.numbers() + space.begin(1), rows.numbers.end(), 0.0);
    Writing decoding;
    decoding.run = "RUN", decoding.from_vectors = "latents";
    decoding.given_vectors = std::make_shared<const Matrix>(rows);
    CHECK_SAYS(message_of<BadInput>([&] { run.writer(decoding); }), "latents: row 1 has only zeros in latent layer 1");
    UniVaeRun any(settings_of(LatentKind::gaussian), train_vocabulary(grammar_questions(3, 100), 200));
    CHECK_NOTHROW(any.writer(decoding));
}

TEST_CASE("latents as files: an empty line has a row, and a file that does not fit is refused") {
    const TemporaryFolder folder;
    UniVaeRun run(settings_of(LatentKind::vmf), train_vocabulary(grammar_questions(3, 100), 200));
    Writing saving;
    saving.vectors = folder.file("latents.npy");
    written(neighbour_writer(run, saving), {"where is it ?", ""});
    const Matrix stored = read_vectors(saving.vectors);
    const int Z = run.model.space.numbers();
    CHECK((stored.rows == 2 && stored.columns == Z));
    CHECK(Numbers(stored.numbers.begin() + Z, stored.numbers.end()) == run.features({""})[0]);

    Writing reading;
    reading.run = "RUN";
    reading.from_vectors = folder.file("other.npy");
    const auto refused = [&](std::int64_t rows, std::int64_t columns, double last) {
        Numbers numbers(std::size_t(rows * columns), 0.5);
        if (!numbers.empty()) numbers.back() = last;
        View view;
        view.data = numbers.data(), view.dtype = DType::f64, view.shape = {rows, columns};
        write_npy(reading.from_vectors, view);
        return message_of<BadInput>([&] { run.writer(reading); });
    };
    CHECK(refused(3, Z, 1) == "");
    CHECK_SAYS(refused(3, Z, NAN), text("other.npy: row 2, column ", Z - 1, " is nan; expected finite numbers"));
    CHECK_SAYS(refused(3, Z, INFINITY), text("other.npy: row 2, column ", Z - 1, " is inf"));
    CHECK_SAYS(refused(3, Z, -1e39), "is -1e+39; expected finite numbers of float32");
    CHECK(refused(3, Z, 3e38) == "");
    CHECK_SAYS(refused(3, Z + 1, 1), text("has 3 rows of ", Z + 1, " numbers, but RUN has latents of ", Z));
    CHECK_SAYS(refused(0, Z, 1), text("other.npy has no rows; expected a row of ", Z, " numbers for each sentence"));
    written(neighbour_writer(run, saving), {});
    CHECK(read_vectors(saving.vectors).rows == 0);
    CHECK(read_vectors(saving.vectors).columns == Z);
}
