// SPDX-License-Identifier: MIT
// Tests the tape: the bits are the same with and without a memory plan, with recomputed or kept values, and replayed at
// once or scope by scope. Also tests forks and errors.
#include <doctest/doctest.h>

#include <algorithm>

#include "engine/math/lanes.h"
#include "engine/tape/trace.h"
#include "tests/tape/net.h"

using namespace masquerade;

namespace {

// A gelu whose record does not say that its backward reads x.
void forgetful_forward(const Record& r) { gelu_forward(r.x(), GeluKind::erf, r.y()); }
void forgetful_backward(const Record& r) { gelu_backward(r.dy(), r.x(), GeluKind::erf, r.dx()); }

Tensor* forgetful_gelu(Tape& tape, Tensor* x, bool forgets, const std::string& name) {
    std::vector<Tensor*> keep;
    if (!forgets) keep = {x};
    return tape.run(Record("gelu")
                        .reads({x})
                        .makes({tape.declare(name, x->shape, x->dtype)})
                        .keeps(keep)
                        .by(forgetful_forward, forgetful_backward));
}

void flatten_forward(const Record& r) { std::copy_n(r.x().as<float>(), r.x().count(), r.y().as<float>()); }
void flatten_backward(const Record& r) {
    Grad dx = r.dx();
    for (std::int64_t i = 0; i < r.dy().count(); i++) put(dx.view.as<float>()[i], r.dy().as<float>()[i], dx.add);
}

// An op with two outputs, y = 2 x and z = 3 x, which both may have a gradient.
void twice_forward(const Record& r) {
    for (std::int64_t i = 0; i < r.x().count(); i++) {
        r.y(0).as<float>()[i] = 2 * r.x().as<float>()[i];
        r.y(1).as<float>()[i] = 3 * r.x().as<float>()[i];
    }
}
void twice_backward(const Record& r) {
    Grad dx = r.dx();
    for (std::int64_t i = 0; i < r.x().count(); i++)
        put(dx.view.as<float>()[i], 2 * r.dy(0).as<float>()[i] + 3 * r.dy(1).as<float>()[i], dx.add);
}

// Returns the sum of all numbers of x.
Tensor* sum_of(Tape& tape, Tensor* x) {
    const std::int64_t n = x->shape.count();
    Tensor* flat = tape.declare(x->path + ".flat", {n}, x->dtype);
    tape.run(Record("flatten").reads({x}).makes({flat}).by(flatten_forward, flatten_backward));
    std::vector<double> ones(static_cast<std::size_t>(n), 1);
    return weighted_sum(tape, flat, tape.constant("ones", {n}, x->dtype, ones.data()), x->path + ".sum");
}

}  // namespace

TEST_CASE("tape: an object that it keeps lives until the next step begins") {
    Net net;
    const auto object = std::make_shared<int>(7);
    net.tape.begin("keep");
    CHECK(*net.tape.hold(std::shared_ptr<int>(object)) == 7);
    net.tape.end();
    CHECK(object.use_count() == 2);
    net.tape.begin("keep");
    CHECK(object.use_count() == 1);
}

TEST_CASE("tape: planned == unplanned memory, over steps of several buckets") {
    Net planned, loose(DType::f32, false);
    for (std::uint32_t step = 0; step < 8; step++) {
        int rows = step % 3 == 0 ? 9 : 21;
        CHECK(planned.step(rows, step) == loose.step(rows, step));
        CHECK(planned.arena.plan(std::to_string(rows)) != nullptr);
    }
    CHECK(planned.arena.planned_bytes() < planned.arena.unplanned_bytes() / 2);
    CHECK(loose.arena.planned_bytes() == 0);
}

TEST_CASE("tape: recompute on == off, of whole layers, of a part of each, of everything") {
    for (const char* pattern : {"layer.*", "layer.1", "*.ffn", "*", "layer.*.ffn"}) {
        Net plain, again;
        again.tape.recompute(pattern);
        CAPTURE(pattern);
        for (std::uint32_t step = 0; step < 3; step++) CHECK(plain.step(21, step) == again.step(21, step));
        CHECK(again.arena.planned_bytes() < plain.arena.planned_bytes());
    }
    Net none;
    none.tape.recompute("nothing.of.that.name");
    CHECK_THROWS_WITH_AS(none.step(9), doctest::Contains("recompute=nothing.of.that.name: no scope"), BadUsage);
}

