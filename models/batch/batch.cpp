// SPDX-License-Identifier: MIT
#include "models/batch/batch.h"

#include <algorithm>

#include "engine/base/memory.h"

namespace masquerade {
namespace {

// Returns the lengths of the inert (padding) documents, which follow the real documents of a batch. `rows` and
// `documents` are the numbers of real rows and documents. The total number of rows, real and inert, is a multiple of
// pad_to. The total number of documents is a multiple of 8. Each inert document has one row, except the last: it has
// all other padding rows, which are at least `at_least` rows, for the padding labels.
std::vector<int> fillers(int rows, int documents, int at_least, int pad_to) {
    std::vector<int> lengths(rounded_up(documents + 1, 8) - documents, 1);
    rows += int(lengths.size()) - 1;
    lengths.back() = rounded_up(rows + std::max(1, at_least), pad_to) - rows;
    return lengths;
}

void append(TokenRows& all, const TokenRows& rows) {
    for (int i = 0; i < rows.count(); i++) all.push_from(rows, i);
}

void append(Labels& all, const Labels& labels, int first_row) {
    for (int m = 0; m < labels.size(); m++) all.push(first_row + labels.rows[m], labels.tokens[m], labels.weights[m]);
    all.begin.push_back(all.size());
    const int first = all.choices.size();
    for (std::size_t m = 1; m < labels.choices.begin.size(); m++)
        all.choices.begin.push_back(first + labels.choices.begin[m]);
    for (int j = 0; j < labels.choices.size(); j++)
        all.choices.push(labels.choices.tokens[j], labels.choices.shares[j]);
}

void pad(Batch& b, int to) {
    const int real = b.rows.count();
    const bool all_labelled = b.labels.count == real;
    const int missing = rounded_up(b.labels.count, to) - b.labels.count;
    std::vector<int> lengths = fillers(real, b.documents, all_labelled ? 1 : missing, to), sources(lengths.size(), 0);
    if (b.source.count() > 0) sources = fillers(b.source.count(), b.documents, 1, to);
    // With two stacks, every inert document has encoder rows (`sources`), but all padding rows of the decoder
    // (`lengths`) belong to the last inert document. In a conditional UniVAE, where b.read is not empty, every inert
    // document has decoder rows, too.
    if (b.source.count() > 0 && b.read.empty()) {
        std::fill(lengths.begin(), lengths.end(), 0);
        lengths.back() = rounded_up(real + (all_labelled ? 0 : missing), to) - real;
    }
    for (std::size_t f = 0; f < lengths.size(); f++) {
        const int name = first_filler - int(f);
        for (int i = 0; i < sources[f]; i++) b.source.push(0, 0, 0, name);
        for (int i = 0; i < lengths[f]; i++) b.rows.push(0, 0, 0, name);
        if (!b.read.empty()) b.read.push_back({lengths[f], 0});
        b.parts.push_back(sources[f] > 0 ? Document{sources[f], lengths[f]} : Document{lengths[f], 0});
    }
    const int inert = all_labelled ? b.rows.count() - real : missing;
    for (int row = b.rows.count() - inert; row < b.rows.count(); row++) b.labels.push(row, 0, 0);
    // Padding targets have weight 0 and belong to the last label. There is at least one target.
    if (Choices& c = b.labels.choices; c.begin.size() > 1) {
        c.begin.resize(b.labels.size() + 1, c.size());
        while (c.size() == 0 || c.size() % to) c.push(0, 0);
        c.begin.back() = c.size();
    }
    if (!b.rank.empty()) b.rank.resize(b.rows.count(), -1);
    if (!b.insertions.empty()) b.insertions.resize(b.parts.size(), 0);
}

}  // namespace

Batch pack(const std::vector<Example>& examples, int pad_to) {
    Batch b;
    b.documents = int(examples.size());
    for (const Example& e : examples) {
        append(b.labels, e.labels, b.rows.count());
        b.labels.counted += e.counted;
        append(b.source, e.source);
        append(b.rows, e.rows);
        b.rank.insert(b.rank.end(), e.rank.begin(), e.rank.end());
        const bool two_stacks = e.source.count() > 0 || e.same_source;
        if (two_stacks && e.document.source > 0) b.read.push_back(e.document);
        if (e.insertions > 0) b.insertions.push_back(e.insertions);
        b.parts.push_back(two_stacks ? Document{e.source.count(), e.rows.count()} : e.document);
    }
    b.labels.count = b.labels.size();
    if (pad_to > 1) pad(b, pad_to);
    for (int row : b.labels.rows) b.scored.push_from(b.rows, row);
    for (const Document& d : b.parts)
        if (d.source > 0 || b.shared.empty())
            b.shared.push_back(d);
        else
            b.shared.back().target += d.target;
    b.bucket = text(b.source.count(), ",", b.rows.count(), ",", b.labels.size(), ",", b.parts.size(), ",",
                    b.shared.size(), ",", b.labels.choices.size());
    return b;
}

}  // namespace masquerade
