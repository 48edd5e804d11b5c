// SPDX-License-Identifier: MIT
// Sudoku puzzles with one solution. A grid has `side` rows, columns and boxes. Each digit from 1 to `side` occurs once
// in each of them. Boxes have 2 x 2 cells for side 4, 2 rows of 3 cells for side 6, and 3 x 3 cells for side 9.
#pragma once
#include <vector>

#include "engine/base/random.h"

namespace masquerade {

using SudokuGrid = std::vector<int>;  // the cells, row after row; 0 is an empty cell

// Returns the number of ways in which the empty cells can be filled, but at most `most`. Returns 0 if two equal digits
// are given in one row, column or box.
int sudoku_solutions(int side, const SudokuGrid& grid, int most);

struct Sudoku {
    SudokuGrid puzzle, solution;
};
// Returns a random puzzle with one solution. The solution is found by filling an empty grid at random, so every grid
// can occur, but not all with exactly the same probability. Then cells are emptied in random order wherever the
// solution stays the only one, until at most `clues` digits are left, or until no digit can be removed.
Sudoku random_sudoku(int side, int clues, Sequence& random);

}  // namespace masquerade
