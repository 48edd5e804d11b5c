// SPDX-License-Identifier: MIT
// Tests every record that the functions of nn leave on a tape: the tensors that it keeps, its inputs and its gradients.
// Also tests that no record is left out.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/check/ladder_check.h"
#include "engine/check/ops_table.h"
#include "engine/tape/op_record.h"

using namespace masquerade;
using namespace masquerade::ladder;

namespace {

// Statistics over the records of several rows of the op table.
struct Records {
    std::set<std::string> ops;  // names of the ops that have left a record: "linear"
    // Names such as "linear x". kept: tensors that a record keeps for its backward. read: kept tensors that change a
    // gradient when they are overwritten, so the backward really reads them.
    std::set<std::string> kept, read;
};

void poison(const Tensor* t) {
    if (t && t->bytes() > 0) std::memset(t->value, 0xff, t->bytes());
}

// Fills every tensor that the record does not keep with NaN. The backward must not read these tensors, because the
// memory plan may reuse their memory before the backward runs.
void poison_what_is_free(const Record& r) {
    for (const auto& tensors : {r.in, r.out})
        for (const Tensor* t : tensors)
            if (std::find(r.keep.begin(), r.keep.end(), t) == r.keep.end()) poison(t);
}

// Runs the record of one row of the op table on a tape of its own. The tensors use the memory of a Call.
class OneRecord : public OnTape, Observer {
  public:
    OneRecord(const Case& of, DType type);

    Tensor* operator()(const std::string& name) const override;
    void forward() { call.op.record(*this); }
    void backward();  // starts from the cotangents of the outputs
    // False if the op left no record. A conversion between equal types leaves none.
    bool recorded() const { return !tape.records().empty(); }
    const Record& record() const { return tape.records().back(); }
    bool asked(std::size_t operand) const { return asked_.count(&tensors[operand]) > 0; }

    Call call;
    mutable std::vector<Tensor> tensors;  // one for each operand of the case

  private:
    void before(const Record& record, bool backward) override;
    Arena arena_{Device::cpu, Blocks::loose};
    Tape tape_;
    mutable std::set<const Tensor*> asked_;  // tensors that Case::record used
};

OneRecord::OneRecord(const Case& c, DType type)
    : OnTape(tape_, call), call(c, type), tensors(c.operands.size()), tape_(arena_, type) {
    for (std::size_t i = 0; i < tensors.size(); i++) {
        const Operand& o = c.operands[i];
        const View& value = call.values[i].view();
        Tensor& t = tensors[i];
        t.path = o.name, t.shape = value.shape, t.dtype = value.dtype, t.value = value.data;
        t.parameter = o.weight;
        t.needs_grad = c.has_gradient(o);
        if (t.needs_grad) t.grad = call.gradients[i]->view().data;
    }
    tape_.observe(this);
    tape_.begin("one record", 5, 2, true);
}

Tensor* OneRecord::operator()(const std::string& name) const {
    for (Tensor& t : tensors)
        if (t.path == name) {
            asked_.insert(&t);
            return &t;
        }
    throw Error("the table names no operand ", name);
}

// Checks that the record lists every tensor that Case::record has used as an input. This is checked before the forward
// runs, because the forward might need a missing input.
void OneRecord::before(const Record& r, bool backward) {
    if (backward) return;
    for (const Tensor* t : asked_)
        if (std::find(r.in.begin(), r.in.end(), t) == r.in.end())
            throw Error("the record does not hold its input ", t->path);
}

void OneRecord::backward() {
    std::size_t outputs = 0;
    for (std::size_t i = 0; i < tensors.size() && outputs < record().differentiable; i++) {
        if (call.op.operands[i].role != Role::output) continue;
        Tensor* y = record().out[outputs++];
        if (!y->needs_grad) return;
        y->grad = call.gradients[i]->view().data;
        y->grad_written = true;
    }
    tape.replay(0, tape.records().size());
}

struct RecordCheck : Check {
    Records& records;

    // Returns true if all gradients of a and b have the same bits. If `otherwise` is not null, each gradient that
    // differs is also recorded as a fault, with this description.
    bool same_gradients(const Call& a, const Call& b, const char* otherwise = nullptr) const {
        bool same = true;
        each_gradient([&](std::size_t i, const std::string& name) {
            const bool this_one = a.gradients[i]->bytes() == b.gradients[i]->bytes();
            same = same && this_one;
            if (otherwise) expect(this_one, name, otherwise);
        });
        return same;
    }

