// SPDX-License-Identifier: MIT
#include "data/tasks/sudoku.h"

#include <array>
#include <numeric>

#include "engine/base/shuffle.h"

namespace masquerade {
namespace {

// A grid, and the digits that each row, column and box still lacks: bit d stands for digit d.
struct Solver {
    const int side;
    SudokuGrid cells;
    std::vector<unsigned> rows, columns, boxes;
    bool possible = true;  // false if two equal digits are given in one row, column or box

    Solver(int n, const SudokuGrid& grid) : side(n), cells(grid.size(), 0) {
        for (auto* group : {&rows, &columns, &boxes}) group->assign(n, (2u << n) - 2);
        for (int i = 0; i < n * n; i++) {
            const int digit = grid[i];
            if (digit == 0) continue;
            possible = possible && free_in(i) >> digit & 1;
            toggle(i, digit);
        }
    }

    std::array<unsigned*, 3> groups(int cell) {
        const int row = cell / side, column = cell % side, height = side == 9 ? 3 : 2;  // of a box
        return {&rows[row], &columns[column], &boxes[row / height * height + column / (side / height)]};
    }
    unsigned free_in(int cell) {
        const auto [row, column, box] = groups(cell);
        return *row & *column & *box;
    }
    // Puts the digit into the cell, or takes it away.
    void toggle(int cell, int digit) {
        for (unsigned* group : groups(cell)) *group ^= 1u << digit;
        cells[cell] ^= digit;
    }

    // Fills the empty cells in all ways, and returns their number. Ends after `most` ways; the cells are then those of
    // the last one, and otherwise as before. The cell with the fewest possible digits comes first. `random` shuffles
    // the order of its digits.
    int fill(int most, Sequence* random = nullptr) {
        int cell = -1, fewest = side + 1;
        for (int i = 0; i < side * side && fewest > 0; i++) {
            if (cells[i] != 0) continue;
            const int count = __builtin_popcount(free_in(i));
            if (count < fewest) fewest = count, cell = i;
        }
        if (!possible) return 0;
        if (cell < 0) return 1;
        std::vector<int> digits;
        for (int d = 1; d <= side; d++)
            if (free_in(cell) >> d & 1) digits.push_back(d);
        if (random) shuffle(digits, *random);
        int found = 0;
        for (int d : digits) {
            toggle(cell, d);
            found += fill(most - found, random);
            if (found == most) break;
            toggle(cell, d);
        }
        return found;
    }

    // Whether the grid has a solution with another digit than this one in the cell, which is empty.
    bool has_other_solution(int cell, int digit) {
        for (int d = 1; d <= side; d++) {
            if (d == digit || !(free_in(cell) >> d & 1)) continue;
            Solver trial = *this;
            trial.toggle(cell, d);
            if (trial.fill(1)) return true;
        }
        return false;
    }
};

}  // namespace

int sudoku_solutions(int side, const SudokuGrid& grid, int most) { return Solver(side, grid).fill(most); }

Sudoku random_sudoku(int side, int clues, Sequence& random) {
    Solver solver(side, SudokuGrid(side * side));
    solver.fill(1, &random);
    Sudoku made{{}, solver.cells};
    std::vector<int> order(solver.cells.size());
    std::iota(order.begin(), order.end(), 0);
    shuffle(order, random);
    int left = int(order.size());
    for (int cell : order) {
        if (left <= clues) break;
        const int digit = solver.cells[cell];
        solver.toggle(cell, digit);
        if (solver.has_other_solution(cell, digit))
            solver.toggle(cell, digit);
        else
            left--;
    }
    made.puzzle = solver.cells;
    return made;
}

}  // namespace masquerade
