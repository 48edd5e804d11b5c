// SPDX-License-Identifier: MIT
#include "engine/tape/trace.h"

#include <cmath>

#include "engine/base/write_file.h"
#include "engine/tensor/copy.h"

namespace masquerade {

namespace {

void check_finite(const View& view, const char* what, const Record& r, bool backward, bool empty_sums) {
    const OnHost numbers(view);
    for (std::int64_t i = 0; i < view.count(); i++) {
        double x = numbers[i];
        if (std::isfinite(x) || (empty_sums && x == -INFINITY)) continue;
        throw Error(text("first number that is not finite: ", what, " of ", view.path, "[", i / view.columns(), ",",
                         i % view.columns(), "] = ", x, ", written by ", r.op, backward ? " backward of " : " ",
                         r.path));
    }
}

}  // namespace

void write_npy(const std::string& file, const View& view) {
    std::string shape;
    for (int i = 0; i < view.shape.rank; i++) shape += std::to_string(view.shape[i]) + ",";
    std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    std::uint16_t length = std::uint16_t(header.size());
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes.append(reinterpret_cast<const char*>(&length), 2) += header;
    const OnHost numbers(view);
    for (std::int64_t i = 0; i < view.count(); i++) {
        double x = numbers[i];
        bytes.append(reinterpret_cast<const char*>(&x), 8);
    }
    replace_file(file, bytes);
}

void NanTrace::after(const Record& r, bool backward) {
    if (!backward) {
        for (std::size_t i = 0; i < r.out.size(); i++) check_finite(r.out[i]->view(), "value", r, false, i > 0);
        return;
    }
    for (const Tensor* t : r.in)
        if (t && t->needs_grad) check_finite(t->grad_view(), "gradient", r, true, false);
}

Dump::Dump(const std::string& folder) : folder_(folder) { make_folder(folder); }

void Dump::after(const Record& r, bool backward) {
    if (!backward) {
        for (const Tensor* t : r.out) write_npy(folder_ + "/" + t->path + ".npy", t->view());
        return;
    }
    for (const Tensor* t : r.in)
        if (t && t->needs_grad) write_npy(folder_ + "/" + t->path + ".grad.npy", t->grad_view());
}

void Dump::write_program(const Tape& tape) const { replace_file(folder_ + "/program.txt", tape.program()); }

void Clock::before(const Record& r, bool) {
    wait_for(r.out[0]->device);
    start_ = std::chrono::steady_clock::now();
}

void Clock::after(const Record& r, bool backward) {
    wait_for(r.out[0]->device);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    Share& share = shares_[r.op];
    (backward ? share.backward : share.forward) += seconds;
    share.calls++;
}

}  // namespace masquerade
