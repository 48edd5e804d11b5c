// SPDX-License-Identifier: MIT
// Sparse softmax attention in which each head has a separate pattern. In the Sparse Transformer, some heads see the
// positions nearby and others every l-th position (Child et al. 2019, section 4.3); in Longformer, the dilation of the
// window differs by head (Beltagy et al. 2020, section 3.1). The setting `patterns` gives the patterns in words:
//
//   "0:2 window=8 | 2:4 stride=8"    heads 0 and 1 see 8 positions to either side, heads 2 and 3 every 8th position
//
//   patterns  HEADS PATTERN, separated by "|"; if several entries name the same head, the last one counts
//   HEADS     I:J, the heads from I to before J, indexed as in Python
//   PATTERN   "full" (all that the mask allows), or one or more KEY=NUMBER
//   KEY       window, dilation, stride, globals, block, before or last: the fields of SegmentPattern. A row sees a
//             position if the window, the stride, the globals or the blocks allow it.
//             The default is window=0 (a row sees its own position) or, with a block and no stride, no window.
//
// Heads that `patterns` does not name see all that the mask allows. If `patterns` is empty, the first half of all heads
// has window=l-1 and the other half stride=l, where l is the square root of the number of positions.
//
// Heads with the same pattern form one group or, if key/value heads are shared, several groups (see add_groups()). The
// columns of a group are copied from the queries, keys and values, and one attention op computes the group under its
// own mask. If there is only one group, nothing is copied.
#include <algorithm>
#include <sstream>

#include "engine/base/named.h"
#include "engine/nn/attention/patterns.h"
#include "input/index_range.h"

namespace masquerade {
namespace {

constexpr int most = 16384;  // largest NUMBER in a pattern

struct Key {
    const char* name;
    int SegmentPattern::*field;
    int least;
};
constexpr Key keys_of_pattern[] = {
    {"window", &SegmentPattern::window, 0},   {"dilation", &SegmentPattern::dilation, 1},
    {"stride", &SegmentPattern::stride, 1},   {"globals", &SegmentPattern::globals, 0},
    {"block", &SegmentPattern::block, 1},     {"before", &SegmentPattern::block_before, -1},
    {"last", &SegmentPattern::block_last, 0},
};

bool same_pattern(const SegmentPattern& a, const SegmentPattern& b) {
    return std::all_of(std::begin(keys_of_pattern), std::end(keys_of_pattern),
                       [&](const Key& key) { return a.*key.field == b.*key.field; });
}

// Reads the setting `patterns`, and returns a pattern for each head. Throws BadUsage if the setting is malformed.
std::vector<SegmentPattern> read_patterns(const std::string& setting, int heads) {
    const auto refuse = [&](const auto&... why) { throw BadUsage("patterns \"", setting, "\": ", why...); };
    std::vector<SegmentPattern> all(heads);
    std::string words = setting;
    std::replace(words.begin(), words.end(), ',', ' ');
    std::istringstream in(words);
    for (std::string each; std::getline(in, each, '|');) {
        std::istringstream parts(each);
        std::string given, word;
        parts >> given;
        IndexRange range;
        if (read_range(given, range, most))
            refuse("\"", given, "\" is no range of heads; expected I:J, as in 0:2 window=8");
        if (range.begin(heads) >= range.end(heads)) refuse("\"", given, "\" names none of the ", heads, " heads");
        SegmentPattern pattern;
        int count = 0;
        std::vector<std::string> set;
        for (; parts >> word; count++) {
            if (word == "full") continue;
            const std::size_t equals = std::min(word.find('='), word.size());
            const std::string name = word.substr(0, equals), value = word.substr(std::min(equals + 1, word.size()));
            const auto key = std::find_if(std::begin(keys_of_pattern), std::end(keys_of_pattern),
                                          [&](const Key& one) { return name == one.name; });
            if (key == std::end(keys_of_pattern))
                refuse("\"", word,
                       "\" is neither full nor window=, dilation=, stride=, globals=, block=, before= or last=");
            int& number = pattern.*key->field;
            if (!read_number(value, number) || number < key->least || number > most)
                refuse("\"", word, "\": a whole number from ", key->least, " to ", most, " is expected");
            set.push_back(name);
        }
        const auto has = [&](const char* name) { return contains(set, name); };
        if (count == 0) refuse("heads ", given, " have no pattern; expected full, or KEY=NUMBER as in window=8");
        if (int(set.size()) < count && count > 1) refuse("heads ", given, ": full stands alone");
        if (has("dilation") && !has("window")) refuse("heads ", given, ": dilation= needs window=");
        if ((has("before") || has("last")) && !has("block")) refuse("heads ", given, ": before= and last= need block=");
        if (!set.empty() && pattern.window < 0 && (pattern.block == 0 || pattern.stride > 0)) pattern.window = 0;
        std::fill(all.begin() + range.begin(heads), all.begin() + range.end(heads), pattern);
    }
    return all;
}

struct ByHeadOptions {
    std::string patterns;
    void declare(AttentionSettings& s) {
        s.add("patterns", &patterns,
              "positions that heads see, as in '0:2 window=8 | 2:4 stride=8' (heads 0 and 1 see 8 positions to either "
              "side, heads 2 and 3 every 8th position); empty: half of the heads see nearby positions, the other half "
              "every l-th position, with l the square root of the number of positions",
              {});
    }
};

class ByHeadAttention : public SoftmaxAttention {
  public:
    ByHeadAttention(const AttentionPlace& at, const ByHeadOptions& options) : SoftmaxAttention(at) {
        std::vector<SegmentPattern> patterns(shape_.heads);
        if (options.patterns.empty()) {
            const int l = stride_or_root(0, shape_.positions);
            for (int h = 0; h < shape_.heads; h++) {
                SegmentPattern& pattern = patterns[h];
                pattern.window = 2 * h < shape_.heads ? l - 1 : 0;
                pattern.stride = 2 * h < shape_.heads ? 0 : l;
            }
        } else {
            patterns = read_patterns(options.patterns, shape_.heads);
        }
        add_groups(patterns);
    }

