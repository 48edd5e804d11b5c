// SPDX-License-Identifier: MIT
#include "tokenizer/hugging_face/hugging_face.h"

#include <algorithm>

#include "tokenizer/hugging_face/json_field.h"
#include "tokenizer/hugging_face/read_added_tokens.h"
#include "tokenizer/utf8.h"

namespace masquerade {

namespace {

using Notes = std::vector<std::string>;

// The only item of a Sequence, or the field itself.
JsonField alone(const JsonField& field, const char* items) {
    if (field.is_null() || field.type() != "Sequence") return field;
    std::vector<JsonField> list = field[items].list();
    if (list.size() != 1) field[items].fail("one item");
    return list[0];
}

char32_t one_character(const JsonField& field) {
    const std::string& text = field.string();
    CodePoint c = text.empty() ? CodePoint{0, 0} : decode_utf8(text, 0);
    if (c.length == 0 || std::size_t(c.length) != text.size()) field.fail("one character");
    return c.value;
}

std::u32string characters_of(const std::string& text) {
    std::u32string characters;
    for (std::size_t at = 0; at < text.size();) {
        CodePoint c = decode_utf8(text, at);
        characters += c.value;
        at += std::size_t(std::max(c.length, 1));
    }
    return characters;
}

// In the library one replacement is done after the other, here all at once.
void read_replace(const JsonField& field, NormaliseOptions& options, Notes& notes) {
    field.note_others({"type", "pattern", "content"}, notes);
    char32_t from = one_character(field["pattern"]["String"]);
    for (const auto& earlier : options.replace)
        if (earlier.first == from || earlier.second.find(from) != std::u32string::npos)
            field["pattern"]["String"].fail("a character that no replacement before it takes or makes");
    options.replace.push_back({from, characters_of(field["content"].string())});
}

void read_normalizer(const JsonField& field, NormaliseOptions& options, Notes& notes) {
    if (field.is_null()) {
        options.lower = options.clean = options.split_ideographs = false;
        options.strip_accents = false;
        return;
    }
    JsonField bert = field;
    if (field.type() == "Sequence") {
        std::vector<JsonField> items = field["normalizers"].list();
        if (items.empty()) field["normalizers"].fail("a BertNormalizer, alone or after some Replace");
        for (std::size_t i = 0; i + 1 < items.size(); i++) {
            items[i]["type"].expect("Replace");
            read_replace(items[i], options, notes);
        }
        bert = items.back();
    }
    bert["type"].expect("BertNormalizer");
    bert.note_others({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}, notes);
    options.clean = bert["clean_text"].boolean();
    options.split_ideographs = bert["handle_chinese_chars"].boolean();
    options.lower = bert["lowercase"].boolean();
    if (!bert["strip_accents"].is_null()) options.strip_accents = bert["strip_accents"].boolean();
}

void read_pre_tokenizer(const JsonField& field, NormaliseOptions& options, Notes& notes) {
    bool found = false;
    auto read = [&](const JsonField& item) {
        if (item.type() == "Split" && !options.single_digits) {
            item["pattern"]["Regex"].expect("[0-9]");
            item["behavior"].expect("Isolated");
            if (item["invert"].boolean()) item["invert"].fail("false");
            item.note_others({"type", "pattern", "behavior", "invert"}, notes);
            options.single_digits = true;
            return;
        }
        item["type"].expect("BertPreTokenizer");
        item.note_others({"type"}, notes);
        found = true;
    };
    if (!field.is_null() && field.type() == "Sequence")
        for (const JsonField& item : field["pretokenizers"].list()) read(item);
    else
        read(field);
    if (!found) field.fail("a BertPreTokenizer");
}

std::vector<std::string> read_model(const JsonField& field, WordPiece::Options& options, Notes& notes) {
    if (field["type"].is_null() && field["merges"].is_null())
        notes.push_back("model.type is missing and taken for WordPiece");
    else
        field["type"].expect("WordPiece");
    field.note_others({"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"},
                      notes);
    field["unk_token"].expect("[UNK]");
    field["continuing_subword_prefix"].expect("##");
    JsonField longest = field["max_input_chars_per_word"];
    constexpr int most = std::numeric_limits<int>::max();  // no line is longer
    bool huge = longest.value().is_number_unsigned() && longest.value().get<std::uint64_t>() > most;
    options.max_word = huge ? most : longest.integer(1);

    JsonField vocabulary = field["vocab"];
    if (!vocabulary.value().is_object()) vocabulary.fail("an object of tokens with their ids");
    std::size_t size = vocabulary.value().size();
    std::vector<const std::string*> token_of(size);
    std::string outside;  // a token whose id is none of 0 to n - 1
    for (const auto& item : vocabulary.value().items()) {
        const nlohmann::json& id = item.value();
        if (!id.is_number_integer()) vocabulary[item.key()].fail("an id");
        if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= size) {
            outside = in_words(item.key()) + " has " + in_words(id);
            continue;
        }
        const std::string*& token = token_of[id.get<std::size_t>()];
        if (token != nullptr)
            vocabulary[item.key()].fail("an id of its own: " + in_words(*token) + " has it, too");
        token = &item.key();
    }
    auto hole = std::find(token_of.begin(), token_of.end(), nullptr);
    if (hole != token_of.end())
        throw TokenizerError(vocabulary.where() + " has " + std::to_string(size) +
                             " tokens, none of them with id " + std::to_string(hole - token_of.begin()) +
                             " (" + outside + "), expected the ids 0 to " + std::to_string(size - 1) +
                             ", each once");
    std::vector<std::string> tokens;
    for (const std::string* token : token_of) tokens.push_back(*token);
    return tokens;
}

// "[CLS] A [SEP]", types in brackets behind: "[CLS]:0 A:0 [SEP]:0".
std::string template_of(const JsonField& list) {
    std::string text;
    for (const JsonField& item : list.list()) {
        JsonField part = item[item["Sequence"].is_null() ? "SpecialToken" : "Sequence"];
        if (!text.empty()) text += ' ';
        text += part["id"].string() + ':' + std::to_string(part["type_id"].integer(0));
    }
    return text;
}

// Whether [CLS] and [SEP] are put around a text.
bool read_post_processor(const JsonField& given, const Vocabulary& vocabulary, Notes& notes) {
    JsonField field = alone(given, "processors");
    if (field.is_null()) return false;
    auto expect_id = [](const JsonField& id, int expected) {
        if (!id.value().is_number_integer() || id.value() != expected)
            id.fail(std::to_string(expected) + ", as in the vocabulary");
    };
    if (field.type() == "BertProcessing") {
        field.note_others({"type", "sep", "cls"}, notes);
        for (const char* key : {"sep", "cls"}) {
            std::vector<JsonField> pair = field[key].list();
            if (pair.size() != 2) field[key].fail("a token and its id");
            pair[0].expect(key == std::string("sep") ? "[SEP]" : "[CLS]");
            expect_id(pair[1], key == std::string("sep") ? vocabulary.sep() : vocabulary.cls());
        }
        return true;
    }
    if (field.type() != "TemplateProcessing") field["type"].fail("BertProcessing or TemplateProcessing");
    field.note_others({"type", "single", "pair", "special_tokens"}, notes);
    std::string single = template_of(field["single"]), pair = template_of(field["pair"]);
    bool bare = single == "A:0";
    std::string expected = bare ? "A:0 B:1" : "[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1";
    if (!bare && single != "[CLS]:0 A:0 [SEP]:0")
        throw TokenizerError(field["single"].where() + " is \"" + single +
                             "\", expected \"[CLS]:0 A:0 [SEP]:0\", or \"A:0\"");
    if (pair != expected)
        throw TokenizerError(field["pair"].where() + " is \"" + pair + "\", expected \"" + expected + '"');
    for (const char* token : {"[CLS]", "[SEP]"}) {
        if (bare) break;
        JsonField ids = field["special_tokens"][token]["ids"];
        if (ids.list().size() != 1) ids.fail("one id");
        expect_id(ids.list()[0], vocabulary.id(token));
    }
    return !bare;
}

void read_decoder(const JsonField& given, Notes& notes) {
    JsonField field = alone(given, "decoders");
    if (field.is_null()) return;
    field["type"].expect("WordPiece");
    field["prefix"].expect("##");
    field.note_others({"type", "prefix", "cleanup"}, notes);
}

}  // namespace

