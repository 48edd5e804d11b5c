// SPDX-License-Identifier: MIT
// Tests lsh and sinkhorn as parts of a model: the inputs of their ops, gradients, which rows depend on which, and a
// last layer that computes only some rows.
#include <doctest/doctest.h>

#include "models/masks/mask.h"
#include "models/nets/unilm.h"
#include "tests/models/runs/small_pairs.h"
#include "tests/train/files.h"

using namespace masquerade;
using namespace masquerade::small_pairs;

namespace {

BackboneOptions sorted(const std::string& attention, bool rotary, int chunk) {
    BackboneOptions o;
    o.vocabulary = V, o.width = 16, o.heads = 2, o.inner = 12, o.layers = 2, o.positions = 48, o.deviation = 0.3;
    o.attention = attention, o.rotary = rotary;
    o.attention_options = {{"rounds", 2}, {"buckets", 4}, {"chunk", chunk}};
    return o;
}

Batch masked(int count) {
    static const std::vector<Sentence> text = pairs(4, 2, {18, 18});
    std::vector<const Sentence*> some = pointers_to(text);
    some.resize(std::size_t(count));
    return find_objective("mlm").batch(some, 1, options(), 16);
}

std::vector<double> numbers_of(const Tensor* t) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < t->shape.count(); i++) all.push_back(number_at(t->view(), i));
    return all;
}

using Model = Small<UniLm, BackboneOptions>;

}  // namespace

TEST_CASE("sorted attention: gradients by complex step, with dropout and without") {
    for (const char* kind : {"lsh", "sinkhorn"})
        for (bool rotary : {false, true})
            for (double dropout : {0.0, 0.2}) {
                BackboneOptions o = sorted(kind, rotary, 3);
                o.attention_dropout = dropout;
                CHECK(gradient_error<Model>(o, masked(4), 0, true) <= 1e-11);
            }
}

TEST_CASE("sorted attention: a last layer of some rows has the bits that all rows give") {
    for (const char* kind : {"lsh", "sinkhorn"}) {
        BackboneOptions o = sorted(kind, true, 3);
        o.dropout = o.attention_dropout = 0.2;
        Model m(o);
        Batch batch = masked(4);
        REQUIRE((batch.scored_graph.queries.empty() && batch.labels.rows.size() > 10));
        m.tape.begin("all", 1, 1, true);
        const std::vector<double> all = numbers_of(m.model.hidden(m.tape, batch));
        batch.scored_graph = only_queries(batch.last_graph(), batch.labels.rows);
        m.tape.begin("some", 1, 1, true);
        CHECK(numbers_of(m.model.hidden(m.tape, batch)) == all);
    }
}

TEST_CASE("sorted attention: a row of lsh hears less than all, of sinkhorn all; a segment of one block is softmax") {
    const Documents one = {{40, 0}};
    const SegmentGraph graph = full_mask(one);
    std::map<std::string, std::vector<double>> rows;
    for (const auto& [kind, chunk] :
         {std::pair("lsh", 4), std::pair("sinkhorn", 4), std::pair("sinkhorn", 40), std::pair("softmax", 4)}) {
        BackboneOptions o = sorted(kind, false, chunk);
        o.layers = 1;
        Parameters parameters;
        const Backbone stack(parameters, o);
        parameters.allocate(5);
        Arena arena(Device::cpu, Blocks::loose);
        Tape tape(arena, DType::f32);
        int heard = 0;
        for (int changed = -1; changed < 40; changed++) {
            TokenRows tokens;
            for (int i = 0; i < 40; i++) tokens.push(i == changed ? 4 : 5 + 7 * i % 31, 0, i, 0);
            tape.begin("rows");
            const std::vector<double> now = numbers_of(stack.run(tape, tokens, graph));
            std::vector<double>& first = rows[text(kind, chunk)];
            if (changed < 0) first = now;
            for (std::size_t i = 0; i < 40; i++)
                heard += !std::equal(now.begin() + 16 * i, now.begin() + 16 * i + 16, first.begin() + 16 * i);
        }
        CAPTURE(heard);
        if (text(kind) == "lsh")
            CHECK((heard > 200 && heard < 1200));
        else
            CHECK(heard == 1600);
    }
    CHECK(rows["sinkhorn40"] == rows["softmax4"]);
    CHECK(rows["sinkhorn4"] != rows["softmax4"]);
}