  protected:
    Tensor* attend(Tape& tape, Tensor* q, const std::vector<Tensor*>& kv,
                   const AttentionContext& context) const override {
        const auto graph_of = [&](const Group& group) -> const SegmentGraph& {
            return tape.hold(with_pattern(*context.graph, group.pattern));
        };
        if (groups_.size() == 1)
            return attention(tape, q, kv, graph_of(groups_[0]), shape_.heads, context.dropout, context.rows, name_);
        const std::int64_t N = q->rows(), H = shape_.heads, D = shape_.width / shape_.heads;
        Tensor* each_q = rows_of_heads(tape, q, name_ + ".heads.query");
        std::vector<Tensor*> each_kv;
        for (std::size_t i = 0; i < kv.size(); i++)
            each_kv.push_back(rows_of_heads(tape, kv[i], text(name_, ".heads.keys.", i)));
        Tensor* y = each_q;  // the groups replace all rows, so only the shape of the first value matters
        for (const Group& group : groups_) {
            // The name lists the heads of the group, so that dropout draws different random numbers for each group.
            std::string name = name_ + ".heads";
            for (int h : group.queries) name += "_" + std::to_string(h);
            std::vector<Tensor*> some_kv;
            for (std::size_t i = 0; i < kv.size(); i++)
                some_kv.push_back(
                    chosen_heads(tape, each_kv[i], kv[i]->rows(), group.keys, text(name, ".key_value.", i)));
            Tensor* some_q = chosen_heads(tape, each_q, N, group.queries, name + ".query");
            Tensor* some = attention(tape, some_q, some_kv, graph_of(group), int(group.queries.size()), context.dropout,
                                     context.rows, name);
            const std::int64_t count = std::int64_t(group.queries.size());
            std::vector<int> which(N * H, -1);
            for (std::int64_t n = 0, row = 0; n < N; n++)
                for (int h : group.queries) which[n * H + h] = int(row++);
            y = replace_rows(tape, y, tape.ints(std::move(which)), reshape(tape, some, {N * count, D}, name + ".rows"),
                             name + ".joined");
        }
        return reshape(tape, y, {N, H * D}, name_);
    }

  private:
    // Heads that one attention op computes together. `queries` lists the query heads. A row of keys and values consists
    // of G keys, then G values, for G key/value heads; `keys` lists which of these 2 G parts the query heads use.
    struct Group {
        SegmentPattern pattern;
        std::vector<int> queries, keys;
        int readers = 0;  // number of heads in `queries` for each key/value head
    };

    // In one attention op, every key/value head must serve the same number of query heads. Heads with the same pattern
    // are therefore in one group only if this number is equal for their key/value heads. For example, if two query
    // heads of key/value head 0 and one query head of key/value head 1 have the same pattern, they form two groups.
    void add_groups(const std::vector<SegmentPattern>& patterns) {
        const int G = shape_.key_width() / (shape_.width / shape_.heads), readers = shape_.heads / G;
        for (int g = 0; g < G; g++)
            for (int first = g * readers; first < (g + 1) * readers; first++) {
                const SegmentPattern& pattern = patterns[first];
                std::vector<int> same;
                for (int h = g * readers; h < (g + 1) * readers; h++)
                    if (same_pattern(patterns[h], pattern)) same.push_back(h);
                if (same[0] != first) continue;
                auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& one) {
                    return one.readers == int(same.size()) && same_pattern(one.pattern, pattern);
                });
                if (group == groups_.end()) group = groups_.insert(group, {pattern, {}, {}, int(same.size())});
                group->queries.insert(group->queries.end(), same.begin(), same.end());
                group->keys.push_back(g);
            }
        for (Group& group : groups_)
            for (std::size_t i = 0, count = group.keys.size(); i < count; i++) group.keys.push_back(G + group.keys[i]);
    }

    // Reshapes x (N,M D) to (N M,D): each of the M heads of a row becomes a row.
    Tensor* rows_of_heads(Tape& tape, Tensor* x, const std::string& name) const {
        const std::int64_t D = shape_.width / shape_.heads;
        return reshape(tape, x, {x->rows() * x->columns() / D, D}, name);
    }

    // Selects heads: returns (N,count D), where count is the number of `heads`. Each of the N rows holds the listed
    // heads side by side. `each` (N M,D) is the result of rows_of_heads() for N rows of M heads.
    Tensor* chosen_heads(Tape& tape, Tensor* each, std::int64_t N, const std::vector<int>& heads,
                         const std::string& name) const {
        const std::int64_t M = N > 0 ? each->rows() / N : 0, count = std::int64_t(heads.size());
        std::vector<int> rows;
        rows.reserve(N * count);
        for (std::int64_t n = 0; n < N; n++)
            for (int h : heads) rows.push_back(int(n * M + h));
        Tensor* some = gather_rows(tape, each, tape.ints(std::move(rows)), name + ".rows");
        return reshape(tape, some, {N, count * each->columns()}, name);
    }

    std::vector<Group> groups_;
};

std::string refuses(const SegmentGraph& graph) { return pattern_refuses(graph, true); }

}  // namespace

const AttentionKind by_head_kind = with_softmax_cross(with_groups(kind_of<ByHeadAttention, ByHeadOptions>(
    "by_head", "softmax, where each head sees places by a pattern of its own", true, true, refuses)));

}  // namespace masquerade
