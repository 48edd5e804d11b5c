// SPDX-License-Identifier: MIT
// Checks that every op keeps the contract at the top of ops.h.
#include "engine/ops/cpu/parallel.h"
#include "engine/check/ladder_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace masquerade::ladder {
namespace {

// Restores the number of threads at the end of a scope.
struct RestoreThreads {
    const int before = threads();
    ~RestoreThreads() { set_threads(before); }
};

// Returns the largest absolute value of the numbers.
double largest_of(const View& view) {
    double size = 0;
    for (std::int64_t i = 0; i < view.count(); i++) size = std::max(size, std::fabs(number(view, i).real()));
    return size;
}

struct Contract : Check {
    const Device device;
    const RowsAlone rows_alone;

    Call call_of(const Case& some) const { return Call(some, type, type, device); }

    // Returns whether two calls computed the same bits of the gradient of o. If rows_alone is `near`, the gradient of
    // an operand with any_order may differ by rounding errors.
    bool same_gradient(const Operand& o, const Guarded& found, const Guarded& expected) const {
        if (found.bytes() == expected.bytes()) return true;
        return rows_alone == RowsAlone::near && o.any_order &&
               error_of(found.view(), expected.view(), o.floor) <= 2 * bound_of(o, type, device);
    }

    // Checks that results contain no NaN. Checks that all other memory is unchanged, including the guard bytes around
    // each tensor. Returns the call with all results.
    Call check_writes() const {
        Call call = call_of(c);
        std::vector<std::string> values, gradients;  // the bytes of call.values and call.gradients at the last check
        const auto check = [&](const Guarded& tensor, std::string& before, const std::string& name, bool result,
                               const std::string& when) {
            if (result)
                expect(!tensor.has_nan(), name, when.empty() ? "is not fully written" : "is not fully stored");
            else
                expect(tensor.bytes() == before, name, "is written to" + when);
            expect(tensor.guards_intact(), name, "is written past its ends");
            before = tensor.bytes();
        };
        const auto check_all = [&](bool backward, const std::string& when) {
            for (std::size_t i = 0; i < c.operands.size(); i++) {
                const Operand& o = c.operands[i];
                check(call.values[i], values[i], o.name, o.written() && !backward, when);
                if (call.gradients[i])
                    check(*call.gradients[i], gradients[i], "d" + o.name, c.has_gradient(o) && backward, when);
            }
        };
        for (std::size_t i = 0; i < c.operands.size(); i++) {
            values.push_back(call.values[i].bytes());
            gradients.push_back(call.gradients[i] ? call.gradients[i]->bytes() : "");
        }
        call.forward();
        check_all(false, "");
        if (c.backward) call.backward(), check_all(true, " by the backward");
        return call;
    }
    void fill_gradients_with_nan(const Call& call) const {
        each_gradient([&](std::size_t i, const std::string&) { call.gradients[i]->fill_with_nan(); });
    }

    // Checks that a gradient is added to the contents of its tensor if Call::add() asks for it. In each backward, one
    // gradient is added. All other gradients are stored, and must be the same as in `stored`, a call that stored all
    // gradients.
    void check_added(const Call& stored) const {
        Call call = call_of(c);
        call.forward();
        each_gradient([&](std::size_t i, const std::string& name) {
            fill_gradients_with_nan(call);
            const View &g = stored.gradients[i]->view(), &to = call.gradients[i]->view();
            double worst = 0;
            const double size = std::max(c.operands[i].floor, largest_of(g));
            Sequence random(1, name);
            std::vector<double> before(g.count());
            for (double& r : before) r = (2 * random.uniform_double() - 1) * (size > 0 ? size : 1);
            call.gradients[i]->fill(before);
            for (std::size_t k = 0; k < before.size(); k++) before[k] = number(to, std::int64_t(k)).real();
            call.add(i);
            call.backward();
            call.add(i, false);
            for (std::int64_t k = 0; k < g.count(); k++)
                keep_largest(worst, std::fabs(number(to, k).real() - (before[k] + number(g, k).real())));
            expect(worst <= 4 * bound_of(c.operands[i], type) * size, name, "is not added to what was there");
            expect(call.gradients[i]->guards_intact(), name, "is written past its ends when added");
            each_gradient([&](std::size_t j, const std::string& other) {
                if (j != i)
                    expect(same_gradient(c.operands[j], *call.gradients[j], *stored.gradients[j]), other,
                           "changes where another is added");
            });
        });
    }

