// SPDX-License-Identifier: MIT
// Tests the order of the sums over the parts of a batch: it is the tree that engine/train/part_sum.h describes.
#include <doctest/doctest.h>

#include "engine/base/random.h"
#include "engine/tensor/numbers.h"
#include "engine/train/part_sum.h"
#include "tests/train/threads_as_processes.h"

using namespace masquerade;

TEST_CASE("parts: the order of a sum is a tree with powers of 2 on the left") {
    const double big = 0x1p53;  // big + 1 == big, so each order of these numbers has another sum
    CHECK(sum_of_parts({3}) == 3);
    CHECK(sum_of_parts({big, 1, -big}) == 0);                         // (0 1) 2
    CHECK(sum_of_parts({big, -big, 1, 1}) == 2);                      // (0 1) (2 3)
    CHECK(sum_of_parts({1, big, 1, -big}) == (1 + big) + (1 - big));  // (0 1) (2 3), not ((0 1) 2) 3
    CHECK(sum_of_parts({0, 0, 0, big, 1, -big}) == big + (1 - big));  // ((0 1) (2 3)) (4 5)
    CHECK(sum_of_parts({0, 0, 0, 0, 1, big, -big}) == 0);             // ((0 1) (2 3)) ((4 5) 6)
}

TEST_CASE("parts: gradients are added in the order of sum_of_parts()") {
    for (DType type : {DType::f64, DType::f32, DType::bf16}) {
        Parameters p(type);
        const Tensor* matrix = p.add("matrix", {3, 5}, {Init::zeros});
        const Tensor* vector = p.add("vector", {7}, {Init::zeros});
        p.add_state("state", {4}, {Init::zeros});
        p.allocate(1);
        GradientSum sum(p);
        for (int parts = 1; parts <= 19; parts++) {
            CAPTURE(parts);
            std::vector<std::vector<double>> given;  // of each part, the numbers of both gradients
            Sequence random(1, "parts", parts);
            for (int part = 0; part < parts; part++) {
                std::vector<double>& numbers = given.emplace_back();
                for (const Tensor* t : {matrix, vector}) {
                    std::vector<float> own;
                    for (int i = 0; i < t->shape.count(); i++)
                        own.push_back(random.uniform() * (random.below(2) ? 1.f : 0x1p40f));
                    write_numbers(t->grad_view(), own.data());
                    numbers.insert(numbers.end(), own.begin(), own.end());
                }
                sum.add(part, parts);
            }
            std::size_t i = 0;
            int differ = 0;
            for (const Tensor* t : {matrix, vector})
                for (double found : numbers_of(t->grad_view())) {
                    std::vector<double> each;
                    for (const auto& numbers : given) each.push_back(numbers[i]);
                    i++;
                    if (type == DType::f64) CHECK(found == sum_of_parts(each));
                    CHECK(found == doctest::Approx(sum_of_parts(each)).epsilon(1e-5));
                    std::rotate(each.begin(), each.begin() + 1, each.end());
                    differ += found != sum_of_parts(each);
                }
            if (type == DType::f64 && parts > 4) CHECK(differ > 0);  // the order matters
        }
        CHECK(sum.bytes() == 5 * p.gradients().bytes());  // 19 parts: sums of 1, 2, 4, 8 and 16
    }
}

TEST_CASE("parts: each process has its share of the parts, and the nodes of the tree that it can compute") {
    for (int parts = 1; parts <= 40; parts++)
        for (int count = 1; count <= 9; count++) {
            int next = 0;
            for (int rank = 0; rank < count; rank++) {
                const PartRange share = share_of(parts, rank, count);
                CHECK(share.begin == next);
                CHECK(share.count() >= parts / count);
                CHECK(share.count() <= (parts + count - 1) / count);
                if (rank == 0) CHECK(share.count() > 0);
                for (const PartRange& node : nodes_within(share, parts)) {
                    CHECK(node.begin == next);
                    next = node.end;
                }
                CHECK(next == share.end);
            }
            CHECK(next == parts);
        }
    CHECK(nodes_within({0, 8}, 8).size() == 1);
    CHECK(nodes_within({1, 7}, 8).size() == 4);  // 1, 2 + 3, 4 + 5, 6
}

TEST_CASE("parts: several processes have the gradient of one, to the bit") {
    for (DType type : {DType::f64, DType::f32})
        for (int parts = 1; parts <= 13; parts++) {
            // Trains nothing: each part has random gradients. Returns the gradients after finish() of one process.
            const auto summed = [&] {
                Parameters p(type);
                p.add("matrix", {9, 16}, {Init::zeros});
                p.add("vector", {7}, {Init::zeros});
                p.add_state("state", {4}, {Init::zeros});
                p.allocate(1);
                GradientSum sum(p);
                const View trained = p.trained(p.gradients());
                for (int step = 0; step < 2; step++) {
                    for (int part = 0; part < parts; part++) {
                        if (!share_of(parts, processes().rank(), processes().count()).has(part)) continue;
                        Sequence random(1, "gradient", part);
                        std::vector<double> numbers;
                        for (int i = 0; i < trained.count(); i++)
                            numbers.push_back(random.uniform() * (random.below(2) ? 1.f : 0x1p20f));
                        write_numbers(trained, numbers.data());
                        sum.add(part, parts);
                    }
                    sum.finish(parts);
                }
                return numbers_of(trained);
            };
            const std::vector<double> expected = summed();
            for (int count : {2, 3, 4, 8, 11}) {  // with 11 processes, some slices are empty
                CAPTURE(parts);
                CAPTURE(count);
                std::vector<std::vector<double>> found(static_cast<std::size_t>(count));
                as_processes(count, [&](int rank) { found[std::size_t(rank)] = summed(); });
                for (const std::vector<double>& each : found) CHECK(each == expected);
            }
        }
}
