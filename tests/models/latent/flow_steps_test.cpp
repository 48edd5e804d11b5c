// SPDX-License-Identifier: MIT
// Tests the steps of a flow with every form of FlowOptions: the tape and the host compute the same, the inverse undoes
// the steps, and ActNorm is initialised from data.
#include "models/latent/flow_steps.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/base/random.h"
#include "engine/ops/cpu/parallel.h"
#include "tests/folder.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

constexpr int Z = 5, count = 60;

std::vector<Numbers> skewed_rows() {
    Sequence random(4, "rows");
    std::vector<Numbers> rows;
    for (int n = 0; n < count; n++) {
        Numbers& row = rows.emplace_back();
        for (int i = 0; i < Z; i++) row.push_back(3 * i + std::exp(random.uniform_double()) + (i ? 2 * row[0] : 0));
    }
    return rows;
}

struct OnTape {
    Numbers u, log_dets, starts;  // starts: for each ActNorm and column, the mean and the deviation of its output
    double log_det = 0;
};

OnTape on_tape(const FlowSteps& f, const std::vector<Numbers>& rows) {
    Numbers all;
    for (const Numbers& row : rows) all.insert(all.end(), row.begin(), row.end());
    Arena arena(Device::cpu, Blocks::kept);
    Tape tape(arena, DType::f64);
    tape.begin("flow");
    const FlowSteps::Mapped to = f(tape, tape.constant("z", {count, Z}, DType::f64, all.data()));
    OnTape found{numbers_of(to.u->view()), numbers_of(to.log_dets->view()), {}, number_at(to.log_det->view(), 0)};
    for (const Record& r : tape.records()) {
        if (std::string(r.op) != "actnorm") continue;
        const Numbers y = numbers_of(r.out[0]->view());
        for (int i = 0; i < Z; i++) {
            double mean = 0, square = 0;
            for (int n = 0; n < count; n++) mean += y[n * Z + i] / count, square += y[n * Z + i] * y[n * Z + i] / count;
            found.starts.push_back(mean);
            found.starts.push_back(std::sqrt(square - mean * mean));
        }
    }
    tape.end();
    return found;
}

void negate_first(Parameters& p, const char* path) {
    const Tensor* t = p.find(path);
    REQUIRE(t);
    Numbers all = numbers_of(p.master(*t));
    all[0] = -all[0];
    write_numbers(p.master(*t), all.data());
}

}  // namespace

TEST_CASE("flow steps: of every form, the tape has the host's numbers, the inverse is exact, the start is by data") {
    const std::vector<Numbers> rows = skewed_rows();
    Numbers fresh[2];
    for (const bool actnorm : {false, true})
        for (const char* linear : {"full", "lu"}) {
            CAPTURE(actnorm);
            CAPTURE(std::string(linear));
            FlowOptions o;
            o.width = 4, o.actnorm = actnorm, o.linear = linear;
            Parameters p(DType::f64);
            const FlowSteps f(p, "flow", Z, o);
            p.allocate(3);
            CHECK(f.waits_for_data() == actnorm);
            // Both forms of W start with the same rotation. Initial values are rounded to float, so the results may
            // differ slightly.
            double ignored = 0;
            const Numbers first = f.forward(rows[0], ignored);
            if (fresh[actnorm].empty()) fresh[actnorm] = first;
            for (int i = 0; i < Z; i++) CHECK(first[i] == doctest::Approx(fresh[actnorm][i]).epsilon(1e-5));

            Sequence random(5, "parameters");
            for (const Tensor& t : p.all()) {
                Numbers all = numbers_of(p.master(t));
                for (double& x : all) x += t.needs_grad ? 0.3 * (2 * random.uniform_double() - 1) : 0;
                write_numbers(p.master(t), all.data());
            }
            if (actnorm) f.start(rows);
            CHECK(!f.waits_for_data());
            const Numbers starts = on_tape(f, rows).starts;
            REQUIRE(starts.size() == (actnorm ? 3 * 2 * Z : 0));
            for (std::size_t i = 0; i < starts.size(); i++) CHECK(std::fabs(starts[i] - i % 2) <= 1e-9);
            if (actnorm) negate_first(p, "flow.2.actnorm.weight");  // training may move a scale below 0
            const OnTape found = on_tape(f, rows);
            for (int n = 0; n < count; n++) {
                double log_det = 0;
                const Numbers u = f.forward(rows[n], log_det), back = f.inverse(u);
                CHECK(std::fabs(found.log_dets[n] + found.log_det - log_det) <= 1e-10);
                for (int i = 0; i < Z; i++) {
                    CHECK(std::fabs(found.u[n * Z + i] - u[i]) <= 1e-10);
                    CHECK(std::fabs(back[i] - rows[n][i]) <= 1e-9);
                }
            }
        }
}

