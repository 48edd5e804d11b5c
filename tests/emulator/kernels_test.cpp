// SPDX-License-Identifier: MIT
// Tests properties of kernels beyond accuracy: results with the same bits as the CPU's where this is promised, the same
// results in any order of the threads, and work on more rows than one block takes.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/emulator/emulator.h"
#include "tests/emulator/planted.h"
#include "engine/check/ladder.h"

using namespace masquerade;
using namespace masquerade::ladder;
using emulator::AsCuda;
using emulator::Order;
using emulator::Settings;

namespace {

const Op& row_of(const std::string& name) {
    for (const Op& op : ops_table())
        if (op.name == name) return op;
    throw Error("the table has no row " + name);
}

void run(const Call& call) {
    call.forward();
    if (call.op.backward) call.backward();
}

// Runs the op on both devices. Returns the names of those results in `tensors` whose bits differ, or "". If already the
// results of the forwards differ (in a sum over a row), both backwards read the results of the CPU's forward.
std::string other_bits(const Op& op, Sizes sizes, DType type, const std::vector<std::string>& tensors) {
    const Case c = prepared(op, sizes);
    Call cpu(c, type), kernels(c, type, type, Device::cuda);
    run(cpu);
    AsCuda emulated;
    kernels.forward();
    std::string all;
    auto compare = [&](const std::string& name, const Guarded& a, const Guarded& b) {
        for (const std::string& wanted : tensors)
            if (wanted == name && a.bytes() != b.bytes()) all += name + " ";
    };
    for (std::size_t i = 0; i < c.operands.size(); i++) {
        if (!c.operands[i].written()) continue;
        compare(c.operands[i].name, cpu.values[i], kernels.values[i]);
        std::memcpy(kernels.values[i].view().data, cpu.values[i].view().data, cpu.values[i].view().bytes());
    }
    if (c.backward) kernels.backward();
    for (std::size_t i = 0; i < c.operands.size(); i++)
        if (c.backward && c.operands[i].role == Role::input)
            compare("d" + c.operands[i].name, *cpu.gradients[i], *kernels.gradients[i]);
    return all;
}

}  // namespace

TEST_CASE("kernels: what has run as fibers once does not silently fall out of the build") {
    const OpTable& table = emulator::kernels();
    CHECK((table.layernorm_forward && table.layernorm_backward && table.residual_norm_forward));
    CHECK((table.residual_norm_backward && table.convert_forward && table.convert_backward && table.gelu_forward));
    CHECK((table.gelu_backward && table.add_forward && table.add_backward && table.dropout_forward));
    CHECK((table.dropout_backward && table.rotary_forward && table.rotary_backward && table.gather_rows_forward));
    CHECK((table.gather_rows_backward && table.replace_rows_forward && table.replace_rows_backward));
    CHECK((table.store_rows && table.normalise_forward && table.normalise_backward && table.vmf_sample_forward));
    CHECK((table.vmf_sample_backward && table.gaussian_sample_forward && table.gaussian_sample_backward));
    CHECK((table.gaussian_kl_forward && table.gaussian_kl_backward && table.cross_entropy_backward));
    CHECK((table.at_least_forward && table.at_least_backward));
    CHECK((table.attention_forward && table.attention_backward));
    CHECK((table.weighted_sum_forward && table.weighted_sum_backward && table.adamw && table.apollo));
    CHECK((table.linear_forward && table.linear_backward && table.linear_gelu_forward));
    CHECK((table.gelu_linear_backward && table.embedding_forward && table.embedding_backward));
    CHECK((table.linear_rotary_forward && table.linear_rotary_backward));
    CHECK((table.query_key_value_forward && table.query_key_value_backward));
    CHECK((table.cross_entropy_forward && table.global_norm && table.shortlist));
    CHECK((table.head_scores_forward && table.head_scores_backward && table.feature_map_forward));
    CHECK((table.feature_map_backward && table.normalise_backward));
    CHECK((table.local_lambda_forward && table.local_lambda_backward));
    CHECK((table.tanh_forward && table.tanh_backward && table.max_rows_forward && table.max_rows_backward));
    CHECK((table.chosen_logits_forward && table.chosen_logits_backward));
    CHECK((table.slot_loss_forward && table.slot_loss_backward && table.nearest_code_forward &&
           table.nearest_level_forward));
    CHECK((table.straight_through_forward && table.straight_through_backward && table.learn_codes));
    CHECK((table.distance_forward && table.distance_backward && table.coupling_forward && table.coupling_backward));
    CHECK((table.log_det_forward && table.log_det_backward && table.flow_kl_forward && table.flow_kl_backward));
    CHECK((table.actnorm_forward && table.actnorm_backward && table.lu_matrix_forward && table.lu_matrix_backward));
}