TEST_CASE("tape: what is retained can be read when the step is over, recomputed or not") {
    auto watched_bits = [](const std::string& pattern) {
        Net net;
        net.watching = true;
        if (!pattern.empty()) net.tape.recompute(pattern);
        std::vector<std::vector<char>> steps;
        for (std::uint32_t step = 0; step < 3; step++) {
            Tensor* total = net.loss(21, step);
            net.parameters.start_gradients();
            net.tape.backward(total);
            const View v = net.watched->view();
            steps.emplace_back(static_cast<char*>(v.data), static_cast<char*>(v.data) + v.bytes());
            net.tape.end();
        }
        return steps;
    };
    const auto kept = watched_bits("");
    for (const char* pattern : {"layer.*", "*.ffn", "*"}) {
        CAPTURE(pattern);
        CHECK(watched_bits(pattern) == kept);
    }
}

namespace {
struct CountForwards : Observer {
    int count = 0;
    void after(const Record&, bool backward) override { count += !backward; }
};
}  // namespace

TEST_CASE("tape: what is recomputed is computed twice, nothing else is") {
    auto forwards = [](std::vector<std::string> patterns) {
        Net net;
        CountForwards counter;
        net.tape.observe(&counter);
        for (const std::string& p : patterns) net.tape.recompute(p);
        net.step(9);
        return counter.count;
    };
    const int all = forwards({}), layer = 7, ffn = 4;  // numbers of records
    CHECK(forwards({"layer.1"}) == all + layer);
    CHECK(forwards({"layer.1.ffn"}) == all + ffn);
    CHECK(forwards({"layer.*"}) == all + Net::layers * layer);
    CHECK(forwards({"layer.1", "*.ffn"}) == all + layer + (Net::layers - 1) * ffn);
}

TEST_CASE("tape: poison changes nothing where every read is declared, and finds the one that is not") {
    Net plain, poisoned;
    poisoned.arena.set_poison(true);
    for (std::uint32_t step = 0; step < 3; step++) CHECK(plain.step(21, step) == poisoned.step(21, step));

    for (bool forgets : {false, true}) {
        Parameters p;
        Tensor* w = p.add("w", {40, 4}, {Init::normal, 1});
        p.allocate(1);
        Arena arena;
        arena.set_poison(true);
        Tape tape(arena, DType::f32);
        NanTrace trace;
        tape.observe(&trace);
        std::vector<int> ids = {1, 3, 5, 7};
        auto step = [&] {
            tape.begin("a");
            Tensor* x = embedding(tape, tape.ints(ids), w, "x");
            Tensor* loss = sum_of(tape, forgetful_gelu(tape, x, forgets, "y"));
            p.start_gradients();
            tape.backward(loss);
            tape.end();
        };
        step();  // the first step has no plan yet
        std::string said = "nothing";
        try {
            step();
        } catch (const Error& e) {
            said = e.what();
        }
        CAPTURE(said);
        CHECK((said.find("gradient of x[0,0] = ") != std::string::npos) == forgets);
        CHECK((said.find("nan, written by gelu backward of y") != std::string::npos) == forgets);
    }
}

TEST_CASE("tape: replayed scope by scope == flat") {
    Net flat, walked;
    for (std::uint32_t step = 0; step < 3; step++) {
        std::vector<char> expected = flat.step(21, step);
        Tensor* total = walked.loss(21, step);
        walked.parameters.start_gradients();
        walked.tape.seed_gradient(total);
        std::size_t end = walked.tape.records().size();
        const auto& segments = walked.tape.segments();  // inner scopes come before their outer scopes
        for (std::size_t i = segments.size(); i-- > 0;) {
            if (segments[i].name.find("ffn") != std::string::npos) continue;
            walked.tape.replay(segments[i].end, end);
            walked.tape.replay(segments[i].begin, segments[i].end);
            end = segments[i].begin;
        }
        walked.tape.replay(0, end);
        walked.parameters.finish_gradients();
        CHECK(walked.bits(total) == expected);
        walked.tape.end();
    }
}