    enum class Sets { every, one_differs, every_second };

    // Checks that a gradient has the same bits if other gradients are not requested, and that gradients that are not
    // requested are not written. Each backward requests one set of gradients. `sets` says which sets are tried:
    //     every          all sets except the full one
    //     one_differs    the sets with at most one gradient, and the sets with all gradients but one
    //     every_second   the gradients 0, 2, 4, ..., and the gradients 1, 3, 5, ...
    void check_absent(const Call& all, Sets sets) const {
        std::vector<std::size_t> inputs;
        each_gradient([&](std::size_t i, const std::string&) { inputs.push_back(i); });
        Call some = call_of(c);
        some.forward();
        for (unsigned wanted = 0; wanted + 1 < 1u << inputs.size(); wanted++) {
            const unsigned full = (1u << inputs.size()) - 1, absent = full & ~wanted, second = full & 0x55555555u;
            if (sets == Sets::every_second && wanted != second && absent != second) continue;
            if (sets == Sets::one_differs && (wanted & (wanted - 1)) && (absent & (absent - 1))) continue;
            fill_gradients_with_nan(some);
            for (std::size_t k = 0; k < inputs.size(); k++) some.want(inputs[k], wanted >> k & 1u);
            some.backward();
            for (std::size_t k = 0; k < inputs.size(); k++) {
                const std::string name = "d" + c.operands[inputs[k]].name;
                const Guarded& found = *some.gradients[inputs[k]];
                if (wanted >> k & 1u)
                    expect(same_gradient(c.operands[inputs[k]], found, *all.gradients[inputs[k]]), name,
                           "changes where another is not wanted");
                else
                    expect(found.bytes() == Guarded(found.view().shape, found.view().dtype, "").bytes(), name,
                           "is written though not wanted");
            }
        }
    }

    void check_threads() const {
        RestoreThreads restore;
        set_threads(1);
        const Call one = call_of(c);
        one.both();
        for (int count : {2, 4}) {
            set_threads(count);
            const Call many = call_of(c);
            many.both();
            each_result(one, many, [&](const Operand&, const std::string& name, const Guarded& a, const Guarded& b) {
                expect(a.bytes() == b.bytes(), name, text("has other bits on ", count, " threads"));
            });
        }
    }

    // Checks that some rows alone give the same bits as these rows in the whole batch or, if rows_alone is `near`,
    // nearly the same numbers.
    void check_rows(const Call& all) const {
        const int n = c.rows;
        const std::pair<int, int> ranges[] = {{0, 1}, {n - 1, n}, {n / 3, n / 3 + (n + 1) / 2}};
        for (auto [begin, end] : ranges) {
            if (begin < 0 || end > n || end - begin == n) continue;
            const Case part = c.restricted(begin, end);
            const Call alone = call_of(part);
            alone.both();
            each_result(all, alone,
                        [&, begin = begin](const Operand& o, const std::string& name, const Guarded& whole,
                                           const Guarded& rows) {
                            if (!o.of_row) return;
                            const View &view = whole.view(), &found = rows.view();
                            const View among = part_of(view, begin * (view.count() / n), found.shape);
                            if (rows_alone == RowsAlone::same_bits)
                                expect(std::memcmp(among.data, found.data, found.bytes()) == 0, name,
                                       "of a row alone has other bits than in a batch");
                            else  // both results, of the batch and of the rows alone, may be off by bound_of()
                                expect(error_of(found, among, std::max(o.floor, largest_of(view))) <=
                                           2 * bound_of(o, type),
                                       name, "of a row alone is far from what it is in a batch");
                        });
        }
    }

    // Returns the message with which a call is refused; "" if it is not refused.
    static std::string refusal(const Call& wrong, bool backward) {
        try {
            backward ? wrong.backward() : wrong.forward();
        } catch (const Error& e) {
            return e.what();
        }
        return "";
    }
    void expect_refused(const Call& wrong, bool backward, const std::string& tensor, const std::string& how) const {
        const std::string said = refusal(wrong, backward),
                          where = (backward ? "in the backward" : "in the forward") + how;
        expect(!said.empty(), tensor, where + " is not refused");
        bool named = said.find("path.of.") != std::string::npos || said.find(" expected ") != std::string::npos;
        expect(said.empty() || named, tensor, where + " is refused without saying what is wrong (" + said + ")");
    }