TEST_CASE("flow steps: if a number is the same in the whole first batch, ActNorm only shifts it") {
    std::vector<Numbers> rows = skewed_rows();
    for (Numbers& row : rows) row[1] = 7;
    FlowOptions o;
    o.width = 4, o.actnorm = true;
    Parameters p(DType::f64);
    const FlowSteps f(p, "flow", Z, o);
    p.allocate(3);
    f.start(rows);
    CHECK(number_at(p.find("flow.0.actnorm.weight")->view(), 1) == 1);
    CHECK(number_at(p.find("flow.0.actnorm.bias")->view(), 1) == doctest::Approx(-7));
    for (double u : on_tape(f, rows).u) REQUIRE(std::isfinite(u));
}

TEST_CASE("flow steps: a permutation that names no row, as in a broken file, is refused on the host") {
    FlowOptions o;
    o.width = 4, o.linear = "lu";
    Parameters p(DType::f64);
    const FlowSteps f(p, "flow", Z, o);
    p.allocate(3);
    const Tensor* order = nullptr;
    for (const Tensor& t : p.all())
        if (t.path.find(".mix.order") != std::string::npos) order = &t;
    REQUIRE(order);
    const Numbers good = numbers_of(p.master(*order));
    double ignored = 0;
    for (const double broken : {-1.0, double(Z), double(NAN)}) {
        Numbers all = good;
        all[1] = broken;
        write_numbers(p.master(*order), all.data());
        CHECK_THROWS_WITH_AS(f.forward(skewed_rows()[0], ignored), doctest::Contains("expected rows of a matrix"),
                             Error);
        CHECK_THROWS_WITH_AS(f.inverse(skewed_rows()[0]), doctest::Contains("mix.order holds"), Error);
    }
    write_numbers(p.master(*order), good.data());
    CHECK_NOTHROW(f.forward(skewed_rows()[0], ignored));
}

TEST_CASE("flow steps: a run starts ActNorm once, with the same bits on one thread and two, and not at a resume") {
    UniVaeSettings s = tiny_settings(LatentKind::flow);
    s.model.latent.flow.actnorm = true;
    s.model.latent.flow.linear = "lu";
    const TemporaryFolder folder;
    const auto train = [&](const std::string& name, std::int64_t steps, int threads) {
        set_threads(threads);
        const std::string path = folder.file(name);
        const bool again = std::filesystem::exists(path);
        TinyRun run(s, again ? RunFolder::resume(path) : RunFolder::create(path), steps);
        if (!again) run.folder.write("run.json", "{}");
        if (again) run.trainer.resume();
        run.trainer.run(never);
        set_threads(0);
        CHECK(!run.model.model.latents[0].latent->waits_for_data());
        const Tensor* scale = run.model.parameters.find("latent.0.flow.0.actnorm.weight");
        REQUIRE(scale);
        CHECK(std::fabs(number_at(scale->view(), 0) - 1) > 0.05);  // initialised from the data
        return run.bits();
    };
    const auto straight = train("straight", 4, 1);
    const auto two = train("two", 2, 2);
    CHECK(two != straight);
    CHECK(train("two", 4, 2) == straight);
}
