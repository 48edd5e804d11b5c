// SPDX-License-Identifier: MIT
// Vectors of D numbers on which a flow is trained: points in the plane, drawn from a toy distribution, or the rows of a
// .npy file.
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
    void (*draw)(Sequence& random, double* x, double* y);
};
const std::vector<Toy>& toys();

class VectorSource {
  public:
    virtual ~VectorSource() = default;
    // Returns vector `number` of the training set, or of the held-out set, which has held_out() vectors. A toy has as
    // many of both as one asks for. The rows of a file are drawn in random order for training.
    virtual std::vector<double> row(std::uint64_t number, bool held_out) const = 0;
    virtual std::uint64_t held_out() const { return UINT64_MAX; }
    virtual std::uint64_t hash() const { return 0; }  // of the file; 0 for a toy

    std::string name;
    int columns = 2;  // D
};

// Reads a matrix of finite numbers from a .npy file, and sets *hash to the hash of the file unless `hash` is null. Throws
// BadInput if the file is damaged or has other numbers.
Matrix read_vectors(const std::string& path, std::uint64_t* hash = nullptr);

// Opens a toy by its name or a .npy file with a matrix (N,D), of which one row in ten is held out. Throws BadUsage if
// `what` is neither, and BadInput if the file is damaged, has fewer than ten rows or two columns, or numbers that are
// not finite.
std::unique_ptr<VectorSource> open_points(const std::string& what, std::uint64_t seed);

}  // namespace masquerade