TEST_CASE("kernels: dropout draws the words of the CPU") {
    for (DType type : {DType::f32, DType::bf16})
        for (Sizes sizes : {Sizes{5, 1, 1}, Sizes{7, 33, 1}, Sizes{3, 1000, 1}}) {
            CAPTURE(sizes.columns);
            CHECK(other_bits(row_of("dropout"), sizes, type, {"y", "dx"}) == "");
            CHECK(other_bits(row_of("residual_norm"), sizes, type, {"s"}) == "");
        }
}

// Heads of 10 numbers are rotated number by number. Heads of 600 numbers are rotated in packets, for which the 32 lanes
// need several rounds.
TEST_CASE("kernels: rotated rows have the bits of the CPU") {
    for (DType type : {DType::f32, DType::bf16})
        for (Sizes sizes : {Sizes{3, 3, 5}, Sizes{3, 8, 300}}) {
            CAPTURE(sizes.other);
            CHECK(other_bits(row_of("rotary"), sizes, type, {"y", "dx"}) == "");
        }
}

TEST_CASE("kernels: rows that do not begin at multiples of 16 bytes are not read by packets") {
    constexpr int N = 3, C = 8;
    std::vector<float> from(1 + N * C, 3), to(1 + N * C), scale(C, 2);
    AsCuda emulated;
    for (int begin : {0, 1}) {
        const auto matrix = [&](std::vector<float>& numbers) {
            return View{numbers.data() + begin, DType::f32, Device::cuda, {N, C}, "matrix"};
        };
        scale_columns_forward(matrix(from), {scale.data(), DType::f32, Device::cuda, {C}, "w"}, matrix(to));
        CHECK(std::vector<float>(to.begin() + begin, to.end() - 1 + begin) == std::vector<float>(N * C, 6));
    }
}

// The kernel adds chunks of 64 rows, and then the sums of the chunks in order. A block of 32 warps takes 2,048 rows at
// a time.
TEST_CASE("kernels: sums of columns have the bits of the CPU") {
    for (DType type : {DType::f32, DType::bf16})
        for (Sizes sizes : {Sizes{1, 3, 1}, Sizes{63, 33, 1}, Sizes{65, 31, 1}, Sizes{300, 40, 1}, Sizes{130, 520, 1},
                            Sizes{2048, 5, 1}, Sizes{2049, 5, 1}, Sizes{4200, 3, 1}}) {
            CAPTURE(sizes.rows);
            CAPTURE(sizes.columns);
            CHECK(other_bits(row_of("layernorm"), sizes, type, {"dw", "db"}) == "");
            CHECK(other_bits(row_of("residual_norm"), sizes, type, {"dw", "db"}) == "");
        }
}

