// SPDX-License-Identifier: MIT
// Tokenizers and masks in the C interface.
#include "library/call.h"
#include "models/masks/words.h"
#include "tokenizer/hugging_face/hugging_face.h"

using namespace masquerade;

int masquerade_open_tokenizer(const char* path, const char* const* options, masquerade_tokenizer** tokenizer) {
    return call([&] {
        expect(path, "path");
        expect(tokenizer, "tokenizer");
        std::string cased;
        with_keys(
            options,
            [&](Options& app) {
                app.choice("--cased", cased, {"true", "false"}, "keep capitals and accents");
            },
            [&] {
                HuggingFace read =
                    read_tokenizer(path, cased.empty() ? std::nullopt : std::optional<bool>(cased == "true"));
                for (const std::string& note : read.notes) log_line("note: ", path, ": ", note);
                *tokenizer =
                    tokenizers().add({std::make_unique<WordPiece>(std::move(read.vocabulary), std::move(read.options),
                                                                  std::move(read.added))});
            });
    });
}

int masquerade_tokenizer_of(masquerade_run* run, masquerade_tokenizer** tokenizer) {
    return call_with(runs(), run, [&](const masquerade_run& of) {
        expect(tokenizer, "tokenizer");
        *tokenizer = tokenizers().add({std::make_unique<WordPiece>(of.run->tokenizer)});
    });
}

int masquerade_close_tokenizer(masquerade_tokenizer* tokenizer) {
    return call([&] { tokenizers().close(tokenizer); });
}

int masquerade_tokenize(masquerade_tokenizer* tokenizer, const char* line, const char* const* options,
                        masquerade_array* tokens) {
    return call_with(tokenizers(), tokenizer, [&](const masquerade_tokenizer& of) {
        const std::string given = line_of(line);
        expect(tokens, "tokens");
        bool characters = false;
        with_keys(
            options,
            [&](Options& app) { app.flag("--characters", characters, "offsets in code points instead of bytes"); },
            [&] {
                std::vector<Piece> pieces = of.reader->encode_pieces(given);
                if (characters) to_code_points(given, pieces);
                std::vector<int> all;
                for (const Piece& p : pieces) all.insert(all.end(), {p.id, p.begin, p.end});
                give(all, {std::int64_t(pieces.size()), 3}, tokens);
            });
    });
}

int masquerade_detokenize(masquerade_tokenizer* tokenizer, const masquerade_array* ids, char** out) {
    return call_with(tokenizers(), tokenizer, [&](const masquerade_tokenizer& of) {
        expect(out, "text");
        const WordPiece& reader = *of.reader;
        const Numbers numbers = numbers_in(ids, "ids", 1, {MASQUERADE_INT32});
        for (double id : numbers)
            if (id < 0 || id >= reader.vocabulary().size())
                throw BadUsage("there is no token with the id ", std::int64_t(id), "; expected 0 to ",
                               reader.vocabulary().size() - 1);
        give(reader.decode(Tokens(numbers.begin(), numbers.end())) + '\n', out);
    });
}

int masquerade_vocabulary(masquerade_tokenizer* tokenizer, char** tokens) {
    return call_with(tokenizers(), tokenizer, [&](const masquerade_tokenizer& of) {
        expect(tokens, "tokens");
        give(of.reader->vocabulary().lines(), tokens);
    });
}

int masquerade_mask(const char* mask, int source, int target, masquerade_array* sees) {
    return call([&] {
        expect(mask, "mask");
        expect(sees, "sees");
        constexpr int most = 4096;
        if (source > most || target > most)
            throw BadUsage("a document of ", source, " and ", target, " tokens; expected at most ", most, " each");
        const std::vector<std::vector<bool>> cells = seen_cells(mask, source, target);
        std::vector<unsigned char> all;
        for (const std::vector<bool>& row : cells) append(all, row);
        give(all, {std::int64_t(cells.size()), cells.empty() ? 0 : std::int64_t(cells[0].size())}, sees);
    });
}

int masquerade_mask_words(const masquerade_array* sees, char** words) {
    return call([&] {
        expect(words, "words");
        const Numbers numbers = numbers_in(sees, "sees", 2, {MASQUERADE_BOOL});
        const auto columns = std::ptrdiff_t(sees->shape[1]);
        std::vector<std::vector<bool>> rows;
        for (std::ptrdiff_t i = 0; i < sees->shape[0]; i++)
            rows.emplace_back(numbers.begin() + i * columns, numbers.begin() + (i + 1) * columns);
        give(words_of_table(rows) + '\n', words);
    });
}
