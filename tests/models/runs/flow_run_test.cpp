// SPDX-License-Identifier: MIT
// Tests a flow as a model: what it learns from a toy distribution and from a file, its measures, and its samples.
#include "models/runs/flow_run.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

#include "engine/tape/trace.h"
#include "models/runs/training.h"
#include "models/runs/writer.h"
#include "tests/folder.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

std::string trained(const TemporaryFolder& folder, const std::string& name, Strings words, std::int64_t steps) {
    NewTraining wanted;
    wanted.words = {"flow", "flow_steps=4", "flow_width=16", "batch_rows=64", "held_out=500", "warmup=5"};
    wanted.words.insert(wanted.words.end(), words.begin(), words.end());
    wanted.out = folder.file(name);
    Training t(wanted);
    t.options.steps = steps, t.options.minutes = 0;
    t.trainer().quiet = true;
    t.trainer().run(never);
    return wanted.out;
}

std::map<std::string, double> measured(const std::string& path) {
    std::map<std::string, double> all;
    for (const Measure& m : load_run<FlowRun>(path)->measures(500)) all[m.key] = m.value;
    return all;
}

}  // namespace

TEST_CASE("points: toys differ, held-out points are others, the board has its fields") {
    std::vector<double> first;
    for (const Toy& toy : toys()) {
        CAPTURE(std::string(toy.name));
        const auto points = open_points(toy.name, 3);
        CHECK(points->columns == 2);
        CHECK(points->row(5, false) == open_points(toy.name, 3)->row(5, false));
        CHECK(points->row(5, false) != points->row(5, true));
        CHECK(points->row(5, false) != open_points(toy.name, 4)->row(5, false));
        CHECK(std::count(first.begin(), first.end(), points->row(0, false)[0]) == 0);
        first.push_back(points->row(0, false)[0]);
    }
    int fields[16] = {};
    for (std::uint64_t i = 0; i < 4000; i++) {
        const auto p = open_points("checker", 1)->row(i, false);
        fields[int(p[1] + 2) * 4 + int(p[0] + 2)]++;
    }
    for (int f = 0; f < 16; f++) CHECK((f / 4 + f % 4) % 2 * fields[f] == 0);
    for (int f = 0; f < 16; f++) CHECK((fields[f] == 0 || std::abs(fields[f] - 500) < 110));
    CHECK_SAYS(message_of<BadUsage>([] { open_points("moon", 1); }),
               "points=moon is neither moons, rings, checker, spiral nor a file");
}

TEST_CASE("flow run: it learns a toy better than a normal distribution, and its density is that of its samples") {
    const TemporaryFolder folder;
    const std::string path = trained(folder, "moons", {"points=moons", "learning_rate=0.01"}, 400);
    const auto found = measured(path);
    CHECK(found.at("bits") < found.at("baseline.normal") - 0.1);
    CHECK(found.at("bits") == doctest::Approx(found.at("loss") / 2 / std::log(2)));
    const auto run = load_run<FlowRun>(path);
    double sum = 0, square = 0;  // integrals of the density, and of |x|^2 times the density
    const auto log_p = [&](const Numbers& x) {
        double log_det = 0;
        const Numbers u = run->model.steps.forward(x, log_det);
        return log_det - (u[0] * u[0] + u[1] * u[1]) / 2 - run->model.constant();
    };
    for (double x = -4; x < 4; x += 0.04)
        for (double y = -4; y < 4; y += 0.04) {
            const double p = std::exp(log_p({x, y})) * 0.0016;
            sum += p, square += p * (x * x + y * y);
        }
    CHECK(sum == doctest::Approx(1).epsilon(0.01));
    double drawn = 0, loss = 0;
    for (std::uint32_t i = 0; i < 4000; i++) {
        const Numbers x = run->draw(1, i);
        drawn += (x[0] * x[0] + x[1] * x[1]) / 4000;
    }
    CHECK(drawn == doctest::Approx(square).epsilon(0.06));
    for (const Numbers& x : run->rows(0, 500, true)) loss -= log_p(x) / 500;
    CHECK(loss == doctest::Approx(found.at("loss")).epsilon(1e-4));
    // If p is a normal distribution, the mean of -log p is 1 + log(2 pi) + log(det)/2, where det is the determinant of
    // the covariance of the two numbers.
    const std::vector<Numbers> known = run->rows(0, 4096, false);
    double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    for (const Numbers& row : known) x += row[0] / 4096, y += row[1] / 4096;
    for (const Numbers& row : known) {
        const double dx = row[0] - x, dy = row[1] - y;
        xx += dx * dx / 4096, xy += dx * dy / 4096, yy += dy * dy / 4096;
    }
    const double normal = 1 + std::log(2 * M_PI) + std::log(xx * yy - xy * xy) / 2;
    CHECK(found.at("baseline.normal") == doctest::Approx(normal / 2 / std::log(2)).epsilon(0.03));
}