// layernorm_backward leaves dw and db to add_late_sums(). More norms than one launch can add, with different numbers of
// columns; every third one adds to a gradient.
TEST_CASE("kernels: sums that are added late have the bits of sums at once") {
    constexpr int norms = 120, N = 130;
    struct Norm {
        int C;
        std::vector<float> dy, x, w, dx, dw, db;
        explicit Norm(int i) : C(4 + i % 37), dy(N * C), x(N * C), w(C, 1), dx(N * C), dw(C, 0.5f), db(C, 0.25f) {
            for (int k = 0; k < N * C; k++) dy[k] = float((k * 7 + i) % 23) / 8 - 1, x[k] = float(k * 5 % 31) / 16 - 1;
        }
        void backward(bool add, bool late) {
            std::vector<float> mean(N, 0.125f), rstd(N, 1.5f);
            const auto view = [&](std::vector<float>& of, Shape shape) {
                return View{of.data(), DType::f32, Device::cuda, shape, "norm"};
            };
            layernorm_backward(view(dy, {N, C}), view(x, {N, C}), view(w, {C}), view(mean, {N}), view(rstd, {N}),
                               {view(dx, {N, C})}, {view(dw, {C}), add, late}, {view(db, {C}), add, late});
        }
    };
    AsCuda emulated;
    std::vector<Norm> at_once, late;
    for (int i = 0; i < norms; i++) at_once.emplace_back(i), late.emplace_back(i);
    for (int i = 0; i < norms; i++) at_once[i].backward(i % 3 == 0, false), late[i].backward(i % 3 == 0, true);
    CHECK(late[0].dw == at_once[0].dw);  // added when the list was full
    const Norm &last = late[norms - 1], untouched(norms - 1);
    CHECK(last.dw == untouched.dw);
    float other = 0;
    fibers::add_sums_left(&other);
    CHECK(last.db == untouched.db);
    fibers::add_sums_left(late[norms - 2].db.data());  // adds all
    bool equal = true;
    for (int i = 0; i < norms; i++)
        equal = equal && late[i].dw == at_once[i].dw && late[i].db == at_once[i].db && late[i].dx == at_once[i].dx;
    CHECK(equal);
    Norm forgotten(1);
    forgotten.backward(false, true);
    fibers::forget_sums_left();
    fibers::add_sums_left(nullptr);
    CHECK(forgotten.dw == Norm(1).dw);
}

// Uses sizes like those for the column sums of layernorm. The numbers that are added for the bias are rounded.
TEST_CASE("kernels: sums of linear's bias have the bits of the CPU") {
    for (DType type : {DType::f32, DType::bf16})
        for (Sizes sizes : {Sizes{65, 3, 33}, Sizes{300, 2, 5}, Sizes{2049, 1, 2}}) {
            CAPTURE(sizes.rows);
            CHECK(other_bits(row_of("linear"), sizes, type, {"db"}) == "");
        }
}

// The rows are sorted by their ids, which have one, two or three digits of 8 bits. Tiles have 512 rows. Some sums are
// over a whole tile, and some over no row.
TEST_CASE("kernels: the sums of an embedding have the bits of the CPU") {
    for (DType type : {DType::f32, DType::bf16})
        for (Sizes sizes : {Sizes{1, 1, 1}, Sizes{31, 33, 1}, Sizes{700, 5, 3}, Sizes{513, 31, 256},
                            Sizes{1500, 2, 257}, Sizes{3000, 1, 70000}}) {
            CAPTURE(sizes.rows);
            CAPTURE(sizes.other);
            CHECK(other_bits(row_of("embedding"), sizes, type, {"y", "dw"}) == "");
        }
}

// The kernel adds chunks of 4,096 numbers, and works on 1,024 chunks at a time.
TEST_CASE("kernels: the global norm has the bits of the CPU") {
    for (int n : {0, 1, 15, 17, 4095, 4096, 4097, 8191, 12289, 100000}) {
        CAPTURE(n);
        CHECK(other_bits(row_of("global_norm"), {n, 1, 1}, DType::f32, {"norm"}) == "");
    }
    const std::int64_t many = 1025 * 4096 + 7;
    Guarded g({many}, DType::f32, "g", Device::cuda), a({1}, DType::f32, "a"), b({1}, DType::f32, "b", Device::cuda);
    Sequence random(1, "norm");
    for (std::int64_t i = 0; i < many; i++) g.view().as<float>()[i] = float(random.uniform_double());
    cpu::global_norm(g.view(), a.view());
    AsCuda emulated;
    global_norm(g.view(), b.view());
    CHECK(a.bytes() == b.bytes());
}

