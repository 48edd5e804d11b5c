// SPDX-License-Identifier: MIT
// K-BERT's sentence tree (Liu et al. 2020): a sentence whose words have branches of knowledge, written as rows.
#pragma once
#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "models/masks/mask.h"
#include "models/nets/unilm.h"
#include "tests/models/runs/small_pairs.h"

namespace masquerade::knowledge_tree {

struct Word {
    std::vector<int> tokens;
    std::vector<std::vector<int>> branches = {};  // the tokens of each branch
};
using Tree = std::vector<Word>;  // the words of the trunk, in order

// Packed sentence trees. Each word is followed by its branches.
struct Trees {
    TokenRows rows;  // (N), with soft positions
    // For each row: the index of its word, if the word owns branches, and the index of its branch; -1: none.
    std::vector<int> entity, branch;
    Documents documents;

    // Adds a tree. The positions of a branch continue after its word. The positions of the next word also continue
    // after this word, as if there were no branch.
    void add(const Tree& tree, int name) {
        const int first = rows.count();
        int position = 0, entities = 0, branches = 0;
        auto push = [&](int id, int at, int of_entity, int of_branch) {
            rows.push(id, 0, at, name);
            entity.push_back(of_entity);
            branch.push_back(of_branch);
        };
        for (const Word& word : tree) {
            const int owner = word.branches.empty() ? -1 : entities++;
            for (int id : word.tokens) push(id, position++, owner, -1);
            for (const std::vector<int>& tokens : word.branches) {
                int soft = position;
                for (int id : tokens) push(id, soft++, owner, branches);
                branches++;
            }
        }
        documents.push_back({rows.count() - first, 0});
    }

    bool in_trunk(int row) const { return branch[std::size_t(row)] < 0; }
    bool owns(int row) const { return in_trunk(row) && entity[std::size_t(row)] >= 0; }
    // i and j must be rows of the same document.
    bool see_each_other(int i, int j) const {
        if (in_trunk(i) && in_trunk(j)) return true;
        if (!in_trunk(i) && !in_trunk(j)) return branch[std::size_t(i)] == branch[std::size_t(j)];
        return entity[std::size_t(i)] == entity[std::size_t(j)];
    }

    SegmentGraph visible_matrix() const { return knowledge_mask(documents, entity, branch); }
    // The same mask without bits. A stretch of the trunk, a word that owns branches, and a branch are a segment each.
    SegmentGraph as_segments() const {
        SegmentGraph graph;
        graph.documents = int(documents.size());
        int row = 0;
        for (int d = 0; d < graph.documents; d++) {
            const int begin = row, first_key = int(graph.keys.size());
            for (const int end = begin + documents[std::size_t(d)].source; row < end; row++) {
                const auto at = std::size_t(row);
                const bool same = row > begin && entity[at] == entity[at - 1] && branch[at] == branch[at - 1];
                if (!same) graph.keys.push_back({0, row, row, row - begin});
                graph.keys.back().end++;
            }
            for (int self = first_key; self < int(graph.keys.size()); self++) {
                QuerySegment q;
                q.begin = graph.keys[std::size_t(self)].begin;
                q.end = graph.keys[std::size_t(self)].end;
                q.document = d;
                q.self = self;
                q.sees_begin = int(graph.sees.size());
                for (int key = first_key; key < int(graph.keys.size()); key++)
                    if (see_each_other(q.begin, graph.keys[std::size_t(key)].begin)) graph.sees.push_back(key);
                q.sees_end = int(graph.sees.size());
                graph.queries.push_back(q);
            }
        }
        return graph;
    }
};

// Returns the ids of words: their places in this list. Append new words only at its end.
inline std::vector<int> ids(const std::string& words) {
    static const char* const known[] = {"[CLS]",  "[SEP]",  "[MASK]", "marie", "curie", "born",  "warsaw",
                                        "found",  "radium", "worked", "in",    "paris", "then",  "capital",
                                        "france", "seat",   "louvre", "ada",   "emmy",  "grace", "lives",
                                        "london", "bath",   "riga",   "oslo",  "is"};
    std::vector<int> all;
    std::istringstream in(words);
    for (std::string word; in >> word;) {
        const auto place = std::find(std::begin(known), std::end(known), word);
        REQUIRE(place != std::end(known));
        all.push_back(2 + int(place - std::begin(known)));
    }
    return all;
}

// Returns the tree without branches.
inline Tree bare(Tree tree) {
    for (Word& word : tree) word.branches.clear();
    return tree;
}

inline Trees laid_out(const Tree& tree, int name = 0) {
    Trees s;
    s.add(tree, name);
    return s;
}

inline BackboneOptions small(int layers, bool pre_norm = false, bool rotary = true) {
    BackboneOptions o;
    o.vocabulary = small_pairs::V, o.width = 16, o.heads = 2, o.inner = 24, o.layers = layers, o.positions = 16;
    o.pre_norm = pre_norm, o.rotary = rotary, o.deviation = 0.3;
    return o;
}

using Row = std::vector<double>;
using States = std::vector<std::vector<Row>>;  // for each layer and row: (L)(N)(C)

struct Model : small_pairs::Small<UniLm, BackboneOptions> {
    using Small::Small;
    States states(const Trees& s, const SegmentGraph& graph, bool training = false) {
        tape.begin("states", 1, 1, training);
        const Backbone& stack = model.backbone;
        States all;
        const auto keep = [&](int layer, Tensor*& x, Pass&) {
            if (layer == 0) return;
            const OnHost numbers(x->view());
            all.emplace_back(std::size_t(x->rows()));
            for (std::int64_t i = 0; i < x->rows() * x->columns(); i++)
                all.back()[std::size_t(i / x->columns())].push_back(numbers[i]);
        };
        Pass pass = stack.pass(tape, s.rows, graph);
        Tensor* last = stack.run(tape, s.rows, pass, keep);
        keep(stack.options.layers, last, pass);
        tape.end();
        return all;
    }
};

// Returns a batch in which these rows predict these tokens.
inline Batch asked(const Trees& s, const SegmentGraph& graph, const std::vector<int>& rows,
                   const std::vector<int>& targets) {
    Batch b;
    b.rows = s.rows;
    b.graph = graph;
    b.labels.rows = rows;
    b.labels.tokens = targets;
    b.labels.weights.assign(rows.size(), 1);
    b.labels.count = int(rows.size());
    b.documents = int(s.documents.size());
    return b;
}

// Returns a mask in which words do not see their branches, but branches see their word.
inline SegmentGraph deaf_words(const Trees& s) {
    return bits_mask(s.documents,
                     [&](int i, int j) { return s.see_each_other(i, j) && !(s.in_trunk(i) && !s.in_trunk(j)); });
}

}  // namespace masquerade::knowledge_tree
