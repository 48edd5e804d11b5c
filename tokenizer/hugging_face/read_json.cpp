// SPDX-License-Identifier: MIT
#include "tokenizer/hugging_face/hugging_face.h"

#include <algorithm>
#include <unordered_map>

#include "input/utf8.h"
#include "tokenizer/hugging_face/read_added_tokens.h"

namespace masquerade {

namespace {

// Returns the field itself or, if it is a Sequence, the only item of its list. `items` is the key of this list.
TokenizerField alone(const TokenizerField& field, const char* items) {
    if (field.is_null() || field.type() != "Sequence") return field;
    std::vector<TokenizerField> list = field[items].list();
    if (list.size() != 1) field[items].fail("one item");
    return list[0];
}

// Reads a normalizer of type Replace that replaces one character. The library applies the replacements of a list one
// after the other, but this tokenizer applies all of them in one pass. A list for which the results could differ is
// refused.
void read_replace(const TokenizerField& field, NormaliseOptions& options, Strings& notes) {
    field["type"].expect("Replace");
    field.note_others({"type", "pattern", "content"}, notes);
    const TokenizerField pattern = field["pattern"]["String"];
    const std::string& text = pattern.string();
    const CodePoint from = text.empty() ? CodePoint{} : decode_utf8(text, 0);
    if (from.length == 0 || from.length != text.size()) pattern.fail("one character");
    for (const auto& [earlier, to] : options.replace)
        if (earlier == from.value || to.find(text) != to.npos)
            pattern.fail("a character that no replacement before it takes or makes");
    options.replace[from.value] = field["content"].string();
}

void read_normalizer(const TokenizerField& given, NormaliseOptions& options, Strings& notes) {
    if (given.is_null()) {
        options.lower = options.clean = options.split_ideographs = false;
        options.strip_accents = false;
        return;
    }
    TokenizerField field = given;
    if (given.type() == "Sequence") {
        const std::vector<TokenizerField> items = given["normalizers"].list();
        if (items.empty()) given["normalizers"].fail("a BertNormalizer, alone or after some Replace");
        for (std::size_t i = 0; i + 1 < items.size(); i++) read_replace(items[i], options, notes);
        field = items.back();
    }
    field["type"].expect("BertNormalizer");
    field.note_others({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}, notes);
    options.clean = field["clean_text"].boolean();
    options.split_ideographs = field["handle_chinese_chars"].boolean();
    options.lower = field["lowercase"].boolean();
    field["strip_accents"].read(options.strip_accents);
}

void read_pre_tokenizer(const TokenizerField& given, Strings& notes) {
    TokenizerField field = alone(given, "pretokenizers");
    if (field.is_null()) field.fail("a BertPreTokenizer");
    field["type"].expect("BertPreTokenizer");
    field.note_others({"type"}, notes);
}

// If vocab.txt has equal lines, tokenizer.json contains only the id of the last of these lines. Returns the tokens of
// vocab.txt (the file `plain`) up to the last id in tokenizer.json; none if there is no such file, or if it contradicts
// tokenizer.json. The later lines may be added tokens.
Strings tokens_of_lines(const TokenizerField& vocabulary, const std::string& plain) {
    if (!exists(plain)) return {};
    Strings lines = Vocabulary::load(plain).tokens();
    std::vector<const std::string*> token_of(lines.size());
    for (const auto& item : vocabulary.value().items()) {
        const nlohmann::json& id = item.value();
        if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= lines.size()) return {};
        token_of[id.get<std::size_t>()] = &item.key();
    }
    while (!lines.empty() && token_of[lines.size() - 1] == nullptr) lines.pop_back();
    for (std::size_t id = 0; id < lines.size(); id++)
        if (token_of[id] != nullptr ? *token_of[id] != lines[id] : !vocabulary.value().contains(lines[id])) return {};
    return lines;
}

Vocabulary read_model(const TokenizerField& field, const std::string& path, WordPiece::Options& options,
                      Strings& notes) {
    if (field["type"].is_null() && field["merges"].is_null())
        notes.push_back("model.type is missing and taken for WordPiece");
    else
        field["type"].expect("WordPiece");
    field.note_others({"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"}, notes);
    field["unk_token"].expect("[UNK]");
    field["continuing_subword_prefix"].expect("##");
    TokenizerField longest = field["max_input_chars_per_word"];
    constexpr int most = std::numeric_limits<int>::max();  // no line has more characters
    bool huge = longest.value().is_number_unsigned() && longest.value().get<std::uint64_t>() > most;
    options.max_word = huge ? most : longest.number(1);

    TokenizerField vocabulary = field["vocab"];
    if (!vocabulary.value().is_object()) vocabulary.fail("an object of tokens with their ids");
    std::size_t size = vocabulary.value().size();
    std::vector<const std::string*> token_of(size);
    std::string outside;  // for the message: a token and its id, which is not from 0 to size - 1
    for (const auto& item : vocabulary.value().items()) {
        const nlohmann::json& id = item.value();
        if (!id.is_number_integer()) vocabulary[item.key()].fail("an id");
        if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= size) {
            outside = in_words(item.key()) + " has " + in_words(id);
            continue;
        }
        const std::string*& token = token_of[id.get<std::size_t>()];
        if (token != nullptr) vocabulary[item.key()].fail("an id of its own: " + in_words(*token) + " has it, too");
        token = &item.key();
    }
    if (!outside.empty()) {
        Strings lines = tokens_of_lines(vocabulary, (std::filesystem::path(path).parent_path() / "vocab.txt").string());
        if (!lines.empty()) return Vocabulary(std::move(lines));
        const auto hole = std::find(token_of.begin(), token_of.end(), nullptr);
        throw TokenizerError(vocabulary.where(), " has ", size, " tokens, none of them with id ",
                             hole - token_of.begin(), " (", outside, "), expected the ids 0 to ", size - 1,
                             ", each once");
    }
    Strings tokens;
    for (const std::string* token : token_of) tokens.push_back(*token);
    return Vocabulary(std::move(tokens));
}

