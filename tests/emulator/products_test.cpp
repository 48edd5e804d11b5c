// SPDX-License-Identifier: MIT
// Tests the engine's own matrix product, which runs as fibers: its numbers against double; that its bits do not depend
// on other rows and columns; and when it is chosen.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/emulator/products.h"
#include "tests/ladder_climb.h"

using namespace masquerade;
using namespace masquerade::ladder;
using emulator::AsCuda;
using emulator::Order;
using emulator::Settings;
using emulator::TensorSums;

namespace {

// Tiles are 16 x 64 or 64 x 128, chunks of the depth have 16 to 64 steps, and packets have 4 or 8 numbers. In each
// line, some size is such a size, or one more or one less.
const std::vector<std::vector<std::int64_t>> sizes = {
    {1, 1, 1},    {1, 65, 33},  {2, 1, 31},   {33, 2, 1},   {1, 129, 127}, {15, 63, 17}, {17, 16, 15},
    {16, 64, 64}, {63, 17, 65}, {65, 33, 63}, {129, 15, 2}, {31, 127, 16}, {65, 72, 40},
};

struct WithRule {
    explicit WithRule(ProductRule rule) { fibers::product_rule() = rule; }
    WithRule(const WithRule&) = delete;
    ~WithRule() { fibers::product_rule() = {}; }
};

struct Refusal {
    explicit Refusal(bool (*refuses)(const Multiplication&)) { emulator::refuses_product = refuses; }
    Refusal(const Refusal&) = delete;
    ~Refusal() { emulator::refuses_product = nullptr; }
};

const Op& row_of(const std::string& name) {
    for (const Op& op : ops_table())
        if (op.name == name) return op;
    throw Error("the table has no row " + name);
}

}  // namespace

TEST_CASE("products: every form and size, in tiles of both sizes, against double") {
    std::size_t turn = 0;
    for (Form form : all_forms())
        for (std::int64_t shift : {0, 1}) {
            form.shift = shift;
            for (std::size_t s = 0; s < sizes.size(); s++) {
                const TileSize size = turn++ % 2 ? TileSize::small : TileSize::large;
                const Product product(form, sizes[s][0], sizes[s][1], sizes[s][2]);
                CAPTURE(form.name());
                CAPTURE(s);
                CAPTURE(int(size));
                CHECK(product.run_and_compare(size) == "");
            }
        }
}

// Tests rows and columns at the end, at the beginning and inside of tiles, with both tile sizes, with aligned and
// unaligned addresses, and with any form.
TEST_CASE("products: the bits of an element are those of its row and its column alone") {
    const std::int64_t M = 66, N = 131, K = 130;
    for (DType type : {DType::f32, DType::bf16}) {
        const Product all({type, DType::f32, false, false, false, true}, M, N, K);
        all.run(TileSize::large);
        for (TileSize size : {TileSize::small, TileSize::large, TileSize::fitting})
            for (int form = 0; form < 8; form++) {
                const Product other({type, DType::f32, bool(form & 1), bool(form & 2), false, true, form / 4}, M, N, K);
                other.run(size);
                CAPTURE(form);
                CHECK((other.c.bits(0, M * N) == all.c.bits(0, M * N)));
            }
        for (std::int64_t i : {0, 15, 16, 63, 64, 65})
            for (std::int64_t j : {0, 7, 63, 64, 127, 128, 130}) {
                const Product row({type, DType::f32, false, false, false, true}, 1, N, K),
                    column({type, DType::f32, false, false, false, true}, M, 1, K),
                    one({type, DType::f32, false, true, false, true}, 1, 1, K);
                for (std::int64_t l = 0; l < K; l++) {
                    for (const Product* p : {&row, &one}) p->a.set(l, all.a[i * K + l]);
                    for (const Product* p : {&column, &one}) p->b.set(l, all.b[l * N + j]);
                }
                std::memcpy(row.b.data(), all.b.data(), all.b.bits(0, K * N).size());
                std::memcpy(column.a.data(), all.a.data(), all.a.bits(0, M * K).size());
                std::memcpy(row.bias.data(), all.bias.data(), all.bias.bits(0, N).size());
                for (const Product* p : {&column, &one}) p->bias.set(0, all.bias[j]);
                CAPTURE(i);
                CAPTURE(j);
                one.run();
                CHECK((one.c.bits(0, 1) == all.c.bits(i * N + j, 1)));
                if (j == 0) row.run();
                if (j == 0) CHECK((row.c.bits(0, N) == all.c.bits(i * N, N)));
                if (i > 0) continue;
                column.run();
                for (std::int64_t r = 0; r < M; r++) CHECK((column.c.bits(r, 1) == all.c.bits(r * N + j, 1)));
            }
    }
}

