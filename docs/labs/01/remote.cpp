// SPDX-License-Identifier: MIT
// The functions of lab 1 that the check calls in the student's process. REMOTE lists the result type, the name and the
// parameters of a function, then its arguments as they are sent (docs/labs/remote/judge.h).
//
// Each call sends the whole model, with all its numbers, to the student's process, and takes it back. Therefore, the
// student's process need not keep anything from one call to the next.
#include "docs/labs/01/lab.h"
#include "docs/labs/remote/both.h"
#include "engine/ops/cpu/parallel.h"

#ifndef LAB_JUDGE
static const bool has_one_thread = (masquerade::set_threads(1), true);  // the cage forbids starting threads
#endif

namespace lab {

static std::vector<Matrix*> all_of(Model& m) {
    std::vector<Matrix*> all = m.parameters();
    for (Matrix* each :
         {&m.norm1.mean, &m.norm1.rstd, &m.norm2.mean, &m.norm2.rstd, &m.norm3.mean, &m.norm3.rstd, &m.x,
          &m.n1,         &m.q,          &m.kv,         &m.attended,   &m.lse,        &m.projected,  &m.s1,
          &m.n2,         &m.u,          &m.a,          &m.outer,      &m.s2,         &m.h,          &m.losses,
          &m.lse_words,  &m.loss,       &m.h1,         &m.token1,     &m.bias1})
        all.push_back(each);
    return all;
}
static void put_model(remote::Message& m, Model& model) {
    for (const Matrix* each : all_of(model))
        for (const double* from : {each->numbers.get(), each->gradient.get()})
            remote::put(m, std::vector<double>(from, from + each->shape.count()));
}
static void take_model(remote::Message& m, Model& model) {
    for (Matrix* each : all_of(model))
        for (double* to : {each->numbers.get(), each->gradient.get()}) {
            std::vector<double> numbers;
            remote::take(m, numbers);
            if (std::int64_t(numbers.size()) != each->shape.count())
                throw remote::Broken("a matrix came back with another size");
            std::copy(numbers.begin(), numbers.end(), to);
        }
}

#ifdef LAB_JUDGE
struct Whole {
    Model& model;
};
static void put_value(remote::Message& m, const Whole& w) {
    const Sizes& s = w.model.size;
    for (int each : {s.N, s.V, s.C, s.H, s.F}) remote::put(m, each);
    put_model(m, w.model);
}
static void take_back(remote::Message& m, const Whole& w) { take_model(m, w.model); }
static void put_value(remote::Message& m, const Batch& b) {
    std::vector<int> lengths;
    for (const Document& d : b.documents) lengths.push_back(d.source), lengths.push_back(d.target);
    const double* const weights = b.weights.numbers.get();
    remote::put(m, lengths), remote::put(m, b.ids), remote::put(m, b.targets);
    remote::put(m, std::vector<double>(weights, weights + b.weights.shape.count()));
}
double forward(Model& m, const Batch& batch) { return remote::call<double>("forward", Whole{m}, batch); }
void backward(Model& m, const Batch& batch) { remote::call<void>("backward", Whole{m}, batch); }
void update(Model& m, double rate) { remote::call<void>("update", Whole{m}, rate); }
#else
static const remote::Served served_forward("forward", forward), served_backward("backward", backward),
    served_update("update", update);
#endif

}  // namespace lab

#ifndef LAB_JUDGE
template <>
struct remote::Parameter<lab::Model&> {
    std::unique_ptr<lab::Model> model;
    void read(Message& m) {
        lab::Sizes s;
        for (int* each : {&s.N, &s.V, &s.C, &s.H, &s.F}) take(m, *each);
        model = std::make_unique<lab::Model>(s);
        take_model(m, *model);
    }
    lab::Model& value() { return *model; }
    void back(Message& m) { put_model(m, *model); }
};
template <>
struct remote::Parameter<const lab::Batch&> {
    std::unique_ptr<lab::Batch> batch;
    void read(Message& m) {
        std::vector<int> lengths, ids, targets;
        std::vector<double> weights;
        take(m, lengths), take(m, ids), take(m, targets), take(m, weights);
        batch.reset(new lab::Batch{{}, ids, targets, {"weights", {std::int64_t(weights.size())}}});
        for (std::size_t i = 0; i < lengths.size(); i += 2) batch->documents.push_back({lengths[i], lengths[i + 1]});
        std::copy(weights.begin(), weights.end(), batch->weights.numbers.get());
    }
    const lab::Batch& value() { return *batch; }
    void back(Message&) {}
};
#endif
