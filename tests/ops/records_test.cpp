// SPDX-License-Identifier: MIT
// Every record that nn leaves on a tape: its keep, its inputs, its gradients (engine/check/ladder_record.h); and none
// is left out.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "engine/check/ladder_record.h"
#include "engine/tape/op_record.h"

using namespace masquerade;
using namespace masquerade::ladder;

namespace {

std::string faults_of(const Op& op, Records& records) {
    Findings findings;
    findings.op = op.name;
    check_record(op, findings, records);
    std::string all;
    for (const std::string& fault : findings.faults) all += fault + "\n";
    return all;
}

// The names in the sources of the engine and the models: of functions written for records, and of ops of records.
std::set<std::string> names_in_sources() {
    const std::regex function("void (\\w+)_record_(forward|backward)\\(const Record& "),
        op("(Record\\(\"|run_op\\(t, name, )(\\w+?)(\"\\)|_forward)");
    std::set<std::string> names;
    for (const char* folder : {"engine", "models"})
        for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
            if (file.path().extension() != ".cpp") continue;
            std::ifstream in(file.path());
            const std::string all{std::istreambuf_iterator<char>(in), {}};
            const std::sregex_iterator end;
            for (std::sregex_iterator m(all.begin(), all.end(), function); m != end; ++m) names.insert((*m)[1]);
            for (std::sregex_iterator m(all.begin(), all.end(), op); m != end; ++m) names.insert((*m)[2]);
        }
    return names;
}

// y = gelu(x) with a record that has a fault of choice.
std::string planted_fault;

void planted_forward(const Record& r) { gelu_forward(r.x(), GeluKind::erf, r.y()); }
void planted_backward(const Record& r) {
    Grad dx = r.dx();
    if (planted_fault == "always stores") dx.add = false;
    gelu_backward(r.dy(), r.x(), GeluKind::erf, dx);
}

Op planted() {
    return {"planted", [](Sizes n) {
                Case c;
                c.input("x", {n.rows, n.columns});
                c.output("y", {n.rows, n.columns});
                c.forward = [](const Call& a) { gelu_forward(a("x"), GeluKind::erf, a("y")); };
                c.backward = [](const Call& a) { gelu_backward(a.d("y"), a("x"), GeluKind::erf, a.grad("x")); };
                c.record = [](const OnTape& a) {
                    Tensor *x = a("x"), *y = a.tape.declare("y", x->shape, x->dtype);
                    Record r = Record("planted").reads({x}).makes({y}).keeps({x}).by(planted_forward, planted_backward);
                    if (planted_fault == "forgets to keep") r.keep = {};
                    if (planted_fault == "keeps y, too") r.keep = {x, y};
                    if (planted_fault == "hides its input") r.in = {};
                    if (planted_fault == "has no backward") r.backward = nullptr;
                    a.tape.run(r);
                };
                return c;
            }};
}

}  // namespace

TEST_CASE("records: what is read is kept, what is kept is read, and all of them have a row") {
    Records records;
    for (const Op& op : ops_table())
        if (prepared(op, op.small.front()).record) CHECK(faults_of(op, records) == "");
    for (const std::string& kept : records.kept)
        if (!records.read.count(kept)) FAIL_CHECK("no backward reads what is kept: " << kept);
    const std::set<std::string> names = names_in_sources();
    CHECK(names.size() > 20);
    for (const std::string& name : names)
        if (!records.ops.count(name)) FAIL_CHECK("no row of the table leaves this record: " << name);
}

TEST_CASE("records: what is planted is found, and named") {
    const std::pair<const char*, const char*> all[] = {
        {"forgets to keep", "planted dx: reads what the record does not keep f32 at 5x4x3"},
        {"always stores", "planted dx: of the record is not added to what was there f32"},
        {"hides its input", "planted call: throws \"the record does not hold its input x\""},
        {"has no backward", "planted record: has no backward"},
    };
    for (const auto& [fault, said] : all) {
        planted_fault = fault;
        Records records;
        const std::string faults = faults_of(planted(), records);
        CAPTURE(faults);
        CHECK(faults.find(said) != std::string::npos);
    }
    planted_fault = "keeps y, too";
    Records records;
    CHECK(faults_of(planted(), records) == "");
    CHECK(records.kept == std::set<std::string>{"planted x", "planted y"});
    CHECK(records.read == std::set<std::string>{"planted x"});
}

TEST_CASE("records: one that passes other tensors than its op takes is refused; keeps() has the last word") {
    Tensor x, w, y, mean, rstd;
    CHECK_THROWS_WITH_AS(
        Record("norm").reads({&x, &w}).makes({&y, &mean, &rstd}).by(layernorm_forward, layernorm_backward, 0.5),
        "norm: 2 inputs and 3 outputs, but layernorm_forward takes (View x, View w, View b, double eps, "
        "View y, View mean, View rstd)",
        Error);
    const SegmentGraph graph;
    CHECK_THROWS_WITH_AS(Record("near").reads({&x}).makes({&y}).by(local_lambda_forward, local_lambda_backward, &graph,
                                                                   1),
                         doctest::Contains("near: 1 inputs and 1 outputs, but local_lambda_forward takes"), Error);
    const Record all = Record("gelu").reads({&x}).makes({&y}).by(gelu_forward, gelu_backward, GeluKind::erf);
    CHECK(all.keep == Record::Tensors{&x});
    CHECK(attributes_of(all, gelu_forward) == std::tuple(GeluKind::erf));
    const Record none = Record("gelu").reads({&x}).makes({&y}).by(gelu_forward, gelu_backward, GeluKind::erf).keeps({});
    CHECK(none.keep.empty());
}
