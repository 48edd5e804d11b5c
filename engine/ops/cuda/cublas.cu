// SPDX-License-Identifier: MIT
// Computes matrix products with cuBLASLt. The library is opened when multiply() or why_no_cublas() is first called,
// not before.
//
// The engine stores matrices row by row, cuBLASLt column by column. The memory of a row-major matrix (R,C) is
// therefore, for cuBLASLt, the transposed matrix (C,R). The product C = A B is requested in transposed form,
//     C^T(N,M) = B^T(N,K) A^T(K,M):
// B is the first factor and A the second, m and n are swapped, and the leading dimension of each matrix is the
// distance between its stored rows. cuBLASLt reads the memory of each factor as the transposed matrix, and the
// requested product needs just this matrix. cuBLASLt must transpose a factor only if `transposed` is set. The bias of
// cuBLASLt has an element for every row of C^T, that is, for every column of C. Its epilogue BGRADB sums the columns of
// its second factor A^T, that is, the rows of A.
//
// For each shape, the first algorithm that cuBLASLt suggests is used and remembered; if it suggests none, this is
// remembered too. If the algorithm splits the sum over K into parts, the parts are added in float in a separate step,
// in a fixed order. Therefore the same product always has the same bits on one GPU. The bits of a row may change with
// the number of rows, because another shape may get another algorithm.
#include <cublasLt.h>

#include <array>
#include <map>

#include "engine/base/library_places.h"
#include "engine/ops/cuda/multiply.h"
#include "engine/ops/cuda/workspace.cuh"

namespace masquerade::cuda {
namespace {

constexpr std::size_t workspace_bytes = std::size_t(32) << 20;
struct Parts {};

struct LtLibrary {
    void* library = nullptr;
    std::string place;

    LtLibrary() {
        const OpenedLibrary opened = open_first(cublas_search(CUBLAS_VER_MAJOR));
        if (!opened.library) throw Error("CUDA: " + opened.reason);
        library = opened.library, place = opened.place;
    }
    template <class Function>
    Function* find(const char* name) const {
        void* function = dlsym(library, name);
        if (!function)
            throw Error("CUDA: ", place, " has no ", name, "; expected cuBLAS ", CUBLAS_VER_MAJOR, ".",
                        CUBLAS_VER_MINOR, "; name another one in MASQUERADE_CUBLAS");
        return reinterpret_cast<Function*>(function);
    }
};

// The functions of cublasLt.h that this file uses, found by name in the opened library.
struct Lt : LtLibrary {
#define FUNCTION(member, name) decltype(name)* member = find<decltype(name)>(#name)
    FUNCTION(status_name, cublasLtGetStatusName);
    FUNCTION(create, cublasLtCreate);
    FUNCTION(make_operation, cublasLtMatmulDescCreate);
    FUNCTION(set_operation, cublasLtMatmulDescSetAttribute);
    FUNCTION(make_layout, cublasLtMatrixLayoutCreate);
    FUNCTION(make_preference, cublasLtMatmulPreferenceCreate);
    FUNCTION(set_preference, cublasLtMatmulPreferenceSetAttribute);
    FUNCTION(forget_preference, cublasLtMatmulPreferenceDestroy);
    FUNCTION(suggest, cublasLtMatmulAlgoGetHeuristic);
    FUNCTION(multiply, cublasLtMatmul);
#undef FUNCTION
    cublasLtHandle_t handle = nullptr;

