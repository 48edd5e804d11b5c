// SPDX-License-Identifier: MIT
// Tests the tokens of a Hugging Face folder and the rows of its embedding, if their numbers differ or if their order is
// not the one that training needs. Also tests that added tokens reach a run of every family.
#include <doctest/doctest.h>

#include "engine/tensor/numbers.h"
#include "models/runs/start.h"
#include "tests/models/runs/hugging_face.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

// A folder with a vocabulary, and a model with this number of rows. Row i of the embedding consists of the number i.
struct Folder : TemporaryFolder {
    Folder(const WordPiece& tokenizer, int rows) {
        BackboneOptions o;
        o.layers = 2, o.width = 16, o.heads = 2, o.inner = 32, o.positions = 32, o.vocabulary = rows, o.rotary = true;
        Parameters parameters;
        const Backbone backbone(parameters, o);
        parameters.allocate(1);
        std::vector<double> numbers;
        for (int row = 0; row < rows; row++) numbers.insert(numbers.end(), 16, row);
        write_numbers(parameters.master(*parameters.find("embedding.token.weight")), numbers.data());
        const Vocabulary all = first_tokens(tokenizer.vocabulary(), rows);
        save_hugging_face(path, backbone, parameters, all);
        for (const auto& [name, bytes] : tokenizer_files(tokenizer)) write(name, bytes);
    }
};

std::vector<std::string> letters() {
    std::vector<std::string> tokens(special_tokens, special_tokens + 5);
    for (const std::string& line : grammar_questions(3, 50))
        for (char c : line)
            for (const std::string& token : {std::string(1, c), "##" + std::string(1, c)})
                if (c != ' ' && std::count(tokens.begin(), tokens.end(), token) == 0) tokens.push_back(token);
    return tokens;
}

// Returns a tokenizer with two added tokens that no line contains.
WordPiece with_added(std::vector<std::string> tokens = letters()) {
    WordPiece::Options options;
    options.rules = Rules::hugging_face;
    options.max_word = 100;
    std::vector<AddedToken> added;
    for (const char* text : {"<x>", "zoo"}) {
        AddedToken token{text, int(tokens.size())};
        token.special = text[0] == '<';
        token.single_word = !token.special;
        token.beyond = true;
        tokens.push_back(text);
        added.push_back(token);
    }
    return {Vocabulary(std::move(tokens)), options, added};
}

std::vector<double> rows_of(const Run& run) {
    for (const Tensor& t : run.parameters.all())
        if (t.path.find("embedding.token.weight") != t.path.npos) {
            const std::vector<double> all = numbers_of(run.parameters.master(t));
            std::vector<double> rows;
            for (std::size_t i = 0; i < all.size(); i += std::size_t(t.shape[1])) rows.push_back(all[i]);
            return rows;
        }
    return {};
}

std::unique_ptr<Run> fresh(const Family& kind, const Start& start) {
    const std::unique_ptr<RunSettings> settings = tiny(kind);
    start.adopt(*settings);
    std::unique_ptr<Run> run = kind.fresh(*settings, start.tokenizer().vocabulary(), DType::f32, Device::cpu);
    run->tokenizer = start.tokenizer();
    start.give_weights(*run);
    return run;
}

}  // namespace