// A part has 1,024 logits. Rows of 2,600 logits are read by packets, and rows of 2,571 number by number.
TEST_CASE("kernels: a shortlist has the bits of the CPU") {
    for (Sizes sizes : {Sizes{1, 1, 1}, Sizes{3, 33, 40}, Sizes{2, 1024, 5}, Sizes{2, 1025, 5}, Sizes{3, 1028, 1028},
                        Sizes{5, 2600, 20}, Sizes{5, 2571, 20}}) {
        CAPTURE(sizes.columns);
        CHECK(other_bits(row_of("shortlist"), sizes, DType::f32, {"best", "ids", "parts"}) == "");
    }
}

TEST_CASE("kernels: a shortlist of logits that are NaN or infinite") {
    constexpr int V = 40, W = 36;
    for (float odd : {NAN, -NAN, INFINITY, -INFINITY})
        for (int ordinary : {0, 1, 30}) {
            std::vector<float> x(V, odd);
            for (int v = 0; v < ordinary; v++) x[std::size_t(V - 1 - v)] = float(v % 7);
            std::vector<float> found[2];
            for (Device device : {Device::cpu, Device::cuda}) {
                AsCuda emulated;
                std::vector<float>& to = found[device == Device::cuda];
                to.resize(2 * W + 1);
                shortlist({x.data(), DType::f32, device, {1, V}, "x"}, {&to[0], DType::f32, device, {1, W}, "best"},
                          {&to[W], DType::f32, device, {1, W}, "ids"},
                          {&to[2 * W], DType::f32, device, {1, 1}, "parts"});
            }
            CAPTURE(odd);
            CAPTURE(ordinary);
            for (int i = 0; i < W; i++) CHECK(found[0][std::size_t(W + i)] == found[1][std::size_t(W + i)]);
            const bool finite = std::isfinite(found[0].back());
            CHECK(std::isfinite(found[1].back()) == finite);
            CHECK(finite == (odd == -INFINITY && ordinary > 0));
        }
}

// The rows are divided into blocks of 2,048. The rows of the last block must be as right as those of the first. The
// gradients of w and b must be sums over all rows. A row has at most 1,024 threads (or 32), so each thread works on
// several words.
TEST_CASE("kernels: cross-entropy and chosen logits of more rows than a block has, and of more words than threads") {
    for (DType type : {DType::f32, DType::bf16})
        for (auto [tried, name] : {std::pair{Sizes{2 * 2048 + 3, 2, 3}, "cross_entropy"},
                                   {Sizes{2, 2, 2500}, "cross_entropy"},
                                   {Sizes{2, 2, 2500}, "cross_entropy, smoothed"},
                                   {Sizes{2 * 2048 + 3, 2, 3}, "chosen_logits"},
                                   {Sizes{1400, 2, 3}, "chosen_logits, mixture"},
                                   {Sizes{2, 2, 2500}, "chosen_logits"}}) {
            const Sizes sizes = tried;
            const Case c = prepared(row_of(name), sizes);
            CAPTURE(sizes.other);
            Call exact(c, DType::f64, type), kernels(c, type, type, Device::cuda);
            exact.forward(), exact.backward();
            AsCuda emulated;
            kernels.forward(), kernels.backward();
            for (std::size_t i = 0; i < c.operands.size(); i++) {
                const Operand& o = c.operands[i];
                if (!o.written() && o.role != Role::input) continue;
                const View &found = (o.written() ? kernels.values[i] : *kernels.gradients[i]).view(),
                           &right = (o.written() ? exact.values[i] : *exact.gradients[i]).view();
                CAPTURE(o.name);
                CHECK(error_of(found, right, o.floor) <= bound_of(o, type));
            }
        }
}