TEST_CASE("flow run: the loss of a batch is the mean of -log p over its vectors, with ActNorm and without") {
    for (const bool actnorm : {true, false}) {
        CAPTURE(actnorm);
        FlowSettings s;
        s.batch_tokens = 20;
        s.flow.actnorm = actnorm;
        FlowRun run(s, Vocabulary(s.words()));
        const std::unique_ptr<Task> task = run.task({});
        task->next_batch(0);
        CHECK(!run.model.steps.waits_for_data());
        Arena arena(Device::cpu, Blocks::kept);
        Tape tape(arena, run.parameters.storage());
        tape.begin("train");
        const double loss = number_at(task->loss(tape, 0, 0)->view(), 0);
        tape.end();
        double mean = 0;
        for (const Numbers& x : run.rows(0, 20, false)) {
            double log_det = 0;
            const Numbers u = run.model.steps.forward(x, log_det);
            mean += ((u[0] * u[0] + u[1] * u[1]) / 2 + run.model.constant() - log_det) / 20;
        }
        CHECK(loss == doctest::Approx(mean).epsilon(1e-5));
    }
}

TEST_CASE("flow run: the rows of a file; samples as text and as a file; a changed file is refused") {
    const TemporaryFolder folder;
    Sequence random(2, "rows");
    Numbers rows;
    for (int n = 0; n < 200; n++) {
        const double a = random.uniform_double();
        rows.insert(rows.end(), {a, 100 + a * a, 3 * a + 0.1 * random.uniform_double()});
    }
    const std::string file = folder.file("rows.npy");
    const auto write = [&](std::int64_t count) {
        write_npy(file, {rows.data(), DType::f64, Device::cpu, {count, 3}, "rows"});
    };
    write(200);
    const auto points = open_points(file, 1);
    std::set<double> held_out, seen;
    for (std::uint64_t i = 0; i < points->held_out(); i++) held_out.insert(points->row(i, true)[0]);
    for (std::uint64_t i = 0; i < 4000; i++) seen.insert(points->row(i, false)[0]);
    CHECK((held_out.size() == 20 && seen.size() == 180));
    for (double x : held_out) CHECK(seen.count(x) == 0);
    const std::string path = trained(folder, "run", {"points=" + file, "flow_linear=lu"}, 30);
    const auto found = measured(path);
    CHECK(found.at("vectors") == 20);
    CHECK(found.at("bits") < found.at("baseline.normal") + 1);
    const auto run = load_run<FlowRun>(path);
    CHECK(run->description() == "4 steps of width 16 on vectors of 3 numbers, " + file);
    Writing how;
    how.run = path, how.seed = 4, how.count = 3;
    const RunWriter lines = run->writer(how);
    CHECK(lines.samples == 3);
    const std::string text = lines.write({"", "", ""}, 0);
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
    CHECK(std::count(text.begin(), text.end(), '\t') == 6);
    how.temperature = 0;
    const std::string middle = run->writer(how).write({"", ""}, 0);
    CHECK(middle.substr(0, middle.size() / 2) == middle.substr(middle.size() / 2));
    how.temperature.reset();
    how.vectors = folder.file("samples.npy");
    const RunWriter vectors = run->writer(how);
    CHECK(vectors.write({"", "", ""}, 0).empty());
    vectors.finish();
    CHECK_SAYS(message_of<BadInput>([&] { open_points(how.vectors, 1); }),
               "samples.npy has 3 rows of 3 numbers; expected at least 10 rows");
    how.search.top_k = 3;
    CHECK_SAYS(message_of<BadUsage>([&] { run->writer(how); }), "--top-k and --top-p choose among tokens");
    write(190);
    CHECK_SAYS(message_of<BadInput>([&] { load_run<FlowRun>(path)->measures(10); }),
               "has changed since the run was started");
    CHECK(load_run<FlowRun>(path)->draw(4, 0).size() == 3);  // drawing samples needs no data file
    rows[4] = NAN;
    write(190);
    CHECK_SAYS(message_of<BadInput>([&] { open_points(file, 1); }), "row 1, column 1 is nan; expected finite numbers");
}