    // Checks that an op refuses a list whose last number is out of range, with the same message on every device. A
    // backward may accept such a list if the CPU accepts it, too, because the backward may have no use for the number.
    void expect_in_range(std::size_t list, bool backward) const {
        Case wrong = c;
        wrong.indices[list].numbers.back() = std::numeric_limits<int>::max();
        const std::string said = refusal(call_of(wrong), backward), on_cpu = refusal(Call(wrong, type, type), backward);
        const std::string named = said.empty() ? "is not refused" : text("is refused with \"", said, "\"");
        expect(said == on_cpu && (backward || said.find(text(wrong.indices[list].numbers.back())) != std::string::npos),
               wrong.indices[list].name,
               text("out of range ", backward ? "in the backward " : "in the forward ", named, ", on the CPU with \"",
                    on_cpu, "\""));
    }

    // Checks that wrong sizes and numbers are refused. In each call, one tensor has one row or column too many, or one
    // list is one number too short or ends with a number out of range.
    void check_refusals() const {
        Call good = call_of(c);
        good.forward();
        const std::set<std::string> forward = good.asked;
        good.asked.clear();
        if (c.backward) good.backward();
        const std::set<std::string> backward = good.asked;
        auto expect_both = [&](const Call& wrong, const std::string& name, const std::string& how) {
            if (forward.count(name)) expect_refused(wrong, false, name, how);
            if (backward.count(name)) expect_refused(wrong, true, name, how);
        };
        for (std::size_t i = 0; i < c.operands.size(); i++) {
            const Operand& o = c.operands[i];
            for (int side = 0; side < o.shape.rank && !o.any_shape; side++) {
                bool rows = side + 1 < o.shape.rank;
                if (rows && o.any_rows) continue;
                std::string how = rows ? " with one row more" : " with one column more";
                Shape larger = o.shape;
                larger.size[side]++;
                Call value = call_of(c), gradient = call_of(c);
                value.values[i] = Guarded(larger, value.values[i].view().dtype, o.path.c_str(), device);
                expect_both(value, o.name, how);
                if (!gradient.gradients[i]) continue;
                *gradient.gradients[i] = Guarded(larger, gradient.gradients[i]->view().dtype, o.path.c_str(), device);
                expect_both(gradient, "d" + o.name, how);
            }
        }
        for (std::size_t i = 0; i < c.indices.size(); i++) {
            if (c.indices[i].numbers.empty()) continue;
            Case shorter = c;
            shorter.indices[i].numbers.pop_back();
            expect_both(call_of(shorter), c.indices[i].name, " with one number less");
            if (c.indices[i].name == "document" || c.indices[i].name == "position") continue;  // any number is valid
            if (forward.count(c.indices[i].name)) expect_in_range(i, false);
            if (backward.count(c.indices[i].name)) expect_in_range(i, true);
        }
    }
};

}  // namespace

void check_contract_on(Device device, const Op& op, std::vector<Sizes> sizes, const std::vector<DType>& types,
                       Findings& findings, RowsAlone rows, bool far) {
    sizes.push_back({0, sizes.front().columns, sizes.front().other});  // an empty batch
    bool has_storage = prepared(op, op.all.front()).has_storage();
    for (DType type : types) {
        if (type == DType::bf16 && !has_storage) continue;
        for (Sizes s : sizes)
            findings.attempt(s, [&] {
                Contract contract{{op, s, type, findings}, device, rows};
                const Call all = contract.check_writes();
                if (device == Device::cpu) contract.check_threads();
                contract.check_rows(all);
                if (!contract.c.backward) return;
                contract.check_added(all);
                const bool first = s.rows == sizes.front().rows && s.columns == sizes.front().columns;
                contract.check_absent(all, far     ? Contract::Sets::every_second
                                           : first ? Contract::Sets::every
                                                   : Contract::Sets::one_differs);
            });
        Sizes small = op.small.front();
        findings.attempt(small, [&] { Contract{{op, small, type, findings}, device, rows}.check_refusals(); });
    }
}

void check_contract(const Op& op, Findings& findings) {
    check_contract_on(Device::cpu, op, op.all, {DType::f32, DType::bf16, DType::f64}, findings);
    check_contract_on(Device::cpu, op, op.far, {DType::f32}, findings, RowsAlone::same_bits, true);
}

}  // namespace masquerade::ladder