TEST_CASE("tokenizers: a run of any family starts with added tokens, all of them or those that it keeps") {
    const WordPiece reader = with_added();
    const Folder folder(reader, reader.vocabulary().size());
    for (const Family& kind : families())
        for (bool keep : {false, true}) {
            if (kind.reads == TextKind::none) continue;  // its vocabulary comes from its task
            CAPTURE(std::string(kind.name));
            CAPTURE(keep);
            const auto start = Start::open(folder.path);
            TrainingText text = text_for(kind);
            text.train.resize(2), text.held_out.resize(1);
            for (auto* targets : {&text.train_targets, &text.held_out_targets})
                targets->resize(std::min<std::size_t>(targets->size(), 1));
            if (keep) start->keep(text);
            const std::unique_ptr<Run> run = fresh(kind, *start);
            const Vocabulary& v = run->tokenizer.vocabulary();
            CHECK((v.size() < reader.vocabulary().size()) == keep);
            // tokenizer.json also lists the five special tokens.
            REQUIRE(run->tokenizer.added().size() == 5 + reader.added().size());
            const std::vector<double> rows = rows_of(*run);
            REQUIRE(int(rows.size()) == v.size());
            for (int id = 0; id < v.size(); id++) CHECK(rows[std::size_t(id)] == reader.vocabulary().id(v.token(id)));
            for (std::size_t i = 0; i < reader.added().size(); i++) {
                const AddedToken &had = reader.added()[i], &has = run->tokenizer.added()[5 + i];
                CHECK(has.text == had.text);
                CHECK(has.id == v.id(had.text));
                CHECK((has.special == had.special && has.single_word == had.single_word && has.beyond == had.beyond));
            }
            for (const std::string& line : {text.train[0] + " zoo " + text.train[1], text.train[0] + "<x>"}) {
                std::vector<std::string> expected, found;
                for (int id : reader.encode(line)) expected.push_back(reader.vocabulary().token(id));
                for (int id : run->tokenizer.encode(line)) found.push_back(v.token(id));
                if (line.find('<') == line.npos) CHECK(found == expected);
            }
        }
}

TEST_CASE("tokenizers: an embedding with more rows than tokens gives the first, one with fewer the mean of pieces") {
    const WordPiece reader = with_added();
    const int tokens = reader.vocabulary().size();
    for (int rows : {tokens + 1, tokens + 61, tokens, tokens - 1}) {
        CAPTURE(rows - tokens);
        const Folder folder(reader, rows);
        const auto start = Start::open(folder.path);
        const std::vector<double> found = rows_of(*fresh(find_family("unilm"), *start));
        REQUIRE(int(found.size()) == tokens);
        for (int id = 0; id < std::min(rows, tokens); id++) CHECK(found[std::size_t(id)] == id);
    }
}

TEST_CASE("tokenizers: [PAD] in another line, or none, is put first, with its row") {
    for (int place : {1, 4, -1}) {
        std::vector<std::string> tokens = letters();
        tokens.erase(tokens.begin());
        if (place >= 0) tokens.insert(tokens.begin() + place, "[PAD]");
        const WordPiece reader = with_added(tokens);
        const Folder folder(reader, reader.vocabulary().size());
        CHECK_SAYS(
            message_of<BadInput>([&] { Start::open(folder.path); }),
            text(folder.path, ": the vocabulary has ", place < 0 ? "no [PAD]" : text("[PAD] in line ", place + 1),
                 "; training needs it in the first line. This makes one that has it there: ./inspect checkpoint ",
                 folder.path, " --save DIR --tokens pad-first"));
        const ChosenTokens chosen = pad_first(reader, reader.vocabulary().size());
        CHECK(chosen.vocabulary.pad() == 0);
        CHECK(chosen.choice.keep[0] == (place < 0 ? 0 : place));  // if there is no [PAD], its row is the row of [UNK]
        const LoadedModel model(folder.path, DType::f32, chosen.choice);
        const std::vector<double> all = numbers_of(model.master("embedding.token.weight"));
        for (int id = 1; id < chosen.vocabulary.size(); id++)
            CHECK(all[std::size_t(id) * 16] == reader.vocabulary().id(chosen.vocabulary.token(id)));
        expect_trainable(chosen.vocabulary, "", "");
    }
    for (int lacking = 1; lacking < 4; lacking++) {
        std::vector<std::string> tokens = letters();
        tokens.erase(tokens.begin() + lacking);
        CHECK_SAYS(message_of<BadInput>([&] { expect_trainable(Vocabulary(tokens), "here", ""); }),
                   text("here: the vocabulary has no ", special_tokens[lacking]));
    }
}
