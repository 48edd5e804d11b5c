// SPDX-License-Identifier: MIT
#include "engine/tape/trace.h"

#include <cmath>

#include "engine/base/clock.h"
#include "engine/base/write_file.h"
#include "engine/tensor/copy.h"

namespace masquerade {

namespace {

void check_finite(const View& view, const char* what, const Record& r, bool backward, bool empty_sums) {
    const OnHost numbers(view);
    for (std::int64_t i = 0; i < view.count(); i++) {
        double x = numbers[i];
        if (std::isfinite(x) || (empty_sums && x == -INFINITY)) continue;
        throw Error("first number that is not finite: ", what, " of ", view.path, "[", i / view.columns(), ",",
                    i % view.columns(), "] = ", x, ", written by ", r.op, backward ? " backward of " : " ", r.path);
    }
}

// Calls f(path, view) for every value that the forward of a record has written or, if `backward` is true, for every
// gradient that its backward has written.
template <class F>
void each_written(const Record& r, bool backward, F f) {
    for (const Tensor* t : backward ? r.in : r.out)
        if (!backward)
            f(t->path, t->view());
        else if (t && t->needs_grad)
            f(t->path + ".grad", t->grad_view());
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
    const std::vector<double> numbers = numbers_of(view);
    bytes.append(reinterpret_cast<const char*>(numbers.data()), 8 * numbers.size());
    replace_file(file, bytes);
}

void NanTrace::after(const Record& r, bool backward) {
    each_written(r, backward, [&](const std::string& path, const View& view) {
        check_finite(view, backward ? "gradient" : "value", r, backward, !backward && path != r.path);
    });
}

Dump::Dump(const std::string& folder) : folder_(folder) { make_folder(folder); }

void Dump::after(const Record& r, bool backward) {
    each_written(r, backward,
                 [&](const std::string& path, const View& view) { write_npy(folder_ + "/" + path + ".npy", view); });
}

void Dump::write_program(const Tape& tape) const { replace_file(folder_ + "/program.txt", tape.program()); }

void Clock::before(const Record& r, bool) {
    wait_for(r.out[0]->device);
    start_ = steady_seconds();
}

void Clock::after(const Record& r, bool backward) {
    wait_for(r.out[0]->device);
    Share& share = shares_[r.op];
    (backward ? share.backward : share.forward) += steady_seconds() - start_;
    share.calls++;
}

}  // namespace masquerade