TEST_CASE("products: one result in every order of blocks, warps and lanes") {
    for (const Form& form : {Form{DType::f32, DType::f32}, Form{DType::bf16, DType::f32, true, true},
                             Form{DType::bf16, DType::bf16, false, true}})
        for (TileSize size : {TileSize::small, TileSize::large}) {
            const Product first(form, 67, 133, 100);
            first.run(size);
            for (Settings settings :
                 {Settings{Order::reversed}, Settings{Order::shuffled, 1}, Settings{Order::shuffled, 2}}) {
                AsCuda emulated(settings);
                const Product again(form, 67, 133, 100);
                again.run(size);
                CAPTURE(form.name());
                CHECK((again.c.bits(0, 67 * 133) == first.c.bits(0, 67 * 133)));
            }
        }
}

// Tests a product with more rows of tiles than a grid may have in y, and a product with so many tiles that large tiles
// are chosen.
TEST_CASE("products: a million rows, and tiles chosen by size") {
    AsCuda unwatched({Order::forward, 1, false});
    const std::int64_t rows = 65536 * 16 + 1;
    const Product tall({DType::f32, DType::f32}, rows, 1, 1);
    CHECK(tall.run_and_compare(TileSize::small) == "");
    const Product many({DType::f32, DType::f32}, 64 * 16, 128 * 16, 1), few({DType::f32, DType::f32}, 64, 128, 1);
    const long before = emulator::counts().switches;
    CHECK(many.run_and_compare(TileSize::fitting) == "");
    const long of_many = emulator::counts().switches - before;
    few.run();
    // `many` has 256 large tiles, and `few` has 8 small tiles. A tile takes as many switches, whatever its size.
    CHECK(emulator::counts().switches - before - of_many == 8 * of_many / 256);
}

TEST_CASE("products: what is no product is refused by name") {
    const Product p({DType::bf16, DType::bf16, false, false, false, true}, 2, 3, 4);
    Multiplication sums = p.asked();
    std::vector<float> to(2);
    sums.sums = to.data();
    CHECK_THROWS_WITH_AS(fibers::multiply(sums),
                         "no kernel makes a product (2,4) bf16 times (4,3) bf16 in bf16 with a bias with sums of rows; "
                         "expected f32 throughout, or bf16 in f32 or bf16, sizes above 0, and sums of rows only in f32 "
                         "and without a bias",
                         Error);
    const Product q({DType::bf16, DType::f32}, 2, 3, 4);
    Multiplication tiled = q.asked();
    tiled.sums = to.data();
    CHECK_THROWS_AS(fibers::tiled_multiply(tiled), Error);
    Multiplication none = Product({}, 1, 1, 1).asked();
    none.k = 0;
    CHECK_THROWS_AS(fibers::tiled_multiply(none), Error);
}

// Computes y of the op linear. All numbers are whole, so that their sums have no rounding errors.
TEST_CASE("products: what the place of cuBLASLt refuses, the engine's own product makes") {
    static int asked;
    for (DType type : {DType::f32, DType::bf16}) {
        const Case c = prepared(row_of("linear"), {17, 33, 5});
        Call plain(c, type, type, Device::cuda), refused(c, type, type, Device::cuda);
        for (Call* call : {&plain, &refused})
            for (const char* name : {"x", "w", "b"})
                for (std::int64_t i = 0; i < (*call)(name).count(); i++)
                    set_number((*call)(name), i, double(i * 7 % 9 - 4));
        AsCuda emulated;
        const long before = emulator::counts().launches;
        plain.forward();
        const long of_plain = emulator::counts().launches - before;
        asked = 0;
        const Refusal some([](const Multiplication& p) { return asked++, p.k == 33; });
        refused.forward();
        CHECK(asked == 1);
        CHECK(emulator::counts().launches - before - of_plain == of_plain + 1);
        CHECK((refused.values[3].bytes() == plain.values[3].bytes()));
        refused.backward();  // dx sums over 5 numbers, and dw and db over 17; neither of these products is refused
        CHECK(asked == 3);
    }
}

// The copy differs from the bias here, so that y shows which of them was added.
TEST_CASE("products: the bias of a result in bf16 is its copy in bf16, which needs no launch") {
    const Case c = prepared(row_of("linear"), {17, 33, 5});
    for (DType result : {DType::bf16, DType::f32}) {
        Call call(c, result, result, Device::cuda), zero(c, result, result, Device::cuda);
        for (std::int64_t i = 0; i < 5; i++) set_number(call("b"), i, 1), set_number(zero("b"), i, 0);
        View b = call("b");
        b.rounded = zero("b").data;
        AsCuda emulated;
        zero.forward();
        const long before = emulator::counts().launches;
        linear_forward(call("x"), call("w"), b, call("y"));
        CHECK(emulator::counts().launches == before);
        CHECK((call.values[3].bytes() == zero.values[3].bytes()) == (result == DType::bf16));
    }
}

