// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <functional>
#include <numeric>

#include "data/text.h"
#include "models/runs/run.h"
#include "models/scoring/probe.h"
#include "tools/evaluate/evaluate.h"

namespace masquerade {

void LabelMeasuring::declare(Options& app) {
    Options own = app.group("of labelled lines, for univae and unilm");
    const Option file = own.value("--labelled", lines, "FILE", "text<TAB>label on every line: what the model's vectors say of labels");
    own.value("--labels", labels, "N,...", "... from so many lines of each label (default: 0, all)").list().between(std::int64_t(0), std::int64_t(1000000)).needs(file);
    own.number("--draws", draws, 1, 1000, "... drawn so often: the mean, the least and the most (default: 1)").needs(file);
}

void LabelMeasuring::measure(const Run& run, const std::string& name, std::uint64_t seed, std::vector<Row>& rows) const {
    const Text file = read_text(lines);
    if (file.target.empty()) throw BadInput(text(lines, " has no labels; text<TAB>label is expected on every line"));
    const std::vector<std::vector<double>> vectors = run.features(file.source);
    if (vectors.empty()) throw BadUsage(text("--labelled: ", name, " has no vector of a line; a univae with latents and a unilm have"));
    const std::vector<Sentence> words = encode_lines(run.tokenizer, file.source, INT_MAX);
    const std::pair<std::string, std::function<double(const LabelledSplit&)>> classifiers[] = {
        {"probe", [&](const LabelledSplit& s) { return linear_probe(vectors, s); }},
        {"probe_neighbours", [&](const LabelledSplit& s) { return nearest_neighbours(vectors, s, 5); }},
        {"probe_words", [&](const LabelledSplit& s) { return naive_bayes(words, s); }},
    };
    const char* meanings[] = {"by a linear probe", "by the five nearest", "by naive Bayes over the tokens, without a model"};
    for (int most : labels) {
        std::vector<LabelledSplit> splits;
        for (int draw = 0; draw < draws; draw++) splits.push_back(split_labels(file.target, most, seed, std::uint32_t(draw)));
        for (std::size_t c = 0; c < std::size(classifiers); c++) {
            std::vector<double> right;
            for (const LabelledSplit& split : splits) right.push_back(100 * classifiers[c].second(split));
            Row row{classifiers[c].first, std::accumulate(right.begin(), right.end(), 0.0) / draws, "%",
                    fmt::format("of {} lines right, {} labels, trained on {}, {}", splits[0].test.size(), splits[0].classes,
                                splits[0].train.size(), meanings[c])};
            if (labels.size() > 1) row.key += fmt::format(".{}", most);
            if (draws > 1) row.interval = {*std::min_element(right.begin(), right.end()), *std::max_element(right.begin(), right.end())};
            rows.push_back(row);
        }
    }
    rows.push_back({"clusters", cluster_information(vectors, split_labels(file.target, 0, seed), seed), "",
                    "normalised mutual information of labels and k-means"});
}

}  // namespace masquerade
