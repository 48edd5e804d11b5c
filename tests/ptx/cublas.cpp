// SPDX-License-Identifier: MIT
// A stand-in for cuBLASLt, written from its manual, with the functions that engine/ops/cuda/cublas.cu calls. Matrices
// are column-major. A product is D = alpha op(A) op(B) + beta C, with a bias for each row of D, or with the sums of the
// columns of op(B). Sums are computed in float, in the order of the depth. If cuBLASLt would refuse the arguments of a
// call or read them wrongly, the stand-in returns an error or complains, which ends the test.
#include <cublasLt.h>

#include <cstring>
#include <vector>

#include "tests/ptx/stream.h"

using masquerade::ptx::complain;

namespace {

struct Operation {
    cublasComputeType_t sums;
    std::int32_t transpose_a = 0, transpose_b = 0, bias_type = -1;
    std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    void* bias = nullptr;
};
struct Layout {
    cudaDataType_t type;
    std::uint64_t rows, columns;
    std::int64_t step;
};
struct Preference {
    std::uint64_t workspace;
    std::uint32_t reductions, align_a, align_b, align_c, align_d;
};
struct Sizes {
    std::uint64_t m, n, k;
};
struct Algorithm {
    Preference asked;
    Sizes sizes;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm is kept in cuBLASLt's struct");

template <class T, class Handle>
T& held(Handle handle) {
    return *reinterpret_cast<T*>(handle);
}
template <class T>
T read(const void* value, std::size_t bytes) {
    if (bytes != sizeof(T)) complain("cuBLASLt: an attribute of another size");
    T read;
    std::memcpy(&read, value, sizeof read);
    return read;
}

float number(const void* data, cudaDataType_t type, std::uint64_t i) {
    if (type == CUDA_R_32F) return static_cast<const float*>(data)[i];
    const std::uint32_t bits = std::uint32_t(static_cast<const std::uint16_t*>(data)[i]) << 16;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
void set_number(void* data, cudaDataType_t type, std::uint64_t i, float x) {
    if (type == CUDA_R_32F) {
        static_cast<float*>(data)[i] = x;
        return;
    }
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits = x != x ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);  // rounds to nearest, ties to even
    static_cast<std::uint16_t*>(data)[i] = std::uint16_t(bits >> 16);
}

// Returns the sizes of the product. Complains about a product that cuBLASLt does not compute.
Sizes sizes_of(const Operation& o, const Layout& a, const Layout& b, const Layout& c) {
    const Sizes s{o.transpose_a ? a.columns : a.rows, o.transpose_b ? b.rows : b.columns,
                  o.transpose_a ? a.rows : a.columns};
    if ((o.transpose_b ? b.columns : b.rows) != s.k || c.rows != s.m || c.columns != s.n)
        complain("cuBLASLt: sizes that do not belong together");
    const bool f32 = a.type == CUDA_R_32F && b.type == CUDA_R_32F && c.type == CUDA_R_32F;
    const bool bf16 = a.type == CUDA_R_16BF && b.type == CUDA_R_16BF && (c.type == CUDA_R_16BF || c.type == CUDA_R_32F);
    const bool bias = o.epilogue == CUBLASLT_EPILOGUE_BIAS || o.epilogue == CUBLASLT_EPILOGUE_BGRADB;
    const bool possible = (f32 || bf16) && (!bias || (o.bias_type == c.type && o.bias));
    if (!possible) complain("cuBLASLt: types of which its table has no row, or no bias");
    return s;
}

struct Product {
    Operation o;
    Layout a, b, c;
    const void *data_a, *data_b, *data_c;
    void* data_d;
    float alpha, beta;
    Sizes s;