    // Checks that the record's outputs have the order of the output operands, and the bits that a direct call of the op
    // gives.
    void check_outputs(const OneRecord& of, const Call& direct) const {
        const Record& r = of.record();
        std::size_t outputs = 0;
        for (std::size_t i = 0; i < c.operands.size(); i++) {
            const Operand& o = c.operands[i];
            if (!o.written() || of.asked(i)) continue;
            const Tensor* y = outputs < r.out.size() ? r.out[outputs] : nullptr;
            expect(y && y->bytes() == direct.values[i].bytes().size() &&
                       std::memcmp(y->value, direct.values[i].view().data, y->bytes()) == 0,
                   o.name, "of the record is another one");
            outputs++;
        }
        expect(outputs == r.out.size(), "record", "has other outputs than its row");
    }

    // Runs all checks. Does nothing if the op leaves no record.
    void run() const {
        Call direct(c, type);
        direct.both();
        OneRecord plain(c, type);
        plain.forward();
        if (!plain.recorded()) return;
        const Record& r = plain.record();
        records.ops.insert(r.op);
        check_outputs(plain, direct);
        expect(r.backward || !c.backward, "record", "has no backward");
        expect(!r.backward || c.backward, "record", "has a backward, and its row has none");
        if (!r.backward || !c.backward) return;
        plain.backward();
        same_gradients(plain.call, direct, "of the record is another one");
        check_kept(direct);
        check_added();
        each_gradient([&](std::size_t i, const std::string&) { check_unwanted(i); });
    }

    void check_kept(const Call& direct) const {
        OneRecord poisoned(c, type);
        poisoned.forward();
        poison_what_is_free(poisoned.record());
        poisoned.backward();
        same_gradients(poisoned.call, direct, "reads what the record does not keep");
        const std::size_t kept = poisoned.record().keep.size();
        for (std::size_t k = 0; k < kept; k++) {
            OneRecord without(c, type);
            without.forward();
            const Record& r = without.record();
            poison(r.keep[k]);
            without.backward();
            const std::string name = text(r.op, " ", r.keep[k]->path);
            records.kept.insert(name);
            if (!same_gradients(without.call, direct)) records.read.insert(name);
        }
    }

    // Checks that the record adds gradients, with the same bits as a direct call that adds. check_contract() checks
    // that the sum itself is right.
    void check_added() const {
        Call direct(c, type);
        OneRecord added(c, type);
        each_gradient([&](std::size_t i, const std::string&) {
            direct.add(i);
            added.tensors[i].grad_written = true;
            for (const Call* call : {&direct, &added.call}) call->gradients[i]->fill(c.operands[i].numbers);
        });
        direct.both();
        added.forward();
        poison_what_is_free(added.record());
        added.backward();
        same_gradients(added.call, direct, "of the record is not added to what was there");
    }

    void check_unwanted(std::size_t unwanted) const {
        Call direct(c, type);
        direct.want(unwanted, false);
        direct.both();
        OneRecord some(c, type);
        some.tensors[unwanted].needs_grad = false;
        some.forward();
        poison_what_is_free(some.record());
        some.backward();
        same_gradients(some.call, direct, "of the record changes where another is not wanted");
    }
};

// Checks that the outputs and gradients of the record have the bits of direct calls of the op. Gradients are stored
// over NaN, added, and partly absent; before the backward, all tensors that the record does not keep are set to NaN.
// Also checks that the record lists every input.
void check_record(const Op& op, Findings& findings, Records& records) {
    std::vector<Sizes> sizes = op.small;
    sizes.insert(sizes.end(), op.middle.begin(), op.middle.end());
    for (Sizes s : sizes)
        for (DType type : {DType::f32, DType::bf16, DType::f64})
            findings.attempt(s, [&] { RecordCheck{{op, s, type, findings}, records}.run(); });
}

std::string faults_of(const Op& op, Records& records) {
    Findings findings;
    findings.op = op.name;
    check_record(op, findings, records);
    std::string all;
    for (const std::string& fault : findings.faults) all += fault + "\n";
    return all;
}

// Calls f(name) for every name in the text that stands directly between `before` and `after`.
template <class F>
void each_name(const std::string& text, const std::string& before, const std::string& after, F f) {
    for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at)) {
        at += before.size();
        const std::string name = text.substr(at, text.find(after, at) - at);
        if (std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; })) f(name);
    }
}

// Returns names in the sources of the engine and the models: functions that are written for records, and ops of
// records.
std::set<std::string> names_in_sources() {
    const std::pair<const char*, const char*> places[] = {{"void ", "_record_forward(const Record& "},
                                                          {"void ", "_record_backward(const Record& "},
                                                          {"Record(\"", "\")"},
                                                          {"run_op(t, name, ", "_forward"}};
    std::set<std::string> names;
    for (const char* folder : {"engine", "models"})
        for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
            if (file.path().extension() != ".cpp") continue;
            std::ifstream in(file.path());
            const std::string all{std::istreambuf_iterator<char>(in), {}};
            for (auto [before, after] : places)
                each_name(all, before, after, [&](const std::string& name) { names.insert(name); });
        }
    return names;
}

// y = gelu(x), with a record that has one of several errors.
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