TEST_CASE("tape: the gradient of a forked, tied, repeated program is that of the complex step") {
    Net real(DType::f64), imaginary(DType::c128);
    Tensor* total = real.loss(9);
    real.parameters.start_gradients();
    real.tape.backward(total);
    real.parameters.finish_gradients();
    auto &p = real.parameters.all(), &q = imaginary.parameters.all();
    for (std::size_t i = 0; i < p.size(); i++) {
        Sequence random(i, "direction");
        double expected = 0, size = 0;
        for (std::int64_t k = 0; k < p[i].shape.count(); k++) {
            double d = 2 * random.uniform_double() - 1, term = d * number_at(p[i].grad_view(), k);
            static_cast<complex*>(q[i].value)[k] = complex(number_at(p[i].view(), k), 1e-30 * d);
            expected += term;
            size += std::abs(term);
        }
        double found = imaginary.loss(9)->view().as<complex>()->imag() / 1e-30;
        CAPTURE(p[i].path);
        CHECK(std::abs(found - expected) <= 1e-12 * size);
        for (std::int64_t k = 0; k < p[i].shape.count(); k++)
            static_cast<complex*>(q[i].value)[k] = number_at(p[i].view(), k);
    }
}

TEST_CASE("tape: the first writer stores, the next ones add; nothing of the last step is left") {
    Parameters p;
    Tensor *w = p.add("w", {2, 2}, {Init::ones}), *idle = p.add("idle", {2}, {Init::ones});
    p.allocate(1);
    Arena arena;
    Tape tape(arena, DType::f32);
    std::vector<int> ids = {0, 1};
    for (int step = 0; step < 3; step++) {
        tape.begin("a");
        Tensor* x = embedding(tape, tape.ints(ids), w, "x");
        Tensor* y = add(tape, add(tape, x, x, "a"), x, "b");      // 3 x
        Tensor* z = embedding(tape, tape.ints(ids), w, "again");  // + w
        Tensor* loss = sum_of(tape, add(tape, y, z, "y"));
        for (int i = 0; i < 4; i++) static_cast<float*>(w->grad)[i] = 100;  // values that an earlier step has left
        for (int i = 0; i < 2; i++) static_cast<float*>(idle->grad)[i] = 100;
        p.start_gradients();
        tape.backward(loss);
        p.finish_gradients();
        for (int i = 0; i < 4; i++) CHECK(static_cast<float*>(w->grad)[i] == 4);
        for (int i = 0; i < 2; i++) CHECK(static_cast<float*>(idle->grad)[i] == 0);
        tape.end();
    }
}

TEST_CASE("tape: without start_gradients a further backward adds: micro-batches") {
    Parameters p;
    Tensor* w = p.add("w", {2, 2}, {Init::ones});
    p.allocate(1);
    Arena arena;
    Tape tape(arena, DType::f32);
    std::vector<int> ids = {0, 1};
    p.start_gradients();
    for (int part = 1; part <= 3; part++) {
        tape.begin("a");
        tape.backward(sum_of(tape, embedding(tape, tape.ints(ids), w, "x")));
        tape.end();
        for (int i = 0; i < 4; i++) CHECK(static_cast<float*>(w->grad)[i] == part);
    }
}

TEST_CASE("tape: a record with two outputs gets the gradient of each, zeros where no loss lies behind one") {
    Parameters p;
    Tensor* w = p.add("w", {2, 2}, {Init::ones});
    p.allocate(1);
    for (Blocks blocks : {Blocks::loose, Blocks::planned}) {
        Arena arena(Device::cpu, blocks);
        Tape tape(arena, DType::f32);
        std::vector<int> ids = {0, 1};
        for (int step = 0; step < 3; step++)
            for (int used = 1; used <= 3; used++) {  // bit i is 1 if output i is used
                tape.begin(std::to_string(used));
                Tensor* x = embedding(tape, tape.ints(ids), w, "x");
                Tensor *y = tape.declare("y", x->shape, x->dtype), *z = tape.declare("z", x->shape, x->dtype);
                tape.run(Record("twice").reads({x}).makes({y, z}, 2).by(twice_forward, twice_backward));
                Tensor* loss = sum_of(tape, used == 3 ? add(tape, y, z, "sum") : used == 1 ? y : z);
                p.start_gradients();
                tape.backward(loss);
                p.finish_gradients();
                const float expected = float((used & 1 ? 2 : 0) + (used & 2 ? 3 : 0));
                for (int i = 0; i < 4; i++) CHECK(static_cast<float*>(w->grad)[i] == expected);
                tape.end();
            }
    }
}