HuggingFace read_tokenizer_json(const std::string& path) {
    const nlohmann::json file = read_json_file(path);
    JsonField top(path, file);
    HuggingFace read;
    read.options.rules = Rules::hugging_face;
    read.options.recognise_special = true;
    if (!top["version"].is_null()) top["version"].expect("1.0");
    top.note_others({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                     "post_processor", "decoder", "model"},
                    read.notes);
    if (top["model"].is_null()) top["model"].fail("a WordPiece model: is this a tokenizer.json?");
    std::vector<std::string> tokens = read_model(top["model"], read.options, read.notes);
    if (!top["added_tokens"].is_null())
        read.added = read_added_tokens(top["added_tokens"], tokens, read.notes);
    read.vocabulary = Vocabulary(std::move(tokens));
    if (read.vocabulary.unk() < 0) top["model"]["vocab"].fail("[UNK] among its tokens");
    read_normalizer(top["normalizer"], read.options, read.notes);
    read_pre_tokenizer(top["pre_tokenizer"], read.options, read.notes);
    read.special = read_post_processor(top["post_processor"], read.vocabulary, read.notes);
    read_decoder(top["decoder"], read.notes);
    for (const char* key : {"truncation", "padding"})
        if (!top[key].is_null())
            read.notes.push_back(std::string(key) + " was passed over: texts stay whole here");
    return read;
}

}  // namespace masquerade
