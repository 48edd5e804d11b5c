// SPDX-License-Identifier: MIT
#include "data/points.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "engine/base/error.h"
#include "engine/base/named.h"
#include "input/input.h"

namespace masquerade {
namespace {

constexpr double pi = 3.14159265358979323846;

using Point = std::vector<double>;

// Returns the point (x, y) with normal noise (Box & Muller 1958).
Point blurred(Sequence& random, double deviation, double x, double y) {
    const double r = deviation * std::sqrt(-2 * std::log(random.uniform_double())),
                 a = 2 * pi * random.uniform_double();
    return {x + r * std::cos(a), y + r * std::sin(a)};
}

// Two half circles with radius 1 that interlock: one end of each lies inside the other half circle.
Point moons(Sequence& random) {
    const bool upper = random.below(2) == 0;
    const double a = pi * random.uniform_double(), x = std::cos(a) - 0.5, y = std::sin(a) - 0.25;
    return upper ? blurred(random, 0.08, x, y) : blurred(random, 0.08, -x, -y);
}
// Circles with the radii 1, 2 and 3.
Point rings(Sequence& random) {
    const double r = 1 + random.below(3), a = 2 * pi * random.uniform_double();
    return blurred(random, 0.1, r * std::cos(a), r * std::sin(a));
}
// The eight dark fields of a chessboard with 4 x 4 fields. A field has area 1, so the density is 1/8 or 0.
Point checker(Sequence& random) {
    const std::uint32_t field = random.below(8), row = field / 2, column = 2 * (field % 2) + row % 2;
    const double x = column + random.uniform_double() - 2;
    return {x, row + random.uniform_double() - 2};
}
// Two arms of a spiral. Each arm makes one and a half turns.
Point spiral(Sequence& random) {
    const double turn = std::sqrt(random.uniform_double()), a = 3 * pi * turn, side = random.below(2) ? 1 : -1;
    return blurred(random, 0.1, side * 3 * turn * std::cos(a), side * 3 * turn * std::sin(a));
}

Sequence random_of(std::uint64_t seed, const char* part, std::uint64_t number) {
    return {seed, part, std::uint32_t(number), std::uint32_t(number >> 32)};
}

class ToySource : public VectorSource {
  public:
    ToySource(const Toy& toy, std::uint64_t seed) : toy_(toy), seed_(seed) { name = toy.name; }
    std::vector<double> row(std::uint64_t number, bool held_out) const override {
        Sequence random = random_of(seed_, held_out ? "points.held_out" : "points.train", number);
        return toy_.draw(random);
    }

  private:
    const Toy& toy_;
    const std::uint64_t seed_;
};

constexpr std::int64_t one_in = 10;  // rows i with i % one_in = one_in - 1 are held out

class RowSource : public VectorSource {
  public:
    RowSource(Matrix rows, const std::string& its_name, std::uint64_t hash, std::uint64_t seed)
        : seed_(seed), rows_(std::move(rows)), hash_(hash) {
        if (rows_.rows < one_in || rows_.columns < 2)
            throw BadInput(its_name, " has ", rows_.rows, " rows of ", rows_.columns,
                           " numbers; expected at least 10 rows of at least 2");
        name = its_name, columns = rows_.columns;
    }
    std::vector<double> row(std::uint64_t number, bool held_out) const override {
        std::int64_t at = std::int64_t(number) * one_in + one_in - 1;
        if (!held_out) {
            const std::uint32_t n = random_of(seed_, "points.train", number).below(rows_.rows - this->held_out());
            at = n / (one_in - 1) * one_in + n % (one_in - 1);
        }
        const auto begin = rows_.numbers.begin() + at * rows_.columns;
        return {begin, begin + rows_.columns};
    }
    std::uint64_t held_out() const override { return rows_.rows / one_in; }
    std::uint64_t hash() const override { return hash_; }

  private:
    const std::uint64_t seed_;
    const Matrix rows_;
    const std::uint64_t hash_;
};

}  // namespace

const std::vector<Toy>& toys() {
    static const std::vector<Toy> all = {{"moons", "two half circles", moons},
                                         {"rings", "three circles with one centre", rings},
                                         {"checker", "the dark fields of a checkerboard", checker},
                                         {"spiral", "two arms of a spiral", spiral}};
    return all;
}

const Toy* find_toy(const std::string& name) {
    for (const Toy& toy : toys())
        if (name == toy.name) return &toy;
    return nullptr;
}

Matrix read_vectors(const std::string& path, std::uint64_t* hash) {
    const std::string bytes = read_input<BadInput>(path, std::size_t(1) << 36);
    Matrix m;
    if (const std::string why = read_npy(bytes, m); !why.empty()) throw BadInput(path, " ", why);
    for (std::size_t i = 0; i < m.numbers.size(); i++)
        if (!(std::abs(m.numbers[i]) <= std::numeric_limits<float>::max()))  // true for NaN
            throw BadInput(path, ": row ", i / m.columns, ", column ", i % m.columns, " is ", m.numbers[i],
                           "; expected finite numbers of float32 (rows and columns are counted from 0)");
    if (hash) *hash = hash_of(bytes);
    return m;
}

std::unique_ptr<VectorSource> rows_as_points(Matrix rows, const std::string& name, std::uint64_t hash,
                                             std::uint64_t seed) {
    return std::make_unique<RowSource>(std::move(rows), name, hash, seed);
}

std::unique_ptr<VectorSource> open_points(const std::string& what, std::uint64_t seed) {
    if (const Toy* toy = find_toy(what)) return std::make_unique<ToySource>(*toy, seed);
    if (!std::filesystem::exists(what))
        throw BadUsage(
            "points=", what, " is neither ", joined(names_of(toys())),
            " nor a file; expected one of these names, a .npy file with a row for each vector, or a run of univae");
    std::uint64_t hash = 0;
    Matrix rows = read_vectors(what, &hash);
    return rows_as_points(std::move(rows), what, hash >> 2, seed);  // a checkpoint stores only numbers below 2^62
}

}  // namespace masquerade