    std::string operator()() const {
        masquerade::ptx::count_launch("cublasLtMatmul");
        std::vector<float> rows(s.k);  // one row of op(A)
        for (std::uint64_t i = 0; i < s.m; i++) {
            for (std::uint64_t l = 0; l < s.k; l++)
                rows[l] = number(data_a, a.type, o.transpose_a ? i * a.step + l : l * a.step + i);
            for (std::uint64_t j = 0; j < s.n; j++) {
                float sum = 0;
                for (std::uint64_t l = 0; l < s.k; l++)
                    sum += rows[l] * number(data_b, b.type, o.transpose_b ? l * b.step + j : j * b.step + l);
                sum *= alpha;
                if (beta != 0) sum += beta * number(data_c, c.type, j * c.step + i);
                if (o.epilogue == CUBLASLT_EPILOGUE_BIAS) sum += number(o.bias, c.type, i);
                set_number(data_d, c.type, j * c.step + i, sum);
            }
        }
        for (std::uint64_t j = 0; o.epilogue == CUBLASLT_EPILOGUE_BGRADB && j < s.n; j++) {
            float sum = 0;
            for (std::uint64_t l = 0; l < s.k; l++)
                sum += number(data_b, b.type, o.transpose_b ? l * b.step + j : j * b.step + l);
            set_number(o.bias, c.type, j, sum);
        }
        return "";
    }
};

}  // namespace

extern "C" {

const char* cublasLtGetStatusName(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "an error of the stand-in for cuBLASLt";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    static int one;
    *handle = reinterpret_cast<cublasLtHandle_t>(&one);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t sums,
                                        cudaDataType_t scale) {
    if (scale != CUDA_R_32F) complain("cuBLASLt: a scale that is no f32");
    *operation = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{sums});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t what,
                                              const void* value, std::size_t bytes) {
    Operation& o = held<Operation>(operation);
    switch (what) {
        case CUBLASLT_MATMUL_DESC_TRANSA: o.transpose_a = read<std::int32_t>(value, bytes); break;
        case CUBLASLT_MATMUL_DESC_TRANSB: o.transpose_b = read<std::int32_t>(value, bytes); break;
        case CUBLASLT_MATMUL_DESC_EPILOGUE: o.epilogue = read<std::uint32_t>(value, bytes); break;
        case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: o.bias_type = read<std::int32_t>(value, bytes); break;
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER: o.bias = read<void*>(value, bytes); break;
        default: return CUBLAS_STATUS_INVALID_VALUE;
    }
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t step) {
    if (step < std::int64_t(rows)) return CUBLAS_STATUS_INVALID_VALUE;
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, step});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference{0, 0, 256, 256, 256, 256});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete &held<Preference>(preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t what, const void* value,
                                                    std::size_t bytes) {
    Preference& p = held<Preference>(preference);
    switch (what) {
        case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: p.workspace = read<std::uint64_t>(value, bytes); break;
        case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: p.reductions = read<std::uint32_t>(value, bytes); break;
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: p.align_a = read<std::uint32_t>(value, bytes); break;
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: p.align_b = read<std::uint32_t>(value, bytes); break;
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: p.align_c = read<std::uint32_t>(value, bytes); break;
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: p.align_d = read<std::uint32_t>(value, bytes); break;
        default: return CUBLAS_STATUS_INVALID_VALUE;
    }
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t* best, int* found) {
    const Algorithm algorithm{held<Preference>(preference),
                              sizes_of(held<Operation>(operation), held<Layout>(a), held<Layout>(b), held<Layout>(c))};
    *found = 1;
    std::memset(best, 0, sizeof *best);
    std::memcpy(&best->algo, &algorithm, sizeof algorithm);
    best->state = CUBLAS_STATUS_SUCCESS;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* data_a,
                              cublasLtMatrixLayout_t a, const void* data_b, cublasLtMatrixLayout_t b, const void* beta,
                              const void* data_c, cublasLtMatrixLayout_t c, void* data_d, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, std::size_t bytes,
                              cudaStream_t stream) {
    Product p{held<Operation>(operation),
              held<Layout>(a),
              held<Layout>(b),
              held<Layout>(c),
              data_a,
              data_b,
              data_c,
              data_d,
              *static_cast<const float*>(alpha),
              *static_cast<const float*>(beta),
              {}};
    p.s = sizes_of(p.o, p.a, p.b, p.c);
    Algorithm chosen;
    std::memcpy(&chosen, algo, sizeof chosen);
    const auto aligned = [](const void* at, std::uint32_t to) {
        return reinterpret_cast<std::uintptr_t>(at) % to == 0;
    };
    if (!stream) complain("cuBLASLt: the default stream");
    if (std::memcmp(&chosen.sizes, &p.s, sizeof p.s) != 0) complain("cuBLASLt: an algorithm of another shape");
    if (!aligned(data_a, chosen.asked.align_a) || !aligned(data_b, chosen.asked.align_b) ||
        !aligned(data_c, chosen.asked.align_c) || !aligned(data_d, chosen.asked.align_d))
        complain("cuBLASLt: an address less aligned than was said");
    if (!aligned(workspace, 256) || bytes < chosen.asked.workspace)
        complain("cuBLASLt: a workspace too small or unaligned");
    masquerade::ptx::submit_launch(p);
    return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