// The gradients of a row without weight are 0, whatever its logits are. Tensors that are not requested are not touched.
TEST_CASE("kernels: cross-entropy of rows without weight, and losses alone") {
    for (DType type : {DType::f32, DType::bf16}) {
        const Case c = prepared(row_of("cross_entropy"), {4, 3, 40});
        Call all(c, type, type, Device::cuda), losses(c, type, type, Device::cuda);
        set_number(all("h"), 3, INFINITY);  // row 1, whose weight is 0
        AsCuda emulated;
        all.forward();
        for (int k = 0; k < 3; k++) CHECK(number(all("h1"), 3 + k).real() == 0);
        CHECK(number(all("b1"), 0).real() == number(all("b1"), 0).real());
        cross_entropy_forward(losses("h"), losses("w"), losses("b"), losses.ints("targets"), View{}, 0, losses("loss"),
                              losses("lse"), View{}, View{}, View{}, View{});
        CHECK(number(losses("loss"), 0) == number(all("loss"), 0));
        CHECK(number(losses("lse"), 3) == number(all("lse"), 3));
    }
}

// On a GPU, every operation whose result is NaN gives this NaN. If a kernel added n to the exponent bits of this NaN,
// the result would be a number.
TEST_CASE("kernels: cross-entropy of a NaN is NaN") {
    const Case c = prepared(row_of("cross_entropy"), {4, 3, 40});
    Call all(c, DType::f32, DType::f32, Device::cuda);
    const std::uint32_t nan = 0x7fffffff;
    std::memcpy(all("b").as<float>(), &nan, sizeof nan);
    AsCuda emulated;
    all.forward();
    CHECK(std::isnan(number(all("lse"), 0).real()));
    CHECK(std::isnan(number(all("loss"), 0).real()));
    CHECK(std::isnan(number(all("b1"), 0).real()));
}

TEST_CASE("kernels: one result in every order of blocks, warps and lanes") {
    for (const Op& op : ops_table()) {
        const std::string name = op.name.substr(0, op.name.find(','));
        const Case c = prepared(op, op.middle.front());
        Call first(c, DType::f32, DType::f32, Device::cuda);
        try {
            AsCuda emulated;
            run(first);
        } catch (const Error& e) {
            CHECK(std::string(e.what()).find("has no kernel") != std::string::npos);
            continue;
        }
        for (Settings settings :
             {Settings{Order::reversed}, Settings{Order::shuffled, 1}, Settings{Order::shuffled, 2}}) {
            CAPTURE(name);
            CAPTURE(int(settings.order));
            AsCuda emulated(settings);
            Call again(c, DType::f32, DType::f32, Device::cuda);
            run(again);
            int different = 0;
            for (std::size_t i = 0; i < c.operands.size(); i++) {
                different += first.values[i].bytes() != again.values[i].bytes();
                if (first.gradients[i]) different += first.gradients[i]->bytes() != again.gradients[i]->bytes();
            }
            CHECK(different == 0);
        }
    }
}

