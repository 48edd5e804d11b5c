// SPDX-License-Identifier: MIT
// Pictures of masks, as text and as SVG.
#include <algorithm>
#include <set>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/ops/visible.h"
#include "models/masks/mask.h"

namespace masquerade {
namespace {

// Width of the whole picture, and width of the label at the start of each line, in characters.
constexpr int page = 80, row_label = 11;

// Returns `width` characters: first the mark, `marks` times, then spaces.
std::string cell(const std::string& mark, int marks, int width) {
    std::string s;
    for (int i = 0; i < width; i++) s += i < marks ? mark : " ";
    return s;
}

std::string trimmed(const std::string& line) { return line.substr(0, line.find_last_not_of(' ') + 1) + "\n"; }

// Returns the two lines above the columns. For the labels a1 and b2, the first line has the letters a and b, and the
// second line has the numbers 1 and 2.
std::string header(const Strings& labels, int width) {
    std::string initials(row_label, ' '), numbers(row_label, ' ');
    for (const std::string& label : labels) {
        std::string letter = label == "[CLS]" ? "C" : label.substr(0, 1);
        std::string number = label == "[CLS]" ? "" : label.substr(1, 3);
        std::size_t most = std::min(2, width);
        if (number.size() > most) number.erase(0, number.size() - most);
        initials += letter + std::string(width - letter.size(), ' ');
        numbers += number + std::string(width - number.size(), ' ');
    }
    return trimmed(initials) + trimmed(numbers);
}

Strings labels(const char* kind, int count) {
    Strings names;
    for (int i = 0; i < count; i++)
        names.push_back(*kind == 'a' && i == 0 ? "[CLS]" : kind + std::to_string(*kind == 'a' ? i : i + 1));
    return names;
}

struct Picture {
    std::string title;
    Strings queries, keys;                // labels of the picture's rows and columns
    std::vector<std::vector<bool>> seen;  // seen[query][key]: the query sees the key
};

bool row_sees(const SegmentGraph& graph, int row, int source, int key_row) {
    bool seen = false;
    for (const QuerySegment& q : graph.queries)
        for (int v = q.sees_begin; row >= q.begin && row < q.end && v < q.sees_end; v++) {
            const int segment = graph.sees[v];
            const KeySegment& key = graph.keys[segment];
            if (key.source == source && key_row >= key.begin && key_row < key.end)
                seen |= visible(graph, q, row, segment, key_row);
        }
    return seen;
}

// queries[i] is the label of query row i; keys[t][j] is the label of row j of key tensor t.
Picture picture_of(const SegmentGraph& graph, const Strings& queries, const std::vector<Strings>& keys) {
    Picture p{"", queries, {}, std::vector<std::vector<bool>>(queries.size())};
    for (std::size_t source = 0; source < keys.size(); source++)
        for (int column = 0; column < int(keys[source].size()); column++) {
            p.keys.push_back(keys[source][column]);
            for (int row = 0; row < int(queries.size()); row++)
                p.seen[row].push_back(row_sees(graph, row, int(source), column));
        }
    return p;
}

std::string as_text(const Picture& p) {
    const int room = page - row_label, count = p.keys.size(), width = std::min(3, room / std::max(1, count));
    if (width < 1) throw BadUsage("a picture of ", count, " keys does not fit ", page, " columns; at most ", room);
    std::string picture = header(p.keys, width);
    for (std::size_t row = 0; row < p.queries.size(); row++) {
        std::string line = p.queries[row];
        line.resize(row_label, ' ');
        for (bool seen : p.seen[row]) line += seen ? cell("█", std::min(width, 2), width) : cell("·", 1, width);
        picture += trimmed(line);
    }
    return picture;
}

std::string as_svg(const Picture& p) {
    constexpr int side = 24, left = 110, top = 64;
    const int width = std::max({left + side * int(p.keys.size()) + 12, 7 * int(p.title.size()) + 24, 330}),
              height = top + side * int(p.queries.size()) + 36;
    std::string s = text(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", height, "\" width=\"", width,
        "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
    const auto words = [&](int x, int y, const char* anchor, const std::string& label) {
        s += text("<text x=\"", x, "\" y=\"", y, "\" text-anchor=\"", anchor, "\">", letters(label), "</text>\n");
    };
    words(12, 22, "start", p.title);
    for (int column = 0; column < int(p.keys.size()); column++) {
        const std::string& label = p.keys[column];
        words(left + side * column + side / 2, top - 8, "middle",
              label == "[CLS]" ? "C" : label.substr(0, label.find(' ')));
    }
    for (int row = 0; row < int(p.queries.size()); row++) {
        words(left - 8, top + side * row + 16, "end", p.queries[row]);
        for (int column = 0; column < int(p.keys.size()); column++)
            s += text("<rect x=\"", left + side * column + 1, "\" y=\"", top + side * row + 1, "\" width=\"", side - 2,
                      "\" height=\"", side - 2, "\" fill=\"", p.seen[row][column] ? "#2b5d8a" : "#e8ecef", "\"/>\n");
    }
    words(12, height - 12, "start", "rows are queries, columns keys; a dark field is seen");
    return s + "</svg>\n";
}

Picture mask_picture(const std::string& name, int source, int target) {
    // The row of a mask that is given in words, not by a name: queries and keys are all tokens.
    static const NamedMask by_words = {"in words", "", MaskRows::tokens, ""};
    const NamedMask& mask = mask_in_words(name) ? by_words : find_mask(name);
    if (source < 1 || target < 0)
        throw BadUsage("a mask of ", source, " source, ", target, " target tokens; at least 1 and 0");
    Documents documents = {{source, target}};
    MaskDetails details = example_details(documents);
    const Strings a = labels("a", source), b = labels("b", target);
    Strings rows = mask.rows == MaskRows::tokens || mask.rows == MaskRows::source ? a : b;
    if (mask.rows == MaskRows::tokens) rows.insert(rows.end(), b.begin(), b.end());
    std::vector<Strings> keys = {mask.rows == MaskRows::cross ? a : rows};
    if (mask.rows == MaskRows::latent || mask.rows == MaskRows::decoded) keys = {{"z"}, b};
    if (mask.rows == MaskRows::decoded) rows.erase(rows.begin(), rows.end() - std::min(1, target));
    for (std::size_t i = 0; i < rows.size(); i++) {
        if (name == "plm" || name == "plm-query") rows[i] += " r=" + std::to_string(details.rank[i]);
        if (name == "plm-streams") rows[i] += " r=" + std::to_string(details.stream_rank[i]);
        if (name == "block-diffusion" && details.block[i] >= 0)
            rows[i] += " of " + std::to_string(details.block[i] + 1);
        if (name == "k-bert" && details.branch[i] >= 0) rows[i] += " of a" + std::to_string(details.entity[i] + 1);
        if (name == "pseudo-mask") rows[i] += " w=" + std::to_string(details.weight[i]);
    }
    Picture p = picture_of(make_mask(name, documents, details), rows, keys);
    p.title = mask_in_words(name) ? printable(name) : text(name, ": ", mask.text);
    return p;
}

}  // namespace

std::string draw_graph(const SegmentGraph& graph, const Strings& queries, const std::vector<Strings>& keys) {
    return as_text(picture_of(graph, queries, keys));
}

const char* draw_document(const SegmentGraph& graph, int document) {
    static std::string drawn;  // static, because a debugger reads the characters after the call
    Picture p;
    std::vector<int> rows;
    std::set<std::pair<int, int>> keys;  // (key tensor, row) of all keys that the document's queries see
    for (const QuerySegment& q : graph.queries) {
        if (q.document != document) continue;
        for (int row = q.begin; row < q.end; row++) rows.push_back(row);
        for (int v = q.sees_begin; v < q.sees_end; v++) {
            const KeySegment& key = graph.keys[graph.sees[v]];
            for (int row = key.begin; row < key.end; row++) keys.emplace(key.source, row);
        }
    }
    // k, l, m and n stand for the key tensors 0, 1, 2 and 3.
    for (const auto& [source, row] : keys) p.keys.push_back("klmn"[source] + std::to_string(row));
    for (int row : rows) {
        p.queries.push_back("q" + std::to_string(row));
        p.seen.emplace_back();
        for (const auto& [source, key_row] : keys) p.seen.back().push_back(row_sees(graph, row, source, key_row));
    }
    try {
        drawn = as_text(p);
    } catch (const Error& e) {
        drawn = text(e.what(), "\n");
    }
    return drawn.c_str();
}

std::vector<std::vector<bool>> seen_cells(const std::string& name, int source, int target) {
    return mask_picture(name, source, target).seen;
}

std::string draw_mask(const std::string& name, int source, int target) {
    const Picture p = mask_picture(name, source, target);
    return p.title + "\n" + as_text(p) + "rows are queries, columns keys; █ sees, · does not\n";
}

std::string mask_svg(const std::string& name, int source, int target) {
    return as_svg(mask_picture(name, source, target));
}

}  // namespace masquerade
