// SPDX-License-Identifier: MIT
// Draws the attention probabilities for one line of text.
#include "engine/base/log.h"
#include "engine/base/write_file.h"
#include "models/runs/attention_maps.h"
#include "models/runs/origin.h"
#include "models/runs/run.h"
#include "tools/inspect/inspect.h"
#include "tools/inspect/page.h"

namespace masquerade {
namespace {

// Draws probabilities as a table: rows are queries, columns are keys, and a darker cell is a larger probability. If
// `small` is true, the picture has no labels.
std::string picture(const std::string& title, const AttentionMap& m, const Vectors& p, bool small) {
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
    std::string all;
    for (const AttentionMap& m : attention_maps(run, text)) {
        all += picture(heads ? m.path + ", mean of its heads" : m.path, m, m.mean(), false);
        for (std::size_t h = 0; heads && h < m.heads.size(); h++)
            all += picture(fmt::format("head {}", h), m, m.heads[h], true);
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

void draw_attention(const AttentionPageSettings& s) {
    const Family& kind = family_of_run(s.run);
    const auto run = kind.load(s.run, false, Device::cpu);
    const TrainingText one = s.text.empty() ? first_line(read_again(origin_of(run->run_json, s.run + "/run.json")))
                                            : given_line(s.text, run->common().wants(kind.reads), "--text: " + s.run);
    const std::string pictures = attention_pictures(*run, one, true);
    if (pictures.empty())
        throw BadUsage(s.run, ": its kind of attention has no probabilities to draw; ./inspect mask draws its rule");
    replace_file(s.out, page("Attention: " + (one.train.empty() ? "an example that the run makes" : one.train[0]),
                             attention_section(pictures)));
    log_line("wrote ", s.out);
}

}  // namespace masquerade
