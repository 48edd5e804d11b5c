// SPDX-License-Identifier: MIT
// Tests the functions by which processes share work (engine/base/processes.h). Threads play the processes.
#include "engine/base/processes.h"

#include <doctest/doctest.h>

#include <numeric>
#include <stdexcept>

#include "tests/train/threads_as_processes.h"

using namespace masquerade;

TEST_CASE("processes: items are shared in whole groups, in order, and their results come back in order") {
    for (int count : {1, 2, 3, 5, 8})
        for (std::size_t n : {0, 1, 4, 5, 13, 40})
            for (std::size_t together : {1, 4}) {
                CAPTURE(count);
                CAPTURE(n);
                CAPTURE(together);
                std::vector<double> all(n);
                std::iota(all.begin(), all.end(), 1);
                as_processes(count, [&](int) {
                    const auto [begin, end] = own_items(n, together);
                    CHECK(begin % together * (n - begin) == 0);
                    CHECK(end - begin <= (n / together / std::size_t(count) + 1) * together);
                    const std::vector<double> own = own_part(all, together);
                    CHECK(own.size() == end - begin);
                    CHECK(gather_numbers(own) == all);
                    std::vector<std::string> mine, wanted;
                    for (double x : own) mine.emplace_back(std::size_t(x) % 3, 'a');
                    for (double x : all) wanted.emplace_back(std::size_t(x) % 3, 'a');
                    CHECK(gather_lists(mine) == wanted);
                });
            }
}

TEST_CASE("processes: work that one process does by itself exchanges nothing") {
    as_processes(3, [&](int rank) {
        if (rank == 1) {
            const ByItself alone;
            CHECK(processes().count() == 1);
            CHECK(gather_numbers({7}) == std::vector<double>{7});
        }
        CHECK(processes().rank() == rank);
        CHECK(gather_numbers({double(rank)}) == std::vector<double>{0, 1, 2});
    });
}

TEST_CASE("processes: it is an error if they have come to different places of the program") {
    const auto work = [](int rank) {
        if (rank == 0)
            gather_values(1.0);
        else
            gather_values(1.0);
    };
    CHECK_THROWS_WITH(as_processes(2, work), "processes have come to different places of the program");
}
