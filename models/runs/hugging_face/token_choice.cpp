// SPDX-License-Identifier: MIT
#include "models/runs/hugging_face/token_choice.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tokenizer/simplify.h"

namespace masquerade {
namespace {

template <class T>
void mean_row(const std::vector<TokenChoice::Part>& parts, const T* kept, std::int64_t columns, T* to) {
    double weights = 0;
    for (const TokenChoice::Part& part : parts) weights += part.weight;
    for (std::int64_t c = 0; c < columns; c++) {
        double sum = 0;
        for (const TokenChoice::Part& part : parts) sum += part.weight * double(kept[part.id * columns + c]);
        to[c] = T(sum / weights);
    }
}

template <class T>
void choose(const TokenChoice& choice, const T* from, std::int64_t rows, std::int64_t columns, T* to) {
    const std::int64_t kept = choice.kept(int(rows));
    for (std::int64_t r = 0; r < kept; r++)
        std::memcpy(to + r * columns,
                    from + (choice.keep.empty() ? r : choice.keep[std::size_t(r)]) * columns,
                    std::size_t(columns) * sizeof(T));
    T* row = to + kept * columns;
    for (const auto& parts : choice.compounds) {
        if (parts.empty())
            std::memcpy(row, to + choice.unk * columns, std::size_t(columns) * sizeof(T));
        else
            mean_row(parts, to, columns, row);
        row += columns;
    }
}

}  // namespace

void TokenChoice::check(int rows, int pad) const {
    for (std::size_t i = 0; i < keep.size(); i++)
        if (keep[i] < 0 || keep[i] >= rows)
            throw BadInput(text("token ", i, " is to be token ", keep[i], " of the model, which has 0 to ",
                                rows - 1, "; choose among these"));
    if (!keep.empty() && keep[0] != pad)
        throw BadInput(text("token 0 is to be token ", keep[0], " of the model; it must stay [PAD], token ",
                            pad, ": put that first"));
    const int last = kept(rows) - 1;
    for (std::size_t i = 0; i < compounds.size(); i++) {
        const std::string name = text("token ", last + 1 + int(i));
        if (compounds[i].empty() && (unk < 0 || unk > last))
            throw BadInput(text(name, " is made of no others, and starts as [UNK], but that is token ", unk,
                                " of 0 to ", last, " that are kept; keep [UNK]"));
        for (const Part& part : compounds[i]) {
            if (part.id < 0 || part.id > last)
                throw BadInput(text(name, " is to be made of token ", part.id, "; of 0 to ", last,
                                    ", the kept ones, is expected"));
            if (!(part.weight > 0) || !std::isfinite(part.weight))
                throw BadInput(text(name, " is to be made of token ", part.id, " by the weight ", part.weight,
                                    "; a number above 0 is expected"));
        }
    }
}

void choose_rows(const TokenChoice& choice, const View& from, const View& to) {
    const bool table = from.shape.rank > 1;
    const std::int64_t rows = from.shape[0], columns = table ? from.columns() : 1;
    Shape expected = from.shape;
    expected.size[0] = choice.size(int(rows));
    if (to.shape != expected || to.dtype != from.dtype || from.device != Device::cpu ||
        to.device != Device::cpu)
        throw Error(text("rows of ", from.path, " ", from.shape, " ", name_of(from.dtype), " go to ", to.path,
                         " ", to.shape, " ", name_of(to.dtype), "; ", expected,
                         " of the same type, on the cpu, is expected"));
    if (from.dtype == DType::f64) return choose(choice, from.as<double>(), rows, columns, to.as<double>());
    choose(choice, from.as<float>(), rows, columns, to.as<float>());
}

ChosenTokens simplified_tokens(const Vocabulary& vocabulary, const std::vector<std::string>& first) {
    Simplified simple = simplify(vocabulary, first);
    ChosenTokens chosen{std::move(simple.vocabulary), {}};
    chosen.choice.keep = std::move(simple.keep_tokens);
    chosen.choice.unk = chosen.vocabulary.unk();
    return chosen;
}

ChosenTokens wanted_tokens(const WordPiece& model, const Vocabulary& wanted) {
    ChosenTokens chosen{wanted, {}};
    TokenChoice& choice = chosen.choice;
    const Vocabulary& known = model.vocabulary();
    std::vector<int> place(std::size_t(known.size()), -1);  // [old id]: the new one
    choice.unk = wanted.unk();
    int id = 0;
    for (; id < wanted.size() && known.id(wanted.token(id)) >= 0; id++) {
        choice.keep.push_back(known.id(wanted.token(id)));
        place[std::size_t(choice.keep.back())] = id;
    }
    const int first_new = id;
    for (; id < wanted.size(); id++) {
        const std::string& token = wanted.token(id);
        if (known.id(token) >= 0)
            throw BadInput(text("line ", id + 1, " of the wanted vocabulary is \"", token,
                                "\", a token of the model, after the new token \"", wanted.token(first_new),
                                "\" in line ", first_new + 1, "; put all new tokens last"));
        std::vector<TokenChoice::Part> parts;
        for (int piece : model.encode(continues(token) ? token.substr(2) : token))
            if (piece != known.unk() && place[std::size_t(piece)] >= 0)
                parts.push_back({place[std::size_t(piece)]});
        choice.compounds.push_back(std::move(parts));
    }
    return chosen;
}

Vocabulary first_tokens(const Vocabulary& vocabulary, int rows) {
    std::vector<std::string> tokens;
    for (int id = 0; id < std::min(rows, vocabulary.size()); id++) tokens.push_back(vocabulary.token(id));
    return Vocabulary(std::move(tokens));
}

}  // namespace masquerade
