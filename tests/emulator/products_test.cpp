// SPDX-License-Identifier: MIT
// The engine's own matrix product as fibers: its numbers against double, its bits in any surroundings, and when it is
// chosen.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/emulator/emulator.h"
#include "tests/ladder.h"

using namespace masquerade;
using namespace masquerade::ladder;
using emulator::AsCuda;
using emulator::Order;
using emulator::Settings;

namespace {

// A list of numbers on the device, `shift` numbers behind an address that is a multiple of 256; NaN on both sides.
struct Numbers {
    DType dtype;
    std::int64_t count, shift;
    Buffer memory;
    static constexpr std::int64_t guard = 256;

    Numbers(DType type, std::int64_t n, std::int64_t shifted)
        : dtype(type),
          count(n),
          shift(shifted),
          memory(std::size_t(n + shifted + 2 * guard) * bytes_of(type), Device::cpu) {
        std::memset(memory.data(), 0xff, bytes());
    }
    std::size_t bytes() const { return std::size_t(count + shift + 2 * guard) * bytes_of(dtype); }
    char* data() const {
        return static_cast<char*>(memory.data()) + std::size_t(guard + shift) * bytes_of(dtype);
    }
    View view() const { return {data(), dtype, Device::cpu, {count}, "numbers"}; }
    void set(std::int64_t i, double x) const { set_number(view(), i, x); }
    double operator[](std::int64_t i) const { return number(view(), i).real(); }
    std::string bits(std::int64_t from, std::int64_t n) const {
        return {data() + std::size_t(from) * bytes_of(dtype), std::size_t(n) * bytes_of(dtype)};
    }
    bool guards_intact() const {
        const std::string before(static_cast<char*>(memory.data()), data());
        const std::string after(data() + std::size_t(count) * bytes_of(dtype),
                                static_cast<char*>(memory.data()) + bytes());
        return (before + after).find_first_not_of('\xff') == std::string::npos;
    }
};

// What a product is, its sizes aside.
struct Form {
    DType factors = DType::f32, result = DType::f32;
    bool a_transposed = false, b_transposed = false, add = false, bias = false;
    std::int64_t shift = 0;

    std::string name() const {
        return text(name_of(factors), " in ", name_of(result), a_transposed ? ", A transposed" : "",
                    b_transposed ? ", B transposed" : "", add ? ", added" : "", bias ? ", bias" : "",
                    shift ? ", shifted" : "");
    }
};

std::vector<Form> all_forms() {
    std::vector<Form> all;
    for (auto [factors, result] :
         {std::pair{DType::f32, DType::f32}, {DType::bf16, DType::f32}, {DType::bf16, DType::bf16}})
        for (int bits = 0; bits < (result == DType::f32 ? 16 : 8); bits++)
            all.push_back({factors, result, bool(bits & 1), bool(bits & 2), bool(bits & 4), bool(bits & 8)});
    return all;
}

// A, B, C and bias; of one size the same in every form.
struct Product {
    Form form;
    std::int64_t m, n, k;
    Numbers a, b, c, bias;

    Product(Form f, std::int64_t rows, std::int64_t columns, std::int64_t depth)
        : form(f),
          m(rows),
          n(columns),
          k(depth),
          a(f.factors, m * k, f.shift),
          b(f.factors, k * n, f.shift),
          c(f.result, m * n, f.shift),
          bias(DType::f32, n, f.shift) {
        Sequence random(1, "product");
        for (std::int64_t j = 0; j < n; j++) bias.set(j, 2 * random.uniform_double() - 1);
        for (std::int64_t i = 0; i < m * k; i++) a.set(at_a(i / k, i % k), 2 * random.uniform_double() - 1);
        for (std::int64_t i = 0; i < k * n; i++) b.set(at_b(i / n, i % n), 2 * random.uniform_double() - 1);
        for (std::int64_t i = 0; i < m * n && form.add; i++) c.set(i, 2 * random.uniform_double() - 1);
    }

    std::int64_t at_a(std::int64_t i, std::int64_t l) const {
        return form.a_transposed ? l * m + i : i * k + l;
    }
    std::int64_t at_b(std::int64_t l, std::int64_t j) const {
        return form.b_transposed ? j * k + l : l * n + j;
    }
    Multiplication asked() const {
        return {m,
                n,
                k,
                {a.data(), form.factors, form.a_transposed},
                {b.data(), form.factors, form.b_transposed},
                {c.data(), form.result, form.add},
                form.bias ? reinterpret_cast<const float*>(bias.data()) : nullptr};
    }
    void run(TileSize size = TileSize::fitting) const { fibers::tiled_multiply(asked(), size); }

