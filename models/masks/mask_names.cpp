// SPDX-License-Identifier: MIT
// The registry of masks, and their pictures.
#include "engine/base/error.h"
#include "engine/ops/visible.h"
#include "models/masks/mask.h"

#include <algorithm>

namespace masquerade {
namespace {

using Details = const MaskDetails&;

template <SegmentGraph (*make)(const Documents&)>
SegmentGraph all(const Documents& d, Details) {
    return make(d);
}
template <SegmentGraph (*make)(const Documents&)>
SegmentGraph sources(const Documents& d, Details) {
    return make(sources_of(d));
}
template <SegmentGraph (*make)(const Documents&)>
SegmentGraph targets(const Documents& d, Details) {
    return make(targets_of(d));
}
SegmentGraph content(const Documents& d, Details more) { return rank_mask(d, more.rank, false); }
SegmentGraph query(const Documents& d, Details more) { return rank_mask(d, more.rank, true); }
SegmentGraph streams(const Documents& d, Details more) { return two_stream_mask(d, more.stream_rank); }
SegmentGraph trees(const Documents& d, Details more) { return knowledge_mask(d, more.entity, more.branch); }
SegmentGraph pseudo(const Documents& d, Details more) { return pseudo_mask(d, more.weight); }
SegmentGraph decoded(const Documents& documents, Details) {
    std::vector<CachedDocument> cached;
    int row = 0, b = 0;
    for (const Document& d : documents) {
        int fresh = d.target > 0 ? 1 : 0;
        cached.push_back({b, b + 1, row, d.target - fresh, fresh});
        row += d.target;
        b++;
    }
    return cached_mask(cached, 1);
}

// Columns of a cell: as many as fit, three at best.
constexpr int page = 80, row_label = 11;

std::string cell(const std::string& mark, int marks, int width) {
    std::string s;
    for (int i = 0; i < width; i++) s += i < marks ? mark : " ";
    return s;
}

std::string trimmed(const std::string& line) { return line.substr(0, line.find_last_not_of(' ') + 1) + "\n"; }

// Two lines over the columns: letters, then numbers.
std::string header(const std::vector<std::string>& labels, int width) {
    std::string letters(row_label, ' '), numbers(row_label, ' ');
    for (const std::string& label : labels) {
        std::string letter = label == "[CLS]" ? "C" : label.substr(0, 1);
        std::string number = label == "[CLS]" ? "" : label.substr(1, 3);
        std::size_t most = std::size_t(std::min(2, width));
        if (number.size() > most) number.erase(0, number.size() - most);
        letters += letter + std::string(std::size_t(width) - letter.size(), ' ');
        numbers += number + std::string(std::size_t(width) - number.size(), ' ');
    }
    return trimmed(letters) + trimmed(numbers);
}

std::vector<std::string> labels(const char* kind, int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count; i++)
        names.push_back(*kind == 'a' && i == 0 ? "[CLS]" : kind + std::to_string(*kind == 'a' ? i : i + 1));
    return names;
}

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

}  // namespace

const std::vector<NamedMask>& named_masks() {
    using Rows = MaskRows;
    static const std::vector<NamedMask> masks = {
        {"bert", "every token sees every token", Rows::tokens, all<full_mask>, {}},
        {"mlm", "as bert: masked tokens are predicted from both sides", Rows::tokens, all<full_mask>, {}},
        {"lm", "language model: a token sees itself and those before it", Rows::tokens, all<causal_mask>, {}},
        {"lm-reverse", "reversed: itself and those after it", Rows::tokens, all<anticausal_mask>, {}},
        {"unilm", "A full; B causal, sees A", Rows::tokens, all<unilm_mask>, {}},
        {"prefix-lm", "as unilm: A is the prefix", Rows::tokens, all<unilm_mask>, {}},
        {"insertion", "A full; B full, sees A: Insertion Transformer", Rows::tokens, all<insertion_mask>, {}},
        {"independent", "A full; B causal: UniVAE's lower layers", Rows::tokens, all<independent_mask>, {}},
        {"uniae", "A full; B causal, sees [CLS]: UniVAE's upper layers", Rows::tokens, all<uniae_mask>, {}},
        {"uniae-causal", "as uniae, with A causal", Rows::tokens, all<uniae_causal_mask>, {}},
        {"univae-encoder", "split form: A full, on its own", Rows::source, sources<full_mask>, {}},
        {"univae-lower", "split form: B causal, on its own", Rows::target, targets<causal_mask>, {}},
        {"univae-upper", "split form: B causal, sees one latent key z", Rows::latent, all<latent_mask>, {}},
        {"univae-decode", "decoding: the newest token sees z and the cached", Rows::decoded, decoded, {}},
        {"encoder", "encoder of two stacks, and of MASS: A full", Rows::source, sources<full_mask>, {}},
        {"decoder", "decoder of two stacks, and of MASS: B causal", Rows::target, targets<causal_mask>, {}},
        {"cross", "cross-attention of two stacks, and of MASS: B sees A", Rows::cross, all<cross_mask>, {}},
        {"plm", "permutation LM, content stream: ranks up to one's own", Rows::tokens, content, {}},
        {"plm-query", "permutation LM, query stream: ranks below one's own", Rows::tokens, query, {}},
        {"plm-streams", "both streams in one tensor, content, then queries", Rows::tokens, streams, {}},
        {"plm-shuffled", "permutation LM on shuffled tokens: causal", Rows::tokens, all<causal_mask>, {}},
        {"k-bert", "trunk full; an entity and its branches see each other", Rows::tokens, trees, {}},
        {"pseudo-mask", "UniLMv2: tokens by spans, [MASK]s see the spans before", Rows::tokens, pseudo, {}},
        {"window", "as bert, at most 2 places away", Rows::tokens, all<full_mask>, {2, 1, 0, 0, false}},
        {"dilated", "as bert, 2 or 4 places away", Rows::tokens, all<full_mask>, {2, 2, 0, 0, false}},
        {"global", "as bert, 1 place away or the first", Rows::tokens, all<full_mask>, {1, 1, 0, 1, false}},
        {"strided", "as lm, 2 places back or by threes", Rows::tokens, all<causal_mask>, {2, 1, 3, 0, false}},
        {"unilm-window", "as unilm, at most 3 away", Rows::tokens, all<unilm_mask>, {3, 1, 0, 0, true}},
    };
    return masks;
}

