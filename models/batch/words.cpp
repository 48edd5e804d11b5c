// SPDX-License-Identifier: MIT
#include "models/batch/words.h"

#include <algorithm>

#include "engine/base/wrap.h"

namespace masquerade {
namespace {

constexpr int most_documents = 2, most_rows = 60, most_choices = 3;
constexpr int margin = 13;  // width of the names before the tokens

// A row of the batch: its token, and what it predicts, or "".
struct Cell {
    std::string token, predicted;
};

// Returns the text of a token. Ids above the vocabulary are numbers, which some objectives predict.
std::string token_text(const Vocabulary& v, int id) {
    return id < v.size() ? v.token(id) : std::to_string(id - v.size());
}

std::string predicted_text(const Labels& labels, int label, const Vocabulary& v) {
    const Choices& c = labels.choices;
    if (c.begin.size() == 1) return token_text(v, labels.tokens[label]);
    const int begin = c.begin[label], end = c.begin[label + 1];
    std::string all;
    for (int j = begin; j < std::min(end, begin + most_choices); j++)
        all += (j > begin ? "/" : "+") + token_text(v, c.tokens[j]);
    return all + (end - begin > most_choices ? "/..." : "");
}

std::vector<Cell> cells_of(const TokenRows& rows, int first, int count, const Vocabulary& v) {
    std::vector<Cell> cells;
    for (int i = 0; i < std::min(count, most_rows); i++) cells.push_back({token_text(v, rows.ids[first + i]), ""});
    if (count > most_rows) cells.push_back({"... (" + std::to_string(count - most_rows) + " more)", ""});
    return cells;
}

std::string padded(std::string word, int width) {
    word.append(std::max(0, width - characters_in(word)), ' ');
    return word;
}

// Appends the cells: lines of tokens, and below each of them a line of what they predict, if they predict anything.
void append_cells(std::string& all, const char* name, const std::vector<Cell>& cells, int columns) {
    for (std::size_t begin = 0, end; begin < cells.size(); begin = end) {
        std::string tokens, predicted;
        int used = margin;
        bool any = false;
        for (end = begin; end < cells.size(); end++) {
            const Cell& cell = cells[end];
            const int width = std::max(characters_in(cell.token), characters_in(cell.predicted));
            if (end > begin && used + width > columns) break;
            tokens += padded(cell.token, width + 1);
            predicted += padded(cell.predicted, width + 1);
            any |= !cell.predicted.empty();
            used += width + 1;
        }
        const auto append = [&](const char* what, std::string& line) {
            line.erase(line.find_last_not_of(' ') + 1);
            all += "    " + padded(what, margin - 4) + line + "\n";
        };
        append(name, tokens);
        if (any) append("predicts", predicted);
    }
}

}  // namespace

std::string batch_in_words(const Batch& b, const Vocabulary& v, int columns) {
    const bool encoder = b.source.count() > 0;
    std::string all;
    int source = 0, row = 0;
    for (int d = 0; d < std::min(b.documents, most_documents); d++) {
        const Document& part = b.parts[d];
        const int sources = encoder ? part.source : 0, rows = part.target + (encoder ? 0 : part.source);
        all += "  document " + std::to_string(d + 1) + "\n";
        append_cells(all, "encoder", cells_of(b.source, source, sources, v), columns);
        std::vector<Cell> cells = cells_of(b.rows, row, rows, v);
        for (int m = b.labels.begin[d]; m < b.labels.begin[d + 1]; m++)
            if (const int at = b.labels.rows[m] - row; at < most_rows)
                cells[at].predicted = predicted_text(b.labels, m, v);
        append_cells(all, encoder ? "decoder" : "reads", cells, columns);
        source += sources;
        row += rows;
    }
    return all;
}

}  // namespace masquerade
