// SPDX-License-Identifier: MIT
#include "models/runs/attention_maps.h"

#include <cmath>
#include <map>

#include "engine/ops/visible.h"
#include "engine/tape/op_record.h"
#include "engine/tensor/numbers.h"

namespace masquerade {
namespace {

// Observes the tape. Recomputes the probabilities of each attention op from its queries, its keys and the log-sum-exp
// of its scores. To name rows and columns, also tracks which token each row of a tensor belongs to.
class AttentionReader : public Observer {
  public:
    explicit AttentionReader(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}
    std::vector<AttentionMap> maps;

    void after(const Record& r, bool backward) override {
        if (backward) return;
        if (r.op == std::string("attention")) maps.push_back(map_of(r));
        const Strings names = names_after(r);
        for (const Tensor* t : r.out)
            if (!names.empty() && t->rows() == std::int64_t(names.size())) names_[t] = names;
    }

  private:
    // Returns names for the rows of the output of an op. The rows of a token embedding are named after the tokens. The
    // rows that gather_rows selects keep their names. If reshape cuts rows into heads, each head has the name of the
    // row that it was cut from. For any other op, the output gets the names of the first input that has names and as
    // many rows as the output.
    Strings names_after(const Record& r) const {
        Strings names;
        const std::string op = r.op, &path = r.out[0]->path;
        if (op == "embedding" && path.substr(path.rfind('.') + 1) == "token") {
            const auto& [ids] = attributes_of(r, embedding_forward);
            for (std::int64_t i = 0; i < ids.count; i++) names.emplace_back(vocabulary_.token(ids[i]));
        } else if (op == "gather_rows") {
            const auto& [rows] = attributes_of(r, gather_rows_forward);
            for (std::int64_t i = 0; i < rows.count; i++) names.push_back(name_of(r.in[0], rows[i]));
        } else if (op == "reshape" && names_.count(r.in[0])) {
            const std::size_t from = r.in[0]->rows(), to = r.out[0]->rows();
            for (std::size_t i = 0; i < to; i++) names.push_back(names_.at(r.in[0])[i * from / to]);
        } else {
            for (const Tensor* t : r.in)
                if (t && names.empty() && t->rows() == r.out[0]->rows() && names_.count(t)) names = names_.at(t);
        }
        return names;
    }
    std::string name_of(const Tensor* t, int row) const {
        const auto found = names_.find(t);
        return found == names_.end() ? std::to_string(row) : found->second[row];
    }

    // Returns the attention probabilities in the first document of the batch. `r` is the record of an attention op.
    AttentionMap map_of(const Record& r) const {
        const auto& [graph, own_rule] = attributes_of(r, attention_forward);
        const auto& rule = own_rule;  // clang++ 14 cannot capture a structured binding
        const std::int64_t C = r.x(0).columns(), D = C / rule.heads, kv_columns = r.x(1).columns(),
                           readers = 2 * C / kv_columns;  // query heads per key/value head
        const Numbers q = numbers_of(r.x(0)), lse = numbers_of(r.y(1));
        AttentionMap m{r.path, {}, {}, std::vector<Vectors>(std::size_t(rule.heads))};
        Vectors kv;
        for (std::size_t i = 1; i < r.in.size(); i++) kv.push_back(numbers_of(r.x(i)));
        std::vector<QuerySegment> own;
        for (const QuerySegment& segment : graph->queries)
            if (segment.document == 0) own.push_back(segment);
        // Maps each visible key, given as (index of its key/value tensor, row), to its column in the picture.
        std::map<std::pair<int, int>, std::size_t> column;
        for (const QuerySegment& segment : own)
            for (int v = segment.sees_begin; v < segment.sees_end; v++) {
                const KeySegment& key = graph->keys[graph->sees[v]];
                for (int row = key.begin; row < key.end; row++)
                    if (column.emplace(std::pair(key.source, row), m.columns.size()).second)
                        m.columns.push_back((kv.size() > 1 && key.source == 0 ? "memory " : "") +
                                            name_of(r.in[1 + key.source], row));
            }
        const auto probability = [&](int row, int source, int j, int h) {
            double dot = 0;
            for (std::int64_t d = 0; d < D; d++)
                dot += q[row * C + h * D + d] * kv[source][j * kv_columns + h / readers * D + d];
            return std::exp(dot / std::sqrt(double(D)) - lse[row * rule.heads + h]);
        };
        for (const QuerySegment& segment : own)
            for (int row = segment.begin; row < segment.end; row++) {
                m.rows.push_back(name_of(r.in[0], row));
                for (Vectors& head : m.heads) head.emplace_back(m.columns.size(), -1.0);
                for (int v = segment.sees_begin; v < segment.sees_end; v++) {
                    const int k = graph->sees[v];
                    const KeySegment& key = graph->keys[k];
                    for (int j = key.begin; j < key.end; j++) {
                        if (!visible(*graph, segment, row, k, j)) continue;
                        const std::size_t at = column.at({key.source, j});
                        for (int h = 0; h < rule.heads; h++) m.heads[h].back()[at] = probability(row, key.source, j, h);
                    }
                }
            }
        return m;
    }

    const Vocabulary& vocabulary_;
    std::map<const Tensor*, Strings> names_;
};

// Changes a number until the end of a scope.
struct Changed {
    Changed(int& place, int value) : number(place), before(std::exchange(place, value)) {}
    ~Changed() { number = before; }
    Changed(const Changed&) = delete;
    Changed& operator=(const Changed&) = delete;
    int& number;
    const int before;
};

}  // namespace

Vectors AttentionMap::mean() const {
    Vectors all = heads.at(0);
    for (std::size_t i = 0; i < all.size(); i++)
        for (std::size_t j = 0; j < all[i].size(); j++) {
            if (all[i][j] < 0) continue;
            all[i][j] = 0;
            for (const Vectors& head : heads) all[i][j] += head[i][j] / double(heads.size());
        }
    return all;
}

std::vector<AttentionMap> attention_maps(Run& run, const TrainingText& text) {
    const Changed one_document(run.settings_to_change().batch_tokens, 2);  // 2 tokens: no batch has two documents
    const std::unique_ptr<Task> task = run.task(text);
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, run.parameters.storage());
    AttentionReader reader(run.tokenizer.vocabulary());
    tape.observe(&reader);
    tape.begin(task->next_batch(1), run.common().train.seed, 1);
    task->loss(tape, 1, 1);
    tape.end();
    return std::move(reader.maps);
}

TrainingText first_line(const TrainingText& text) {
    const bool held_out = !text.held_out.empty();
    const Strings &lines = held_out ? text.held_out : text.train,
                  &targets = held_out ? text.held_out_targets : text.train_targets;
    TrainingText one;
    one.origin = text.origin;
    if (lines.empty()) one.packed = text.packed;
    if (!lines.empty()) one.train = {lines[0]};
    if (!targets.empty()) one.train_targets = {targets[0]};
    return one;
}

TrainingText given_line(const std::string& line, TextKind wanted, const std::string& what) {
    const std::size_t tab = line.find('\t');
    if (wanted == TextKind::none) throw BadUsage(what, " makes its examples itself");
    if (tab == line.npos && only_pairs(wanted)) throw BadUsage(what, " reads pairs; expected source<TAB>target");
    TrainingText one;
    one.train = {line.substr(0, tab)};
    if (tab != line.npos) one.origin.pairs = true, one.train_targets = {line.substr(tab + 1)};
    return one;
}

}  // namespace masquerade