// All numbers are whole, as above. A product that also computes db needs no launches in these tests. It is requested
// first; if it is refused, db is computed by the two kernels of column_sums.cuh.
TEST_CASE("products: db comes with the product of dw, or is summed apart") {
    for (DType type : {DType::f32, DType::bf16}) {
        const Case c = prepared(row_of("linear"), {170, 3, 5});
        Call together(c, type, type, Device::cuda), apart(c, type, type, Device::cuda);
        for (Call* call : {&together, &apart}) {
            for (std::int64_t i = 0; i < (*call)("x").count(); i++) set_number((*call)("x"), i, double(i % 5 - 2));
            for (std::int64_t i = 0; i < call->d("y").count(); i++) set_number(call->d("y"), i, double(i * 7 % 9 - 4));
        }
        AsCuda emulated;
        const long before = emulator::counts().launches;
        together.backward();
        CHECK(emulator::counts().launches == before);
        together.add(2), together.backward();  // this time, db is added by a separate launch
        CHECK(emulator::counts().launches == before + 1);
        const Refusal sums([](const Multiplication& p) { return p.sums != nullptr; });
        apart.backward(), apart.add(2), apart.backward();
        CHECK(emulator::counts().launches == before + 5);
        for (std::size_t i = 0; i < c.operands.size(); i++)
            if (c.has_gradient(c.operands[i])) CHECK((together.gradients[i]->bytes() == apart.gradients[i]->bytes()));
        apart.add(2, false);
        const WithRule own({false, true});
        const Refusal never([](const Multiplication& p) -> bool { throw Error(p, " is asked for"); });
        apart.backward();
        apart.add(2), apart.backward();
        CHECK((together.gradients[2]->bytes() == apart.gradients[2]->bytes()));
    }
}

// The contract also requires that a row computed alone has the same bits as the row among other rows.
TEST_CASE("products: ops climb the ladder with the engine's own product") {
    const WithRule rule({false, true});
    const Refusal never([](const Multiplication& p) -> bool { throw Error(p, " is asked for elsewhere"); });
    for (const char* name :
         {"linear", "linear, y unrounded", "linear_gelu, erf", "gelu_linear, tanh", "cross_entropy", "head_scores"}) {
        Op op = row_of(name);
        op.costly = true;
        AsCuda emulated;
        Findings findings;
        findings.op = op.name + " (own product)";
        check_cuda_precision(op, findings);
        check_cuda_contract(op, findings);
        for (const std::string& fault : findings.faults) FAIL_CHECK(fault);
        CHECK(findings.checks > 100);
    }
}

// Returns the product of the row (1, x, x ... x) of 16 numbers and a column of 16 ones.
double one_and_15(double x) {
    const Product p({DType::bf16, DType::f32}, 1, 1, 16);
    for (std::int64_t k = 0; k < 16; k++) p.a.set(k, k ? x : 1), p.b.set(k, 1);
    p.run();
    return p.c[0];
}

TEST_CASE("products: the bounds hold for tensor cores that truncate, too") {
    CHECK(one_and_15(0x1p-24) == 1);
    for (TensorSums sums : {TensorSums::as_a100, TensorSums::as_h100}) {
        CAPTURE(int(sums));
        Settings settings;
        settings.tensor_sums = sums;
        AsCuda emulated(settings);
        CHECK(one_and_15(0x1p-24) == 1 + 7 * 0x1p-23);
        CHECK(one_and_15(0x1p-25) == (sums == TensorSums::as_h100 ? 1 + 3 * 0x1p-23 : 1));
        CHECK(one_and_15(-0x1p-25) == (sums == TensorSums::as_h100 ? 1 - 8 * 0x1p-24 : 1));
        std::size_t turn = 0;
        for (const Form& form : all_forms()) {
            const std::vector<std::int64_t>& size = sizes[turn++ % sizes.size()];
            CAPTURE(form.name());
            CHECK(Product(form, size[0], size[1], size[2]).run_and_compare(TileSize::fitting) == "");
        }
        const WithRule rule({false, true});
        Findings findings;
        for (const char* name : {"linear", "gelu_linear, tanh", "cross_entropy", "attention, anticausal",
                                 "attention, prefix", "attention, window"}) {
            findings.op = name;
            const Op& op = row_of(name);
            for (Sizes s : {Sizes{33, 32, 2}, {3, 259, 2}}) check_precision_on(Device::cuda, op, s, findings);
        }
        for (const std::string& fault : findings.faults) FAIL_CHECK(fault);
    }
}
