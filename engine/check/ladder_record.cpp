// SPDX-License-Identifier: MIT
#include "engine/check/ladder_record.h"

#include "engine/check/ladder_check.h"

#include <algorithm>
#include <cstring>

namespace masquerade::ladder {

OnTape::OnTape(const Case& c, DType type)
    : tape(tape_), memory(c, type), tensors(c.operands.size()), tape_(arena_, type) {
    for (std::size_t i = 0; i < tensors.size(); i++) {
        const Operand& o = c.operands[i];
        const View& value = memory.values[i].view();
        Tensor& t = tensors[i];
        t.path = o.name, t.shape = value.shape, t.dtype = value.dtype, t.value = value.data;
        t.parameter = o.weight;
        t.needs_grad = c.has_gradient(o);
        if (t.needs_grad) t.grad = memory.others[i]->view().data;
    }
    tape_.observe(this);
    tape_.begin("one record", 5, 2, true);
}

Tensor* OnTape::operator()(const std::string& name) const {
    for (Tensor& t : tensors)
        if (t.path == name) {
            asked_.insert(&t);
            return &t;
        }
    throw Error(text("the table names no operand ", name));
}

// Checks that the record lists every tensor that Case::record has used as an input. This is checked before the forward
// runs, because the forward might need a missing input.
void OnTape::before(const Record& r, bool backward) {
    if (backward) return;
    for (const Tensor* t : asked_)
        if (std::find(r.in.begin(), r.in.end(), t) == r.in.end())
            throw Error(text("the record does not hold its input ", t->path));
}

void OnTape::backward() {
    std::size_t outputs = 0;
    for (std::size_t i = 0; i < tensors.size() && outputs < record().differentiable; i++) {
        if (memory.op.operands[i].role != Role::output) continue;
        Tensor* y = record().out[outputs++];
        if (!y->needs_grad) return;
        y->grad = memory.others[i]->view().data;
        y->grad_written = true;
    }
    tape.replay(0, tape.records().size());
}

namespace {

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

struct RecordCheck : Check {
    Records& records;

    // Returns true if all gradients of a and b have the same bits. If `otherwise` is not null, each gradient that
    // differs is also recorded as a fault, with this description.
    bool same_gradients(const Call& a, const Call& b, const char* otherwise = nullptr) const {
        bool same = true;
        each_gradient([&](std::size_t i, const std::string& name) {
            const bool this_one = a.others[i]->bytes() == b.others[i]->bytes();
            same = same && this_one;
            if (otherwise) expect(this_one, name, otherwise);
        });
        return same;
    }

    // Checks that the record's outputs have the order of the output operands, and the bits that a direct call of the op
    // gives.
    void check_outputs(const OnTape& of, const Call& direct) const {
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
        OnTape plain(c, type);
        plain.forward();
        if (!plain.recorded()) return;
        const Record& r = plain.record();
        records.ops.insert(r.op);
        check_outputs(plain, direct);
        expect(r.backward || !c.backward, "record", "has no backward");
        expect(!r.backward || c.backward, "record", "has a backward, and its row has none");
        if (!r.backward || !c.backward) return;
        plain.backward();
        same_gradients(plain.memory, direct, "of the record is another one");
        check_kept(direct);
        check_added();
        each_gradient([&](std::size_t i, const std::string&) { check_unwanted(i); });
    }

    void check_kept(const Call& direct) const {
        OnTape poisoned(c, type);
        poisoned.forward();
        poison_what_is_free(poisoned.record());
        poisoned.backward();
        same_gradients(poisoned.memory, direct, "reads what the record does not keep");
        const std::size_t kept = poisoned.record().keep.size();
        for (std::size_t k = 0; k < kept; k++) {
            OnTape without(c, type);
            without.forward();
            const Record& r = without.record();
            poison(r.keep[k]);
            without.backward();
            const std::string name = text(r.op, " ", r.keep[k]->path);
            records.kept.insert(name);
            if (!same_gradients(without.memory, direct)) records.read.insert(name);
        }
    }

    // Checks that the record adds gradients, with the same bits as a direct call that adds. check_contract() checks
    // that the sum itself is right.
    void check_added() const {
        Call direct(c, type);
        OnTape added(c, type);
        each_gradient([&](std::size_t i, const std::string&) {
            direct.add(i);
            added.tensors[i].grad_written = true;
            for (const Call* call : {&direct, &added.memory}) call->others[i]->fill(c.operands[i].numbers);
        });
        direct.both();
        added.forward();
        poison_what_is_free(added.record());
        added.backward();
        same_gradients(added.memory, direct, "of the record is not added to what was there");
    }

    void check_unwanted(std::size_t unwanted) const {
        Call direct(c, type);
        direct.want(unwanted, false);
        direct.both();
        OnTape some(c, type);
        some.tensors[unwanted].needs_grad = false;
        some.forward();
        poison_what_is_free(some.record());
        some.backward();
        same_gradients(some.memory, direct, "of the record changes where another is not wanted");
    }
};

}  // namespace

void check_record(const Op& op, Findings& findings, Records& records) {
    std::vector<Sizes> sizes = op.small;
    sizes.insert(sizes.end(), op.middle.begin(), op.middle.end());
    for (Sizes s : sizes)
        for (DType type : {DType::f32, DType::bf16, DType::f64})
            findings.attempt(s, [&] { RecordCheck{{op, s, type, findings}, records}.run(); });
}

}  // namespace masquerade::ladder
