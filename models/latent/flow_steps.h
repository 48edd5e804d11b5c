// SPDX-License-Identifier: MIT
// A normalising flow f of vectors with Z numbers, as a series of invertible steps. It defines the density
//   p(z) = N(f(z); 0, 1) |det df/dz|
// and a sample z = f^-1(n), where n is a sample of N(0, 1). Each step is a linear map u = W z + b, which mixes the
// numbers, followed by a coupling layer: a small net computes from the first half of u the scale and the shift of the
// second half. With ActNorm, each step begins by scaling and shifting each number of the vector, and the linear map has
// no bias b.
//                                                          Dinh et al. 2016; Kingma & Dhariwal 2018
#pragma once
#include <string>
#include <vector>

#include "engine/nn/parameters.h"
#include "engine/tape/tape.h"
#include "input/lists.h"

namespace masquerade {

struct FlowOptions {
    int steps = 3, width = 64;  // width: number of hidden units of the net in each coupling layer
    bool actnorm = false;
    // The linear map W of each step. "full": any matrix. "lu": W = P L (U + diag(s)), where P is a fixed permutation, L
    // is lower triangular with ones on its diagonal, and U is strictly upper triangular.
    std::string linear = "full";
};

class FlowSteps {
  public:
    FlowSteps() = default;
    // Adds the parameters of a flow of Z = `size` numbers, under `path`. Throws BadUsage if Z is above 1024.
    FlowSteps(Parameters& parameters, const std::string& path, int size, const FlowOptions& options);

    struct Mapped {
        // u (B,Z) is f(z). log |det df/dz| of row b is log_dets[b] + log_det: log_dets (B) has one number per row, and
        // log_det (1) is the part that all rows share.
        Tensor *u, *log_dets, *log_det;
    };
    Mapped operator()(Tape& tape, Tensor* z) const;

    // Maps one vector z on the host in double: returns f(z), and adds log |det df/dz| to log_det.
    Numbers forward(Numbers z, double& log_det) const;
    Numbers inverse(Numbers u) const;  // f^-1(u)

    // Whether the scales and shifts of ActNorm still have to be computed from the first batch of vectors z. start()
    // gets these vectors. It chooses the scales and shifts such that, for these vectors, the outputs of each ActNorm
    // have mean 0 and standard deviation 1 in each column. A checkpoint stores whether start() has run.
    bool waits_for_data() const;
    void start(Vectors rows) const;  // changes parameters; const, because they belong to Parameters

  private:
    // A linear map whose weight is never rounded to bf16, since rounding would make the flow's inverse inexact. The
    // weight is declared as a vector, because only matrices are rounded.
    struct Linear {
        Tensor *weight, *bias;  // weight (O * I): the rows of the (O,I) matrix, one after another; bias (O), or null
        Linear(Parameters& p, const std::string& path, int I, int O, Init init, bool has_bias = true);
        Tensor* matrix(Tape& tape, const std::string& name) const;
        Numbers operator()(const Numbers& x) const;
        int out, in;
    };
    struct Step {
        Tensor *scale, *shift;  // (Z) scale and shift of ActNorm; null without ActNorm
        // The linear map W of this step. If FlowOptions::linear is "lu", the weight of `mix` has the factors of W, in
        // the form that lu_matrix_forward reads (engine/ops/ops.h).
        Linear mix;
        Tensor* order;  // (Z) the permutation P of W = P L (U + diag(s)); null unless FlowOptions::linear is "lu"
        // The two layers of the coupling layer's net. The output of `st` holds r, then the shifts t; the scales are
        // exp(2 tanh(r/2)).
        Linear hidden, st;
    };
    Numbers net(const Step& step, Numbers u) const;
    Numbers forward(const Step& step, Numbers z, double& log_det) const;

    int size_ = 0, from_ = 0;  // from_: index of the first number of a vector that a coupling layer changes
    std::vector<Step> steps_;
    Tensor* started_ = nullptr;  // one number: 1 after start(), else 0; null without ActNorm
};

}  // namespace masquerade
