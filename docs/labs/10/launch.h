// SPDX-License-Identifier: MIT
// One launch of the student's kernel on fibers. In the grader, the launch runs in the student's process, which also
// reports the error and the number of loads. The student's code could forge these reports, but not the numbers of C.
#pragma once
#include "docs/labs/10/lab.h"
#include "docs/labs/check.h"

struct Launched {
    Numbers C;
    std::string fault;
    long loads_of_A, loads_of_B;  // how often the number of A (or B) that was loaded most often was loaded
};
inline Launched launch_here(int M, int N, int K, const Numbers& a, const Numbers& b, bool from_the_last) {
    fibers::Matrix A("A", a), B("B", b), C("C", Numbers(std::size_t(M * N), garbage));
    const auto kernel = [&] { product_kernel(M, N, K, A.data(), B.data(), C.data()); };
    const std::string fault = fibers::launch({(N + T - 1) / T, (M + T - 1) / T}, {T, T}, kernel, from_the_last);
    return {C.numbers(), fault, A.most_loads(), B.most_loads()};
}
// The function that launches the kernel. The grader replaces it by a function that calls the student's process.
inline Launched (*launch)(int, int, int, const Numbers&, const Numbers&, bool) = launch_here;
