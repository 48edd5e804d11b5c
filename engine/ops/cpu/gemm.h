// SPDX-License-Identifier: MIT
// The matrix product of the CPU engine.
//
// Every element of C is the same chain of multiply-adds over k = 0, 1, ... whatever M, N, the number of
// threads or its place in the matrix: its bits depend on its row of A, its column of B and the instruction
// set alone. Two factors of bf16 are multiplied in bf16 arithmetic where the machine has it (bf16_form below).
#pragma once
#include "engine/tensor/view.h"

#include <cstdint>

namespace masquerade {

// K is cut into blocks of this depth, always. Within a block every element of C has one running sum; the sums
// of blocks are added in order.
constexpr std::int64_t gemm_depth = 320;

// A matrix to be read: element (i, j) lies at data[i * row + j * column]. f32 or bf16.
struct Factor {
    const void* data;
    DType dtype;
    std::int64_t row, column;
};

inline Factor factor(const View& v) { return {v.data, v.dtype, v.columns(), 1}; }
inline Factor transposed(Factor f) { return {f.data, f.dtype, f.column, f.row}; }

// A function run on C part by part: called as soon as rows m0 to m1 and columns n0 to n1 are written and while they lie
// in a near cache, once for every element, by the thread that wrote them. f(m0, m1, n0, n1) must outlive the product.
// `beside`, where there is one, is the matrix of C's shape that it reads or writes as well: those rows and columns are
// fetched beforehand.
class Epilogue {
  public:
    Epilogue() = default;
    template <class F>
    explicit Epilogue(const F& f, const Factor& matrix = {})
        : beside(matrix),
          f_(&f),
          run_([](const void* p, std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1) {
              (*static_cast<const F*>(p))(m0, m1, n0, n1);
          }) {}
    explicit operator bool() const { return run_ != nullptr; }
    void operator()(std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1) const {
        run_(f_, m0, m1, n0, n1);
    }

    Factor beside = {};

  private:
    const void* f_ = nullptr;
    void (*run_)(const void*, std::int64_t, std::int64_t, std::int64_t, std::int64_t) = nullptr;
};

// The matrix to be written, f32 or bf16: element (i, j) lies at data[i * row + j].
struct Product {
    void* data;
    DType dtype;
    std::int64_t row;
    bool add = false;             // add to what is there instead of storing
    const float* bias = nullptr;  // (N), added to every row
    Epilogue then = {};
};

inline Product product(const View& v, bool add = false) { return {v.data, v.dtype, v.columns(), add, nullptr, {}}; }

// C(M,N) = A(M,K) B(K,N) (+ C) (+ bias), then the epilogue. Allocates only where a thread meets a larger product than
// it ever has.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, Factor a, Factor b, Product c);

// "avx512", "avx2" or "generic"; the best the machine has unless set. Tests set it, between products: the
// bits of two instruction sets differ. False, and nothing changed, where the machine or the compiler does not
// have it.
const char* instruction_set();
bool set_instruction_set(const char* name);

// How two factors of bf16 are multiplied: "amx" or "avx512_bf16", products of pairs with sums in float, or
// "widened", as floats; the fastest the machine has unless set, and "widened" under any instruction set but
// "avx512". The bits of two forms differ. False, and nothing changed, where the machine does not have it.
const char* bf16_form();
bool set_bf16_form(const char* name);

}  // namespace masquerade