    Lt() {
        use_gpu();
        expect(create(&handle), "starting");
    }
    // Throws Error, with text(what...) in its message, if the status is not a success.
    template <class... What>
    void expect(cublasStatus_t status, const What&... what) const {
        if (status != CUBLAS_STATUS_SUCCESS) throw Error("CUDA: cuBLASLt: ", what..., " failed: ", status_name(status));
    }
};

const Lt& lt() {
    static const Lt opened;
    return opened;
}

cudaDataType_t type_of(DType type) { return type == DType::f32 ? CUDA_R_32F : CUDA_R_16BF; }

// Returns the alignment of an address: the largest power of two that divides it, but at most 16, because no algorithm
// accesses more than 16 bytes at a time.
std::int64_t alignment_of(const void* address) {
    const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(address) | 16;
    return std::int64_t(bits & (~bits + 1));
}

// The algorithm of cuBLASLt, and the descriptions that it needs, for all products with the same shape, types and
// alignments.
struct Plan {
    bool possible = false;  // whether cuBLASLt has an algorithm for the shape
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
    cublasLtMatmulAlgo_t algorithm = {};
};

// Returns the vector that cuBLASLt's epilogue reads (the bias) or writes (the sums of the rows of A). Returns null if
// the product has neither.
const void* vector_of(const Multiplication& p) { return p.bias ? p.bias : p.sums; }

template <class T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t what, T value) {
    lt().expect(lt().set_operation(operation, what, &value, sizeof value), "describing a product");
}

// Describes a matrix (rows, columns) of the engine to cuBLASLt. If `transposed` is set, it is stored as (columns,
// rows). Stored rows begin `step` numbers apart; if `step` is 0, they follow one another without gaps.
cublasLtMatrixLayout_t layout_of(DType type, bool transposed, std::int64_t step, std::int64_t rows,
                                 std::int64_t columns) {
    if (transposed) std::swap(rows, columns);
    cublasLtMatrixLayout_t layout = nullptr;
    lt().expect(lt().make_layout(&layout, type_of(type), std::uint64_t(columns), std::uint64_t(rows),
                                 step ? step : columns),
                "describing a matrix");
    return layout;
}

void choose_algorithm(Plan& plan, const Multiplication& p) {
    cublasLtMatmulPreference_t preference = nullptr;
    lt().expect(lt().make_preference(&preference), "making a preference");
    auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
        lt().expect(lt().set_preference(preference, what, &value, sizeof value), "stating a preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(workspace_bytes));
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t(alignment_of(p.b.data)));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t(alignment_of(p.a.data)));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t(alignment_of(p.c.data)));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t(alignment_of(p.c.data)));
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    const cublasStatus_t status = lt().suggest(lt().handle, plan.operation, plan.first, plan.second, plan.result,
                                               plan.result, preference, 1, &best, &found);
    lt().forget_preference(preference);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) lt().expect(status, "choosing an algorithm for ", p);
    plan.possible = status == CUBLAS_STATUS_SUCCESS && found > 0 && best.state == CUBLAS_STATUS_SUCCESS;
    plan.algorithm = best.algo;
}

Plan make_plan(const Multiplication& p) {
    Plan plan;
    const bool rounds = product_rule().tf32 && p.a.dtype == DType::f32;
    const cublasComputeType_t sums = rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    lt().expect(lt().make_operation(&plan.operation, sums, CUDA_R_32F), "describing a product");
    set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, std::int32_t(p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, std::int32_t(p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N));
    if (const void* vector = vector_of(p)) {
        const std::uint32_t epilogue = p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_BGRADB;
        set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
        set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, std::int32_t(type_of(p.c.dtype)));
        set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);  // affects the choice of the algorithm
    }
    plan.first = layout_of(p.b.dtype, p.b.transposed, p.b.row, p.k, p.n);
    plan.second = layout_of(p.a.dtype, p.a.transposed, p.a.row, p.m, p.k);
    plan.result = layout_of(p.c.dtype, false, p.c.row, p.m, p.n);
    choose_algorithm(plan, p);
    return plan;
}

Plan& plan_for(const Multiplication& p) {
    using Key = std::array<std::int64_t, 18>;
    static std::map<Key, Plan> plans;
    const Key key{p.m,
                  p.n,
                  p.k,
                  int(p.a.dtype),
                  int(p.b.dtype),
                  int(p.c.dtype),
                  p.a.transposed,
                  p.b.transposed,
                  p.a.row,
                  p.b.row,
                  p.c.row,
                  alignment_of(p.a.data),
                  alignment_of(p.b.data),
                  alignment_of(p.c.data),
                  p.bias != nullptr,
                  p.sums != nullptr,
                  alignment_of(vector_of(p)),
                  product_rule().tf32};
    auto found = plans.find(key);
    if (found == plans.end()) found = plans.emplace(key, make_plan(p)).first;
    return found->second;
}

}  // namespace

void choose_products(ProductRule wanted) { product_rule() = wanted; }

const char* why_no_cublas() {
    static const std::string reason = []() -> std::string {
        try {
            lt();
            return "";
        } catch (const Error& e) {
            return e.what();
        }
    }();
    return reason.c_str();
}

bool multiply(const Multiplication& p) {
    expect_known(p);
    if (*why_no_cublas() != 0) return false;
    Plan& plan = plan_for(p);
    if (!plan.possible) return false;
    if (const void* vector = vector_of(p)) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
    const float one = 1, kept = p.c.add ? 1 : 0;
    const cublasStatus_t status =
        lt().multiply(lt().handle, plan.operation, &one, p.b.data, plan.first, p.a.data, plan.second, &kept, p.c.data,
                      plan.result, p.c.data, plan.result, &plan.algorithm, workspace<Parts, char>(workspace_bytes),
                      workspace_bytes, cuda_stream());
    plan.possible = status != CUBLAS_STATUS_NOT_SUPPORTED;
    if (plan.possible) lt().expect(status, p);
    return plan.possible;
}

}  // namespace masquerade::cuda
