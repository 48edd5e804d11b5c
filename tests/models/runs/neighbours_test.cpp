// SPDX-License-Identifier: MIT
// Tests the nearest sentences of a corpus by the vectors of a run, and the file of these vectors, for every family that
// has vectors.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "input/input.h"
#include "models/runs/training.h"
#include "models/runs/writer.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
    const auto dot = [](const auto& u, const auto& v) {
        return std::inner_product(u.begin(), u.end(), v.begin(), 0.0);
    };
    return dot(a, b) / std::sqrt(dot(a, a) * dot(b, b));
}

std::unique_ptr<Run> fresh(const Family& kind) {
    const std::unique_ptr<RunSettings> settings = tiny(kind);
    return kind.fresh(*settings, learn_vocabulary(*settings, text_for(kind)), DType::f32, Device::cpu);
}

}  // namespace

TEST_CASE("neighbours: every family finds the nearest sentences by its vectors and saves them, or has none") {
    const TemporaryFolder folder;
    const std::vector<std::string> corpus = grammar_questions(7, 30);
    std::string file;
    for (const std::string& line : corpus) file += line + "\ta target\n\n";
    folder.write("corpus", file);
    std::vector<std::string> lines = {corpus[5], grammar_questions(8, 1)[0], "", corpus[11] + "\tanother target"};
    int found = 0;
    for (const Family& kind : families()) {
        CAPTURE(std::string(kind.name));
        const std::unique_ptr<Run> run = fresh(kind);
        Writing how;
        how.run = "RUN";
        how.nearest = folder.file("corpus");
        how.neighbours = 3;
        if (run->features({"a"}).empty()) {
            CHECK_SAYS(message_of<BadUsage>([&] { neighbour_writer(*run, how); }),
                       text("--nearest: RUN is a run of ", kind.name, " that has no vectors of lines"));
            continue;
        }
        found++;
        std::string expected;
        lines[3] = corpus[11];
        const auto theirs = run->features(corpus), ours = run->features(lines);
        lines[3] += "\tanother target";
        for (std::size_t i = 0; i < lines.size(); i++) {
            std::vector<std::size_t> order(corpus.size());
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
                return cosine(ours[i], theirs[a]) > cosine(ours[i], theirs[b]) + 1e-12;
            });
            for (std::size_t k = 0; k < 3 && !lines[i].empty(); k++)
                expected +=
                    fmt::format("{}{}\t{:.4f}", k ? "\t" : "", corpus[order[k]], cosine(ours[i], theirs[order[k]]));
            expected += '\n';
        }
        CHECK(neighbour_writer(*run, how).write(lines, 0) == expected);
        CHECK(expected.find(corpus[5] + "\t1.0000\t") == 0);

        how.nearest = "";
        how.vectors = folder.file("vectors.npy");
        const auto writer = neighbour_writer(*run, how);
        CHECK(writer.write({lines[0], lines[1]}, 0).empty());
        CHECK(writer.write({lines[2]}, 2).empty());
        writer.finish();
        const std::string bytes = read_input<BadInput>(how.vectors, SIZE_MAX - 1);
        const std::size_t Z = ours[0].size();
        CHECK(bytes.find(text("'shape': (3,", Z, ",)")) != bytes.npos);
        REQUIRE(bytes.size() > 3 * Z * sizeof(double));
        std::vector<double> stored(3 * Z);
        std::memcpy(stored.data(), bytes.data() + bytes.size() - 3 * Z * sizeof(double), 3 * Z * sizeof(double));
        for (std::size_t i = 0; i < 3; i++)
            for (std::size_t z = 0; z < Z; z++) CHECK(stored[i * Z + z] == ours[i][z]);
    }
    CHECK(found == 4);
}