namespace {

// Returns the first record of an op, from a run on two documents with the positions 0 .. 10 and 0 .. 6.
const Record& record_of(Tape& tape, const Backbone& stack, const std::string& op) {
    TokenRows tokens;
    for (int i = 0; i < 18; i++) tokens.push(5 + 7 * i % 31, 0, i < 11 ? i : i - 11, i >= 11);
    tape.begin("record");
    stack.run(tape, tokens, tape.hold(full_mask({{11, 0}, {7, 0}})));
    const auto found =
        std::find_if(tape.records().begin(), tape.records().end(), [&](const Record& r) { return r.op == op; });
    REQUIRE(found != tape.records().end());
    return *found;
}

}  // namespace

TEST_CASE("lsh: keys are queries of length 1, values are not") {
    Model m(sorted("lsh", true, 4), DType::f64);
    const Record& r = record_of(m.tape, m.model.backbone, "lsh_attention");
    const View q = r.x(0), k = r.x(1), v = r.x(2);
    for (std::int64_t i = 0; i < q.count(); i += 8) {  // for each head of each row
        double square = 0;
        for (int d = 0; d < 8; d++) square += q.as<double>()[i + d] * q.as<double>()[i + d];
        for (int d = 0; d < 8; d++)
            CHECK(std::abs(k.as<double>()[i + d] - q.as<double>()[i + d] / std::sqrt(square)) < 1e-15);
        CHECK(std::abs(v.as<double>()[i] - k.as<double>()[i]) > 1e-6);
    }
}

TEST_CASE("sinkhorn: a row looks at its block and at what is sorted there, each whole") {
    Model m(sorted("sinkhorn", true, 4), DType::f64);
    const Record& r = record_of(m.tape, m.model.backbone, "attention");
    const double *q = r.x(0).as<double>(), *own = r.x(1).as<double>(), *sorted = r.x(2).as<double>(),
                 *y = r.y(0).as<double>();
    for (int i = 0; i < 18; i++)
        for (int head = 0; head < 2; head++) {
            const int first = i < 11 ? 0 : 11, end = i < 11 ? 11 : 18, u = (i - first) / 4;
            std::vector<const double*> rows;  // pointers to keys; the value is 16 numbers behind its key
            for (int j = first + 4 * u; j < std::min(first + 4 * u + 4, end); j++)
                rows.push_back(own + j * 32 + head * 8);
            for (int t = 0; t < 4; t++) rows.push_back(sorted + ((i < 11 ? 0 : 3) + u) * 4 * 32 + t * 32 + head * 8);
            double total = 0, sum[8] = {};
            for (const double* row : rows) {
                double score = 0;
                for (int d = 0; d < 8; d++) score += q[i * 16 + head * 8 + d] * row[d];
                const double p = std::exp(score / std::sqrt(8.0));
                total += p;
                for (int d = 0; d < 8; d++) sum[d] += p * row[16 + d];
            }
            for (int d = 0; d < 8; d++) CHECK(std::abs(y[i * 16 + head * 8 + d] - sum[d] / total) < 1e-14);
        }
}

TEST_CASE("sorted attention: an odd number of buckets is refused") {
    BackboneOptions o = sorted("lsh", false, 4);
    o.attention_options["buckets"] = 5;
    CHECK_SAYS(message_of<BadUsage>([&] { Model m(o); }), "attention lsh: buckets=5, expected an even number");
}

TEST_CASE("sorted attention: learns masked tokens by heart") {
    for (const char* kind : {"lsh", "sinkhorn"}) {
        Model m(sorted(kind, true, 4));
        CHECK(learned(m, 200, [](std::uint32_t) { return masked(2); }) < 0.3);
    }
}