    // "" or what is wrong: each element against double. A float sum of K products, C and a bias is off by a unit in the
    // last place of their magnitudes for each step at most; a result in bf16 by half a unit more.
    std::string wrong(const std::vector<double>& before) const {
        for (std::int64_t i = 0; i < m; i++)
            for (std::int64_t j = 0; j < n; j++) {
                const double kept = form.add ? before[std::size_t(i * n + j)] : 0,
                             b0 = form.bias ? bias[j] : 0;
                double sum = kept + b0, size = std::abs(kept) + std::abs(b0);
                for (std::int64_t l = 0; l < k; l++) {
                    const double term = a[at_a(i, l)] * b[at_b(l, j)];
                    sum += term, size += std::abs(term);
                }
                const double found = c[i * n + j];
                double bound = double(k + 3) * 0x1p-24 * size;
                if (form.result == DType::bf16) bound += 0x1p-8 * (std::abs(sum) + bound);
                if (!(std::abs(found - sum) <= bound))
                    return text("element (", i, ",", j, ") is ", found, "; expected ", sum, " within ",
                                bound);
            }
        return c.guards_intact() ? "" : "something before or behind C is written";
    }
    std::string run_and_compare(TileSize size) const {
        std::vector<double> before;
        for (std::int64_t i = 0; form.add && i < m * n; i++) before.push_back(c[i]);
        run(size);
        return wrong(before);
    }
};

// Tiles are 16 x 64 and 64 x 128, chunks of the depth 16 to 64 steps, packets 4 or 8 numbers: in each row of sizes
// something ends there, one before it or one behind it.
const std::vector<std::vector<std::int64_t>> sizes = {
    {1, 1, 1},    {1, 65, 33},  {2, 1, 31},   {33, 2, 1},   {1, 129, 127}, {15, 63, 17},
    {17, 16, 15}, {16, 64, 64}, {63, 17, 65}, {65, 33, 63}, {129, 15, 2},  {31, 127, 16},
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
            for (std::size_t s = turn++ % 3; s < sizes.size();
                 s += 3) {  // each form a third, all together all
                const TileSize size = (s + turn) % 2 ? TileSize::small : TileSize::large;
                const Product product(form, sizes[s][0], sizes[s][1], sizes[s][2]);
                CAPTURE(form.name());
                CAPTURE(s);
                CAPTURE(int(size));
                CHECK(product.run_and_compare(size) == "");
            }
        }
}

// The rows and columns that end at tiles, begin there and lie within; tiles and addresses of both kinds; any form.
TEST_CASE("products: the bits of an element are those of its row and its column alone") {
    const std::int64_t M = 66, N = 131, K = 130;
    for (DType type : {DType::f32, DType::bf16}) {
        const Product all({type, DType::f32, false, false, false, true}, M, N, K);
        all.run(TileSize::large);
        for (TileSize size : {TileSize::small, TileSize::large, TileSize::fitting})
            for (int form = 0; form < 8; form++) {
                const Product other({type, DType::f32, bool(form & 1), bool(form & 2), false, true, form / 4},
                                    M, N, K);
                other.run(size);
                CAPTURE(form);
                CHECK(other.c.bits(0, M * N) == all.c.bits(0, M * N));
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
                CHECK(one.c.bits(0, 1) == all.c.bits(i * N + j, 1));
                if (j == 0) row.run();
                if (j == 0) CHECK(row.c.bits(0, N) == all.c.bits(i * N, N));
                if (i > 0) continue;
                column.run();
                for (std::int64_t r = 0; r < M; r++) CHECK(column.c.bits(r, 1) == all.c.bits(r * N + j, 1));
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
                CHECK(again.c.bits(0, 67 * 133) == first.c.bits(0, 67 * 133));
            }
        }
}

// More tiles below each other than a grid has in y; and so many that large ones are chosen.
TEST_CASE("products: a million rows, and tiles chosen by size") {
    AsCuda unwatched({Order::forward, 1, false});
    const std::int64_t rows = 65536 * 16 + 1;
    const Product tall({DType::f32, DType::f32}, rows, 1, 1);
    CHECK(tall.run_and_compare(TileSize::small) == "");
    const Product many({DType::f32, DType::f32}, 64 * 16, 128 * 16, 1),
        few({DType::f32, DType::f32}, 64, 128, 1);
    const long before = emulator::counts().switches;
    CHECK(many.run_and_compare(TileSize::fitting) == "");
    const long of_many = emulator::counts().switches - before;
    few.run();
    CHECK(emulator::counts().switches - before - of_many ==
          8 * of_many / 256);  // a large tile is 8 small ones
}

TEST_CASE("products: what is no product is refused by name") {
    const Product p({DType::bf16, DType::bf16, false, false, false, true}, 2, 3, 4);
    CHECK_THROWS_WITH_AS(
        p.run(),
        "no kernel makes a product (2,4) bf16 times (4,3) bf16 in bf16 with a bias; expected f32 "
        "throughout, or bf16 in f32 or, without a bias, in bf16, and sizes above 0",
        Error);
    Multiplication none = Product({}, 1, 1, 1).asked();
    none.k = 0;
    CHECK_THROWS_AS(fibers::tiled_multiply(none), Error);
}

// y of the op linear, in whole numbers: they are summed without rounding, whoever sums them.
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
        CHECK(refused.values[3].bytes() == plain.values[3].bytes());
        refused.backward();  // dx sums over 5, dw over 17: neither is refused
        CHECK(asked == 3);
    }
}

// The contract asks besides that a row alone has the bits that it has among others.
TEST_CASE("products: ops climb the ladder with the engine's own product") {
    const WithRule rule({false, true});
    const Refusal never(
        [](const Multiplication& p) -> bool { throw Error(name_of(p) + " is asked for elsewhere"); });
    for (const char* name :
         {"linear", "linear, y unrounded", "linear_gelu, erf", "gelu_linear, tanh", "cross_entropy"}) {
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
