// SPDX-License-Identifier: MIT
#include "models/runs/hugging_face/token_choice.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "tokenizer/vocabulary_notes.h"

namespace masquerade {
void TokenChoice::check(int rows, int told) const {
    for (std::size_t i = 0; i < keep.size(); i++)
        if (keep[i] < 0 || keep[i] >= rows)
            throw BadInput("token ", i, " is to be token ", keep[i], " of the model, which has 0 to ", rows - 1,
                           "; choose among these");
    const int padding = pad >= 0 ? pad : told;
    if (!keep.empty() && keep[0] != padding)
        throw BadInput("token 0 is to be token ", keep[0], " of the model; it must stay [PAD], token ", padding,
                       ": put that first");
    const int last = kept(rows) - 1;
    for (std::size_t i = 0; i < compounds.size(); i++) {
        const std::string name = text("token ", last + 1 + int(i));
        if (compounds[i].empty() && (unk < 0 || unk > last))
            throw BadInput(name, " is made of no others, and starts as [UNK], but that is token ", unk, " of 0 to ",
                           last, " that are kept; keep [UNK]");
        for (int part : compounds[i])
            if (part < 0 || part > last)
                throw BadInput(name, " is to be made of token ", part, "; of 0 to ", last,
                               ", the kept ones, is expected");
    }
}

Numbers choose_rows(const TokenChoice& choice, const Numbers& from, int rows) {
    const std::size_t E = from.size() / rows;
    Numbers to;
    for (std::size_t id = 0; id < std::size_t(choice.kept(rows)); id++) {
        const double* row = from.data() + E * (choice.keep.empty() ? id : choice.keep[id]);
        to.insert(to.end(), row, row + E);
    }
    for (const Tokens& compound : choice.compounds) {
        const Tokens parts = compound.empty() ? Tokens{choice.unk} : compound;
        for (std::size_t i = 0; i < E; i++) {
            double sum = 0;
            for (int id : parts) sum += to[E * id + i];
            to.push_back(sum / parts.size());
        }
    }
    return to;
}

ChosenTokens simplified_tokens(const Vocabulary& vocabulary, const Strings& first, const NormaliseOptions& options) {
    Simplified simple = simplify(vocabulary, first, options);
    ChosenTokens chosen{std::move(simple.vocabulary), {}};
    chosen.choice.keep = std::move(simple.keep_tokens);
    chosen.choice.unk = chosen.vocabulary.unk();
    return chosen;
}

ChosenTokens wanted_tokens(const WordPiece& model, const Vocabulary& wanted) {
    ChosenTokens chosen{wanted, {}};
    TokenChoice& choice = chosen.choice;
    const Vocabulary& known = model.vocabulary();
    std::vector<int> place(known.size(), -1);  // for each old id, the new id; -1: the token is not kept
    choice.unk = wanted.unk();
    int id = 0;
    for (; id < wanted.size() && known.id(wanted.token(id)) >= 0; id++) {
        choice.keep.push_back(known.id(wanted.token(id)));
        place[choice.keep.back()] = id;
    }
    const int first_new = id;
    for (; id < wanted.size(); id++) {
        const std::string& token = wanted.token(id);
        if (known.id(token) >= 0)
            throw BadInput("line ", id + 1, " of the wanted vocabulary is \"", token,
                           "\", a token of the model, after the new token \"", wanted.token(first_new), "\" in line ",
                           first_new + 1, "; put all new tokens last");
        Tokens parts;
        for (int piece : model.encode(continues(token) ? token.substr(2) : token))
            if (piece != known.unk() && place[piece] >= 0) parts.push_back(place[piece]);
        choice.compounds.push_back(std::move(parts));
    }
    return chosen;
}

WordPiece with_tokens(const WordPiece& reader, Vocabulary tokens) {
    std::vector<AddedToken> added;
    for (AddedToken token : reader.added())
        if (token.id = tokens.id(token.text); token.id >= 0) added.push_back(std::move(token));
    return {std::move(tokens), reader.options(), std::move(added)};
}

ChosenTokens fitted_tokens(const WordPiece& reader, int rows, const std::string& source) {
    const Vocabulary& all = reader.vocabulary();
    ChosenTokens chosen{all, {}};
    if (all.size() < rows) {
        log_line("note: ", source, ": the vocabulary has ", all.size(), " tokens and the embedding ", rows,
                 " rows: the first ", all.size(), " rows are taken");
        for (int id = 0; id < all.size(); id++) chosen.choice.keep.push_back(id);
        chosen.choice.pad = 0;
    } else if (all.size() > rows) {
        log_line("note: ", source, ": of the ", all.size(), " tokens of the vocabulary the model knows the first ",
                 rows, "; the others start as the mean of their pieces");
        chosen = wanted_tokens(with_tokens(reader, first_tokens(all, rows)), all);
        chosen.choice.pad = chosen.choice.keep[0];
    }
    return chosen;
}

ChosenTokens pad_first(const WordPiece& reader, int rows) {
    const Vocabulary known = first_tokens(reader.vocabulary(), rows);
    const int pad = known.pad() >= 0 ? known.pad() : known.unk();
    Strings tokens = {special_tokens[0]};
    ChosenTokens chosen{{}, {}};
    chosen.choice.keep = {pad};
    chosen.choice.pad = pad;
    for (int id = 0; id < known.size(); id++) {
        if (id == known.pad()) continue;
        tokens.push_back(known.token(id));
        chosen.choice.keep.push_back(id);
    }
    chosen.vocabulary = Vocabulary(std::move(tokens));
    return chosen;
}

void expect_trainable(const Vocabulary& v, const std::string& source, const std::string& mend) {
    for (int i = 1; i < 4; i++)
        if (v.id(special_tokens[i]) < 0)
            throw BadInput(source, ": the vocabulary has no ", special_tokens[i],
                           i == 1 ? ": is it a WordPiece vocabulary?" : "; add it as its last line");
    if (v.pad() != 0)
        throw BadInput(source, ": the vocabulary has ",
                       v.pad() < 0 ? text("no [PAD]") : text("[PAD] in line ", v.pad() + 1),
                       "; training needs it in the first line. This makes one that has it there: ", mend);
}

Vocabulary first_tokens(const Vocabulary& vocabulary, int rows) {
    Strings tokens = vocabulary.tokens();
    tokens.resize(std::min(rows, vocabulary.size()));
    return Vocabulary(std::move(tokens));
}

Vocabulary with_more(Vocabulary vocabulary, const Strings& more) {
    for (const std::string& token : more) vocabulary.add(token);
    return vocabulary;
}

}  // namespace masquerade