// If most segments are short, attention in bf16 takes tiles of 16 query rows and 32 keys instead of 64 and 64. The
// online softmax then rounds p to bf16 against other maxima. With ProductRule::deterministic, the batch does not choose
// the tiles.
TEST_CASE("kernels: with deterministic, a text has the same attention alone, beside short texts, and row by row") {
    struct Deterministic {
        Deterministic() { fibers::product_rule().deterministic = true; }
        ~Deterministic() { fibers::product_rule() = {}; }
    };
    constexpr int N = 64;
    using Numbers16 = std::vector<bfloat16>;
    // Returns the bits of y, dq and dkv of the last `rows` rows of a text of N rows. These rows alone have queries, as
    // in decoding. `others` texts of one row follow.
    const auto bits = [&](int D, int rows, int others) {
        const auto drawn = [&](const char* name, int first, int count, int columns) {
            Sequence random(1, name);
            Numbers16 all(std::size_t((N + others) * columns));
            for (bfloat16& x : all) x = bfloat16(float(2 * random.normal()));
            return Numbers16(all.begin() + first * columns, all.begin() + (first + count) * columns);
        };
        const int queries = rows + others, keys = N + others;
        Numbers16 q = drawn("q", N - rows, queries, D), kv = drawn("kv", 0, keys, 2 * D),
                  dy = drawn("dy", N - rows, queries, D), y(q.size()), dq(q.size()), dkv(kv.size());
        std::vector<float> lse(static_cast<std::size_t>(queries));
        SegmentGraph graph;
        graph.documents = 1 + others;
        for (int text = 0; text <= others; text++) {
            QuerySegment one;
            one.begin = text > 0 ? rows + text - 1 : 0, one.end = rows + text, one.offset = text > 0 ? 0 : N - rows;
            one.document = one.self = text, one.rule = Rule::causal;
            graph.see({0, text > 0 ? N + text - 1 : 0, N + text});
            graph.add(one);
        }
        const auto view = [](auto& of, DType type, Shape shape) {
            return View{of.data(), type, Device::cuda, shape, "tensor"};
        };
        const auto of_queries = [&](Numbers16& of) { return view(of, DType::bf16, {queries, D}); };
        const auto of_keys = [&](Numbers16& of) { return view(of, DType::bf16, {keys, 2 * D}); };
        const View sums = view(lse, DType::f32, {queries, 1});
        const AttentionRule rule{1, 0, {}, {}};
        AsCuda emulated;
        attention_forward(of_queries(q), Views{of_keys(kv)}, graph, rule, of_queries(y), sums);
        attention_backward(of_queries(dy), of_queries(q), Views{of_keys(kv)}, of_queries(y), sums, graph, rule,
                           Grad{of_queries(dq)}, Grads{Grad{of_keys(dkv)}});
        std::vector<std::uint16_t> all[3];
        for (int i = 0; i < rows * D; i++)
            all[0].push_back(y[std::size_t(i)].bits), all[1].push_back(dq[std::size_t(i)].bits);
        for (int i = 0; i < N * 2 * D; i++) all[2].push_back(dkv[std::size_t(i)].bits);
        return std::array{all[0], all[1], all[2]};
    };
    const Deterministic on;
    for (int D : {32, 64}) {
        CAPTURE(D);
        const auto alone = bits(D, N, 0), last = bits(D, 1, 0);
        CHECK(alone == bits(D, N, 4));
        const auto end_of = [&](const std::vector<std::uint16_t>& all) {
            return std::vector(all.end() - D, all.end());
        };
        CHECK((end_of(alone[0]) == last[0] && end_of(alone[1]) == last[1]));
    }
}

// dx and df may be the same tensor. The lanes that store a number of dx are not the lanes that add df to it.
TEST_CASE("kernels: one tensor for both gradients of residual_norm") {
    for (DType type : {DType::f32, DType::bf16})
        for (Settings settings : {Settings{}, Settings{Order::reversed}, Settings{Order::shuffled}}) {
            const Case c = prepared(row_of("residual_norm"), {9, 70, 1});
            Call apart(c, type, type, Device::cuda), one(c, type, type, Device::cuda);
            AsCuda emulated(settings);
            apart.forward();
            const View x = apart.grad("x").view, f = apart.grad("f").view;
            const RowNames rows{apart.ints("document"), apart.ints("position")};
            const DropoutRule rule{0.5f, make_stream(5, "ladder", 2)};
            auto back = [&](Grad dx, Grad df) {
                residual_norm_backward(apart.d("y"), apart("s"), rows, rule, apart("w"), apart("mean"), apart("rstd"),
                                       dx, df, Grad{}, Grad{});
            };
            back(Grad{x}, Grad{f});
            const View both = one.grad("x").view;
            back(Grad{both}, Grad{both, true});
            double worst = 0;
            for (std::int64_t i = 0; i < both.count(); i++) {
                double expected = number(x, i).real() + number(f, i).real(), error = number(both, i).real() - expected;
                worst = std::abs(error) <= worst ? worst : std::abs(error);
            }
            CHECK(worst <= (type == DType::bf16 ? 0.1 : 1e-5));
        }
}
