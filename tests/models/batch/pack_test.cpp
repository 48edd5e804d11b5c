// SPDX-License-Identifier: MIT
// Tests packing: the rows and questions of documents one after the other, and the inert documents after them.
#include <doctest/doctest.h>

#include "models/batch/batch.h"

using namespace masquerade;

namespace {

// Returns a document of `n` rows. Every row from `first` on predicts its own token.
Example document(int n, int first, int name) {
    Example e;
    for (int i = 0; i < n; i++) e.rows.push(10 + i, 1, i, name);
    for (int i = first; i < n; i++) e.labels.push(i, 10 + i);
    e.document = {n, 0};
    return e;
}

}  // namespace

TEST_CASE("pack: questions keep their rows, and inert documents make multiples") {
    for (int n : {1, 7, 14, 15, 16, 17, 31})
        for (int first : {0, 1})
            for (int pad_to : {1, 16}) {
                CAPTURE(n);
                CAPTURE(first);
                const Batch b = pack({document(n, 0, 5), document(n, first, 6)}, pad_to);
                const int real = 2 * n - first, rows = b.rows.count();
                CHECK(b.labels.count == real);
                CHECK(b.labels.begin == std::vector<int>{0, n, real});
                CHECK(b.documents == 2);
                CHECK(int(b.parts.size()) % (pad_to == 1 ? 2 : 8) == 0);
                CHECK(rows % pad_to == 0);
                CHECK(b.labels.size() % pad_to == 0);
                if (first == 0) CHECK(b.labels.size() == rows);  // every row predicts a token, also inert rows
                REQUIRE(b.scored.count() == b.labels.size());
                for (int m = 0; m < b.labels.size(); m++) {
                    const auto at = std::size_t(m), row = std::size_t(b.labels.rows[at]);
                    CHECK(b.labels.weights[at] == (m < real ? 1 : 0));
                    CHECK(b.scored.document[at] == b.rows.document[row]);
                    if (m < real)
                        CHECK(b.rows.ids[row] == b.labels.tokens[at]);
                    else
                        CHECK(b.rows.document[row] > first_filler - 8);
                    if (m > 0) CHECK(b.labels.rows[at] > b.labels.rows[at - 1]);
                }
            }
}
