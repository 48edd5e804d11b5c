// SPDX-License-Identifier: MIT
// Draws the attention probabilities for one line of text. An observer of the tape recomputes the probabilities of each
// attention op from its queries, its keys and the log-sum-exp of its scores. To label rows and columns, the observer
// also tracks which token each row of a tensor belongs to.
#include <cmath>

#include "engine/base/log.h"
#include "engine/base/write_file.h"
#include "engine/ops/visible.h"
#include "engine/tape/op_record.h"
#include "engine/tensor/numbers.h"
#include "models/runs/run.h"
#include "tools/inspect/inspect.h"
#include "tools/inspect/page.h"
#include "models/runs/origin.h"

namespace masquerade {
namespace {

using Rows = std::vector<std::vector<double>>;

// The probabilities that one attention op computes: p[head][row][column], or -1 if the row does not see the column.
// After the matrices of the heads, p has one more matrix, the mean of the heads.
struct AttentionMap {
    std::string path;
    Strings rows, columns;
    std::vector<Rows> p;
};

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
        const auto& [graph, rule] = attributes_of(r, attention_forward);
        const std::int64_t C = r.x(0).columns(), D = C / rule.heads, kv_columns = r.x(1).columns(),
                           readers = 2 * C / kv_columns;  // query heads per key/value head
        const std::vector<double> q = numbers_of(r.x(0)), lse = numbers_of(r.y(1));
        AttentionMap m{r.path, {}, {}, std::vector<Rows>(std::size_t(rule.heads) + 1)};
        Rows kv;
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
                for (Rows& head : m.p) head.emplace_back(m.columns.size(), -1.0);
                for (int v = segment.sees_begin; v < segment.sees_end; v++) {
                    const int k = graph->sees[v];
                    const KeySegment& key = graph->keys[k];
                    for (int j = key.begin; j < key.end; j++) {
                        if (!visible(*graph, segment, row, k, j)) continue;
                        const std::size_t at = column.at({key.source, j});
                        double sum = 0;
                        for (int h = 0; h < rule.heads; h++)
                            sum += m.p[h].back()[at] = probability(row, key.source, j, h);
                        m.p.back().back()[at] = sum / rule.heads;
                    }
                }
            }
        return m;
    }

    const Vocabulary& vocabulary_;
    std::map<const Tensor*, Strings> names_;
};

// Draws probabilities as a table: rows are queries, columns are keys, and a darker cell is a larger probability. If
// `small` is true, the picture has no labels.
std::string picture(const std::string& title, const AttentionMap& m, const Rows& p, bool small) {
    std::size_t longest = 0;
    for (const std::string& name : m.columns) longest = std::max(longest, name.size());
    const double side = small ? 9 : 18, left = small ? 2 : 96, top = small ? 20 : 30 + 6 * double(longest);
    const double width = left + side * double(m.columns.size()) + (small ? 4 : 30),
                 height = top + side * double(m.rows.size()) + 4;
    std::string s = fmt::format(
        R"(<svg viewBox="0 0 {0} {1}" style="width:{0}px" role="img"><title>{2}</title><text x="2" y="14" class="title">{2}</text>)",
        std::max(width, small ? 60.0 : 320.0), height, letters(title));
    for (std::size_t k = 0; k < m.columns.size() && !small; k++)
        s += fmt::format("<text transform=\"translate({:.0f} {}) rotate(-60)\">{}</text>",
                         left + side * (double(k) + 0.6), top - 5, letters(m.columns[k]));
    for (std::size_t i = 0; i < m.rows.size(); i++) {
        if (!small)
            s += fmt::format(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", left - 5,
                             top + side * double(i) + 13, letters(m.rows[i]));
        for (std::size_t k = 0; k < m.columns.size(); k++) {
            if (p[i][k] < 0) continue;
            s += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="#2b5d8a" fill-opacity="{:.2f}")",
                             left + side * double(k), top + side * double(i), side - 1, side - 1,
                             0.05 + 0.95 * std::min(1.0, p[i][k]));
            s += small ? "/>"
                       : fmt::format("><title>{} reads {}: {:.2f}</title></rect>", letters(m.rows[i]),
                                     letters(m.columns[k]), p[i][k]);
        }
    }
    return s + "</svg>\n";
}

}  // namespace

std::string attention_pictures(Run& run, const TrainingText& text, bool heads) {
    run.settings_to_change().batch_tokens = 2;  // tokens per batch: so few that a batch has only one document
    const std::unique_ptr<Task> task = run.task(text);
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f32);
    AttentionReader reader(run.tokenizer.vocabulary());
    tape.observe(&reader);
    tape.begin(task->next_batch(1), run.common().train.seed, 1);
    task->loss(tape, 1, 1);
    tape.end();
    std::string all;
    for (const AttentionMap& m : reader.maps) {
        all += picture(heads ? m.path + ", mean of its heads" : m.path, m, m.p.back(), false);
        for (std::size_t h = 0; heads && h + 1 < m.p.size(); h++)
            all += picture(fmt::format("head {}", h), m, m.p[h], true);
        if (heads) all += "<hr>";
    }
    return all;
}

std::string attention_section(const std::string& pictures) {
    return section(
        "Who reads whom",
        "Rows read columns; the darker a field, the more. A light field is seen and hardly read, an empty one is not seen. "
        "Point at a field to read its number.",
        pictures);
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

// Returns the line that the user gave with --text as a TrainingText of one example: a sentence or a pair, as the run
// requires.
TrainingText given_line(const std::string& line, TextKind wanted, const std::string& path) {
    const std::size_t tab = line.find('\t');
    if (wanted == TextKind::none) throw BadUsage(text("--text: ", path, " makes its examples itself"));
    if (tab == line.npos && only_pairs(wanted))
        throw BadUsage(text("--text: ", path, " reads pairs; expected source<TAB>target"));
    TrainingText one;
    one.train = {line.substr(0, tab)};
    if (tab != line.npos) one.origin.pairs = true, one.train_targets = {line.substr(tab + 1)};
    return one;
}

void draw_attention(const AttentionPageSettings& s) {
    const Family& kind = family_of_run(s.run);
    const std::unique_ptr<Run> run = kind.load(s.run, false, Device::cpu);
    const TrainingText one = s.text.empty() ? first_line(read_again(origin_of(run->run_json, s.run + "/run.json")))
                                            : given_line(s.text, run->common().wants(kind.reads), s.run);
    const std::string pictures = attention_pictures(*run, one, true);
    if (pictures.empty())
        throw BadUsage(
            text(s.run, ": its kind of attention has no probabilities to draw; ./inspect mask draws its rule"));
    replace_file(s.out, page("Attention: " + (one.train.empty() ? "an example that the run makes" : one.train[0]),
                             attention_section(pictures)));
    log_line("wrote ", s.out);
}

}  // namespace masquerade