// Returns a template as text: the name and the token type of each part, such as "[CLS]:0 A:0 [SEP]:0".
std::string template_of(const TokenizerField& list) {
    std::string text;
    for (const TokenizerField& item : list.list()) {
        TokenizerField part = item[item["Sequence"].is_null() ? "SpecialToken" : "Sequence"];
        if (!text.empty()) text += ' ';
        text += part["id"].string() + ':' + std::to_string(part["type_id"].number(0));
    }
    return text;
}

void read_post_processor(const TokenizerField& given, const Vocabulary& vocabulary, Strings& notes) {
    TokenizerField field = alone(given, "processors");
    auto expect_id = [](const TokenizerField& id, int expected) {
        if (!id.value().is_number_integer() || id.value() != expected) id.fail(expected, ", as in the vocabulary");
    };
    bool bare = field.is_null();
    if (!bare && field.type() == "BertProcessing") {
        field.note_others({"type", "sep", "cls"}, notes);
        for (const auto& [key, token] : {std::pair{"sep", "[SEP]"}, std::pair{"cls", "[CLS]"}}) {
            const std::vector<TokenizerField> pair = field[key].list();
            if (pair.size() != 2) field[key].fail("a token and its id");
            pair[0].expect(token);
            expect_id(pair[1], vocabulary.id(token));
        }
    } else if (!bare) {
        if (field.type() != "TemplateProcessing") field["type"].fail("BertProcessing or TemplateProcessing");
        field.note_others({"type", "single", "pair", "special_tokens"}, notes);
        const std::string single = template_of(field["single"]), pair = template_of(field["pair"]);
        bare = single == "A:0" && pair == "A:0 B:1";
        if (!bare && (single != "[CLS]:0 A:0 [SEP]:0" || pair != "[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1"))
            throw TokenizerError(field.where(), " is \"", single, "\" and \"", pair,
                                 "\", expected \"[CLS]:0 A:0 [SEP]:0\" and \"[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1\"");
        for (const char* token : {"[CLS]", "[SEP]"}) {
            if (bare) break;
            TokenizerField ids = field["special_tokens"][token]["ids"];
            if (ids.list().size() != 1) ids.fail("one id");
            expect_id(ids.list()[0], vocabulary.id(token));
        }
    }
    if (bare) notes.push_back("post_processor puts no [CLS] and [SEP] around a text; models here read both");
}

void read_decoder(const TokenizerField& given, Strings& notes) {
    TokenizerField field = alone(given, "decoders");
    if (field.is_null()) return;
    field["type"].expect("WordPiece");
    field["prefix"].expect("##");
    field.note_others({"type", "prefix", "cleanup"}, notes);
}

}  // namespace

std::vector<AddedToken> read_added_tokens(const TokenizerField& list, Vocabulary& vocabulary, Strings& notes) {
    std::vector<AddedToken> all;
    const int own = vocabulary.size();
    std::unordered_map<std::string, std::size_t> seen;
    for (const TokenizerField& item : list.list()) {
        item.note_others({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}, notes);
        AddedToken token;
        token.text = item["content"].string();
        token.id = item["id"].number(0);
        for (const auto& [key, flag] : token_flags) token.*flag = item[key].boolean();
        if (token.text.empty()) item["content"].fail("some text");
        const int next = vocabulary.size(), expected = vocabulary.add(token.text);
        if (token.id != expected)
            item["id"].fail(expected, ", ", expected < next ? "the token's own" : "the next free", ", for ",
                            in_words(token.text));
        token.beyond = token.id >= own;
        auto [same, is_new] = seen.insert({token.text, all.size()});
        if (is_new)
            all.push_back(token);
        else
            all[same->second] = token;
    }
    return all;
}

HuggingFace read_tokenizer_json(const std::string& path) {
    const nlohmann::json file = read_json_file(path);
    TokenizerField top(path, file);
    HuggingFace read;
    read.options.rules = Rules::hugging_face;
    read.options.recognise_special = true;
    if (!top["version"].is_null()) top["version"].expect("1.0");
    top.note_others({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                     "post_processor", "decoder", "model"},
                    read.notes);
    if (top["model"].is_null()) top["model"].fail("a WordPiece model: is this a tokenizer.json?");
    read.vocabulary = read_model(top["model"], path, read.options, read.notes);
    if (!top["added_tokens"].is_null())
        read.added = read_added_tokens(top["added_tokens"], read.vocabulary, read.notes);
    if (read.vocabulary.unk() < 0) top["model"]["vocab"].fail("[UNK] among its tokens");
    read_normalizer(top["normalizer"], read.options, read.notes);
    read_pre_tokenizer(top["pre_tokenizer"], read.notes);
    read_post_processor(top["post_processor"], read.vocabulary, read.notes);
    read_decoder(top["decoder"], read.notes);
    for (const char* key : {"truncation", "padding"})
        if (!top[key].is_null()) read.notes.push_back(std::string(key) + " was passed over: texts stay whole here");
    return read;
}

}  // namespace masquerade