TEST_CASE("tape: attributes of another type than a record's are refused, and named") {
    struct Mine {
        int number;
    };
    struct Other {
        int number;
    };
    Record r("toy");
    r.path = "layer.toy";
    CHECK_THROWS_WITH_AS(r.as<Mine>(), "toy layer.toy: its attributes are of another type", Error);
    r.with(Mine{3});
    CHECK(r.as<Mine>().number == 3);
    CHECK_THROWS_AS(r.as<Other>(), Error);
}

TEST_CASE("tape: names, scopes, the printed program") {
    Net net;
    net.loss(9);
    const auto& records = net.tape.records();
    CHECK(records[0].path == "embedding");
    CHECK(records[1].path == "layer.0.norm");
    CHECK(records[2].path == "layer.0.ffn.up");
    std::string program = net.tape.program();
    CHECK(program.find("#03 gelu          layer.0.ffn.up -> layer.0.ffn.gelu (9,20)\n") != std::string::npos);
    std::vector<std::string> names;
    for (const auto& s : net.tape.segments()) names.push_back(s.name);
    CHECK(names ==
          std::vector<std::string>{"layer.0.ffn", "layer.0", "layer.1.ffn", "layer.1", "layer.2.ffn", "layer.2"});
    CHECK(matches("decoder.layer.*", "decoder.layer.3"));
    CHECK(matches("*.ffn", "layer.0.ffn"));
    CHECK(matches("a*b*c", "a.b.b.c"));
    CHECK_FALSE(matches("layer.1", "layer.10"));
    CHECK_FALSE(matches("*.ffn", "layer.0.ffn.up"));
}

TEST_CASE(
    "tape: what no gradient reaches has no backward, and of scopes that end together the outer is computed again") {
    struct Count : Observer {
        int forward = 0, backward = 0;
        void after(const Record&, bool back) override { (back ? backward : forward)++; }
    };
    Parameters p;
    Tensor* b = p.add("b", {4}, {Init::ones});
    p.allocate(1);
    Arena arena;
    Tape tape(arena, DType::f32);
    Count count;
    tape.observe(&count);
    tape.recompute("outer*");
    tape.begin("steps");
    Tensor* loss = nullptr;
    {
        auto outer = tape.scope("outer");
        Tensor* first = gelu(tape, b, GeluKind::erf, "first");
        gelu(tape, first, GeluKind::erf, "unused");
        auto inner = tape.scope("inner");
        const std::vector<double> ones(4, 1);
        loss = weighted_sum(tape, first, tape.constant("ones", {4}, DType::f32, ones.data()), "loss");
    }
    p.start_gradients();
    tape.backward(loss);
    tape.end();
    CHECK(count.backward == 2);     // weighted_sum and the first gelu
    CHECK(count.forward == 3 + 3);  // the outer scope is computed twice
}

TEST_CASE("tape: a stream goes by seed, step, scopes and name, each by itself") {
    Arena arena;
    Tape tape(arena, DType::f32);
    auto words = [&](std::uint64_t seed, std::uint32_t step, const std::string& layer, const std::string& name) {
        tape.begin("streams", seed, step);
        auto stack = tape.scope("stack");
        auto scope = tape.scope(layer);
        const Four drawn = tape.stream(name).at(7, 8, 9);
        const Four named = make_stream(seed, "stack." + layer + "." + name, step).at(7, 8, 9);
        for (int i = 0; i < 4; i++) CHECK(drawn[i] == named[i]);
        return drawn[0];
    };
    const std::uint32_t drawn = words(1, 2, "layer.0", "dropout");
    CHECK(words(1, 2, "layer.0", "dropout") == drawn);
    CHECK(words(5, 2, "layer.0", "dropout") != drawn);
    CHECK(words(1, 5, "layer.0", "dropout") != drawn);
    CHECK(words(1, 2, "layer.1", "dropout") != drawn);
    CHECK(words(1, 2, "layer.0", "attention") != drawn);
}

TEST_CASE("tape: a backward from the wrong place is refused") {
    Net net;
    Tensor* total = net.loss(9);
    Tensor* many = net.tape.records()[0].out[0];
    CHECK_THROWS_WITH_AS(net.tape.backward(many), "backward starts from one number, embedding is (9,12)", Error);
    double one = 1;
    Tensor* constant = net.tape.constant("c", {1}, DType::f32, &one);
    CHECK_THROWS_WITH_AS(net.tape.backward(constant), "backward from c: no parameter lies upstream of it", Error);
    CHECK(total->needs_grad);
}