const NamedMask& find_mask(const std::string& name) {
    std::string names;
    for (const NamedMask& mask : named_masks()) {
        if (mask.name == name) return mask;
        names += std::string(names.empty() ? "" : ", ") + mask.name;
    }
    throw BadUsage(text("unknown mask ", name, "; there are ", names));
}

SegmentGraph make_mask(const std::string& name, const Documents& documents, const MaskDetails& details) {
    const NamedMask& mask = find_mask(name);
    SegmentGraph graph = mask.make(documents, details);
    const Window& window = details.window.radius >= 0 ? details.window : mask.window;
    return window.radius >= 0 ? with_window(std::move(graph), window) : graph;
}

MaskDetails example_details(const Documents& documents) {
    MaskDetails more;
    for (const Document& d : documents) {
        for (int i = 0; i < d.source + d.target; i++) {
            int t = i - d.source;  // place in B
            // Ranks: the source is context; of the target the second half goes first, from its end.
            const int half = d.target / 2;
            auto rank_of = [&](int k) {
                return k < 0 ? -1 : k < half ? d.target - half + k : d.target - 1 - k;
            };
            more.rank.push_back(rank_of(t));
            // Streams: the queries are the target, and their tokens the last ones of the source.
            more.stream_rank.push_back(rank_of(t < 0 ? t + d.target : t));
            // The target is branches of two tokens each; branch k hangs on source token 1 + k.
            more.branch.push_back(t < 0 ? -1 : t / 2);
            more.entity.push_back(t < 0 ? (i > 0 && i <= (d.target + 1) / 2 ? i - 1 : -1) : t / 2);
            // The target is true tokens, one span each, then their [MASK]s.
            int spans = (d.target + 1) / 2;
            more.weight.push_back(t < 0 ? 0 : t < spans ? t + 1 : -(t - spans + 1));
        }
    }
    return more;
}

std::string draw_graph(const SegmentGraph& graph, const std::vector<std::string>& queries,
                       const std::vector<std::vector<std::string>>& keys) {
    struct Column {
        int source, row;
    };
    std::vector<Column> columns;
    std::vector<std::string> names;
    for (std::size_t s = 0; s < keys.size(); s++)
        for (std::size_t row = 0; row < keys[s].size(); row++) {
            columns.push_back({int(s), int(row)});
            names.push_back(keys[s][row]);
        }
    int room = page - row_label, count = int(columns.size());
    int width = std::min(3, room / std::max(1, count));
    if (width < 1)
        throw BadUsage(text("a picture of ", count, " keys does not fit ", page, " columns; at most ", room));
    std::string picture = header(names, width);
    for (int row = 0; row < int(queries.size()); row++) {
        std::string line = queries[std::size_t(row)];
        line.resize(row_label, ' ');
        for (const Column& column : columns) {
            bool seen = false;
            for (const QuerySegment& q : graph.queries)
                for (int v = q.sees_begin; row >= q.begin && row < q.end && v < q.sees_end; v++) {
                    const KeySegment& key = graph.keys[std::size_t(graph.sees[std::size_t(v)])];
                    if (key.source == column.source && column.row >= key.begin && column.row < key.end)
                        seen |= visible(graph, q, row, graph.sees[std::size_t(v)], column.row);
                }
            line += seen ? cell("█", std::min(width, 2), width) : cell("·", 1, width);
        }
        picture += trimmed(line);
    }
    return picture;
}

std::string draw_mask(const std::string& name, int source, int target) {
    const NamedMask& mask = find_mask(name);
    if (source < 1 || target < 0)
        throw BadUsage(text("a mask of ", source, " source, ", target, " target tokens; at least 1 and 0"));
    Documents documents = {{source, target}};
    MaskDetails details = example_details(documents);
    std::vector<std::string> a = labels("a", source), b = labels("b", target), rows = a + b;
    std::vector<std::vector<std::string>> keys = {rows};
    switch (mask.rows) {
        case MaskRows::tokens: break;
        case MaskRows::source: keys = {rows = a}; break;
        case MaskRows::target: keys = {rows = b}; break;
        case MaskRows::latent: rows = b; keys = {{"z"}, b}; break;
        case MaskRows::decoded: rows = {b.end() - std::min(1, target), b.end()}; keys = {{"z"}, b}; break;
        case MaskRows::cross: rows = b; keys = {a}; break;
    }
    for (std::size_t i = 0; i < rows.size(); i++) {
        if (name == "plm" || name == "plm-query") rows[i] += " r=" + std::to_string(details.rank[i]);
        if (name == "plm-streams") rows[i] += " r=" + std::to_string(details.stream_rank[i]);
        if (name == "k-bert" && details.branch[i] >= 0)
            rows[i] += " of a" + std::to_string(details.entity[i] + 1);
        if (name == "pseudo-mask") rows[i] += " w=" + std::to_string(details.weight[i]);
    }
    return text(name, ": ", mask.text, "\n") + draw_graph(make_mask(name, documents, details), rows, keys) +
           "rows are queries, columns keys; █ sees, · does not\n";
}

}  // namespace masquerade
