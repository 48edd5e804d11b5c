// SPDX-License-Identifier: MIT
// Vectors of D numbers on which a normalising flow is trained: points in the plane, drawn from a toy distribution, or
// the rows of a matrix, which is a .npy file or has the latents of a run.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/random.h"
#include "input/npy.h"

namespace masquerade {

struct Toy {
    const char *name, *what;
    std::vector<double> (*draw)(Sequence& random);  // returns a point
};
const std::vector<Toy>& toys();
const Toy* find_toy(const std::string& name);  // null if there is no toy with this name

class VectorSource {
  public:
    virtual ~VectorSource() = default;
    // Returns vector `number` of the held-out set or, if `held_out` is false, of the training set. The training set has
    // no last vector: every number gives a vector, which is drawn from the toy's distribution or, with replacement,
    // from the training rows of the matrix.
    virtual std::vector<double> row(std::uint64_t number, bool held_out) const = 0;
    virtual std::uint64_t held_out() const { return UINT64_MAX; }  // number of held-out vectors; UINT64_MAX: no limit
    // Hash of the file, or checksum of the weights of the run that has the latents; 0 for a toy.
    virtual std::uint64_t hash() const { return 0; }

    std::string name;
    int columns = 2;  // D, the length of each vector
    // If the vectors are the latents of a run: the run's step, and `name` is the run folder. Otherwise, -1.
    std::int64_t step = -1;
};

// Reads a matrix from a .npy file. If `hash` is not null, sets *hash to the hash of the file. Throws BadInput if the
// file is damaged, is not a matrix of float32 or float64, or contains a number that is not finite.
Matrix read_vectors(const std::string& path, std::uint64_t* hash = nullptr);

// Returns the rows of a matrix, of which one row in ten is held out, as a source called `name`. Throws BadInput if
// there are fewer than ten rows or two columns.
std::unique_ptr<VectorSource> rows_as_points(Matrix rows, const std::string& name, std::uint64_t hash,
                                             std::uint64_t seed);

// Opens a toy by its name, or a .npy file with one vector per row, of which one row in ten is held out. Throws BadUsage
// if `what` is neither, and BadInput if the file is damaged, has fewer than ten rows or two columns, or numbers that
// are not finite.
std::unique_ptr<VectorSource> open_points(const std::string& what, std::uint64_t seed);

}  // namespace masquerade
