// SPDX-License-Identifier: MIT
#include "tokenizer/hugging_face/hugging_face.h"

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "doctest/doctest.h"
#include "tests/folder.h"

using namespace masquerade;
using nlohmann::json;

namespace {

// Returns the file that the library writes for a small BERT tokenizer.
json small() {
    auto added = [](int id, const char* text, bool special) {
        return json{{"id", id},        {"content", text},        {"single_word", false}, {"lstrip", false},
                    {"rstrip", false}, {"normalized", !special}, {"special", special}};
    };
    json tokens = {{"[PAD]", 0},  {"[UNK]", 1}, {"[CLS]", 2}, {"[SEP]", 3},
                   {"[MASK]", 4}, {"sun", 5},   {"##s", 6},   {"\u2028", 7}};
    return {{"version", "1.0"},
            {"truncation", nullptr},
            {"padding", nullptr},
            {"added_tokens", {added(4, "[MASK]", true), added(8, "sunrise", false), added(9, "<e>", true)}},
            {"normalizer",
             {{"type", "BertNormalizer"},
              {"clean_text", true},
              {"handle_chinese_chars", true},
              {"strip_accents", nullptr},
              {"lowercase", true}}},
            {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
            {"post_processor",
             {{"type", "BertProcessing"}, {"sep", json::array({"[SEP]", 3})}, {"cls", json::array({"[CLS]", 2})}}},
            {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
            {"model",
             {{"type", "WordPiece"},
              {"unk_token", "[UNK]"},
              {"continuing_subword_prefix", "##"},
              {"max_input_chars_per_word", 100},
              {"vocab", tokens}}}};
}

HuggingFace read(const json& file) {
    TemporaryFolder folder;
    return read_tokenizer_json(folder.write("tokenizer.json", file.dump()));
}

// Returns the message for the small tokenizer after one change; "" if it was read.
std::string said(const std::function<void(json&)>& change) {
    json file = small();
    change(file);
    try {
        read(file);
    } catch (const TokenizerError& error) {
        std::string text = error.what();
        CHECK(text.find("tokenizer.json: ") != text.npos);
        return text.substr(text.find("tokenizer.json: ") + 16);
    }
    return "";
}

#define CHECK_SAID(change, expected) CHECK(said([](json& f) { change; }) == expected)

// Returns the library's form of a template such as "[CLS]:0 A:0".
json processing(const std::string& single, const std::string& pair) {
    auto parts = [](const std::string& text) {
        json list = json::array();
        for (std::size_t at = 0; at < text.size();) {
            std::size_t end = std::min(text.find(' ', at), text.size());
            std::string id = text.substr(at, end - at - 2);
            const char* kind = id[0] == '[' ? "SpecialToken" : "Sequence";
            list.push_back({{kind, {{"id", id}, {"type_id", text[end - 1] - '0'}}}});
            at = end + 1;
        }
        return list;
    };
    auto special = [](const char* token, int id) { return json{{"id", token}, {"ids", {id}}, {"tokens", {token}}}; };
    return {{"type", "TemplateProcessing"},
            {"single", parts(single)},
            {"pair", parts(pair)},
            {"special_tokens", {{"[CLS]", special("[CLS]", 2)}, {"[SEP]", special("[SEP]", 3)}}}};
}

std::vector<std::string> tokens_of(const Vocabulary& vocabulary) {
    std::vector<std::string> tokens;
    for (int id = 0; id < vocabulary.size(); id++) tokens.push_back(vocabulary.token(id));
    return tokens;
}

void check_equal(const HuggingFace& a, const HuggingFace& b) {
    CHECK(tokens_of(a.vocabulary) == tokens_of(b.vocabulary));
    CHECK(a.options.lower == b.options.lower);
    CHECK(a.options.strip_accents == b.options.strip_accents);
    CHECK(a.options.clean == b.options.clean);
    CHECK(a.options.split_ideographs == b.options.split_ideographs);
    CHECK(a.options.rules == b.options.rules);
    CHECK(a.options.replace == b.options.replace);
    CHECK(a.options.max_word == b.options.max_word);
    CHECK(a.options.recognise_special == b.options.recognise_special);
    REQUIRE(a.added.size() == b.added.size());
    for (std::size_t i = 0; i < a.added.size(); i++) {
        const AddedToken &x = a.added[i], &y = b.added[i];
        CAPTURE(x.text);
        CHECK(x.text == y.text);
        CHECK(x.id == y.id);
        CHECK(x.special == y.special);
        CHECK(x.single_word == y.single_word);
        CHECK(x.strip_left == y.strip_left);
        CHECK(x.strip_right == y.strip_right);
        CHECK(x.normalised == y.normalised);
        CHECK(x.beyond == y.beyond);
    }
}

}  // namespace

TEST_CASE("tokenizer.json: what the library writes for BERT is read") {
    HuggingFace read_one = read(small());
    CHECK(tokens_of(read_one.vocabulary) == std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                                                                     "sun", "##s", "\u2028", "sunrise", "<e>"});
    CHECK(read_one.options.lower);
    CHECK_FALSE(read_one.options.strip_accents.has_value());
    CHECK(read_one.options.clean);
    CHECK(read_one.options.split_ideographs);
    CHECK(read_one.options.rules == Rules::hugging_face);
    CHECK(read_one.options.max_word == 100);
    CHECK(read_one.options.recognise_special);
    CHECK(read_one.notes.empty());
    REQUIRE(read_one.added.size() == 3);
    CHECK(read_one.added[0].special);
    CHECK_FALSE(read_one.added[0].normalised);
    CHECK_FALSE(read_one.added[0].beyond);
    CHECK(read_one.added[1].id == 8);
    CHECK_FALSE(read_one.added[1].special);
    CHECK(read_one.added[1].normalised);
    CHECK(read_one.added[1].beyond);
}

TEST_CASE("tokenizer.json: every switch") {
    json file = small();
    json& bert = file["normalizer"];
    bert["clean_text"] = bert["handle_chinese_chars"] = bert["lowercase"] = false;
    bert["strip_accents"] = true;
    file["added_tokens"][1]["single_word"] = true;
    file["added_tokens"][1]["lstrip"] = true;
    file["added_tokens"][2]["rstrip"] = true;
    file["model"]["max_input_chars_per_word"] = 7;
    file["post_processor"] = nullptr;
    file["decoder"] = nullptr;
    file.erase("version");
    file["truncation"] = {{"direction", "Left"}, {"max_length", 16}, {"strategy", "OnlySecond"}, {"stride", 3}};
    file["padding"] = {{"strategy", {{"Fixed", 20}}},
                       {"direction", "Left"},
                       {"pad_to_multiple_of", 8},
                       {"pad_id", 0},
                       {"pad_type_id", 1},
                       {"pad_token", "[PAD]"}};
    HuggingFace one = read(file);
    CHECK_FALSE(one.options.clean);
    CHECK_FALSE(one.options.split_ideographs);
    CHECK_FALSE(one.options.lower);
    CHECK(one.options.strip_accents == true);
    CHECK(one.options.max_word == 7);
    CHECK(one.added[1].single_word);
    CHECK(one.added[1].strip_left);
    CHECK_FALSE(one.added[1].strip_right);
    CHECK(one.added[2].strip_right);
    CHECK_FALSE(one.added[2].strip_left);
    CHECK(one.notes ==
          std::vector<std::string>{"post_processor puts no [CLS] and [SEP] around a text; models here read both",
                                   "truncation was passed over: texts stay whole here",
                                   "padding was passed over: texts stay whole here"});

    file["normalizer"] = nullptr;
    file["model"]["max_input_chars_per_word"] = 18446744073709551615u;
    HuggingFace bare = read(file);
    CHECK_FALSE(bare.options.lower);
    CHECK_FALSE(bare.options.strips());
    CHECK_FALSE(bare.options.clean);
    CHECK(bare.options.max_word == 2147483647);
}

TEST_CASE("tokenizer.json: sequences of what is known") {
    json file = small();
    auto replace = [](const char* from, const char* to) {
        return json{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
    };
    const json bert = file["normalizer"], before = {{"type", "BertPreTokenizer"}};
    file["normalizer"] = {{"type", "Sequence"},
                          {"normalizers", {replace("\u201c", "\""), replace("\u2026", "..."), bert}}};
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", json::array({before})}};
    file["post_processor"] = {{"type", "Sequence"}, {"processors", json::array({file["post_processor"]})}};
    file["decoder"] = {{"type", "Sequence"}, {"decoders", json::array({file["decoder"]})}};
    CHECK(read(file).options.replace == std::map<char32_t, std::string>{{U'\u201c', "\""}, {U'\u2026', "..."}});

    file["post_processor"] = processing("[CLS]:0 A:0 [SEP]:0", "[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1");
    CHECK(read(file).notes.empty());
    file["post_processor"] = processing("A:0", "A:0 B:1");
    CHECK(read(file).notes.size() == 1);
    file["pre_tokenizer"]["pretokenizers"].push_back({{"type", "Split"}});
    CHECK_THROWS_WITH_AS(read(file), doctest::Contains("pretokenizers is a list of 2, expected one item"),
                         TokenizerError);
    file["pre_tokenizer"]["pretokenizers"].erase(1);
    auto refused = [&](const json& second, const char* part) {
        file["normalizer"]["normalizers"][1] = second;
        CHECK_THROWS_WITH_AS(read(file), doctest::Contains(part), TokenizerError);
    };
    refused(replace("\"", "'"), "no replacement before it takes or makes");
    refused(replace("\u201c", "'"), "no replacement before it takes or makes");
    refused(replace("ab", "c"), "\"ab\", expected one character");
    refused({{"type", "NFKC"}}, "normalizers[1].type is \"NFKC\", expected \"Replace\"");
    file["normalizer"]["normalizers"].erase(2);
    refused({{"type", "NFKC"}}, "normalizers[1].type is \"NFKC\", expected \"BertNormalizer\"");
    file["normalizer"]["normalizers"] = json::array();
    CHECK_THROWS_WITH_AS(read(file), doctest::Contains("alone or after some Replace"), TokenizerError);
}

TEST_CASE("tokenizer.json: what cannot be honoured is named") {
    CHECK(said([](json&) {}) == "");
    CHECK_SAID(f["version"] = "2.0", "version is \"2.0\", expected \"1.0\"");
    CHECK_SAID(f = json::array(), "the whole is a list of 0, expected an object");
    CHECK_SAID(f.erase("model"), "model is missing or null, expected a WordPiece model: is this a tokenizer.json?");
    CHECK_SAID(f["model"]["type"] = "BPE", "model.type is \"BPE\", expected \"WordPiece\"");
    CHECK_SAID((f["model"].erase("type"), f["model"]["merges"] = json::array()),
               "model.type is missing or null, expected \"WordPiece\"");
    CHECK_SAID(f["model"]["unk_token"] = "<unk>", "model.unk_token is \"<unk>\", expected \"[UNK]\"");
    CHECK_SAID(f["model"]["continuing_subword_prefix"] = "",
               "model.continuing_subword_prefix is \"\", expected \"##\"");
    CHECK_SAID(f["model"]["max_input_chars_per_word"] = 0,
               "model.max_input_chars_per_word is 0, expected a whole number from 1 to 2147483647");
    CHECK_SAID(f["normalizer"]["type"] = "Lowercase", "normalizer.type is \"Lowercase\", expected \"BertNormalizer\"");
    CHECK_SAID(f["normalizer"]["lowercase"] = "yes", "normalizer.lowercase is \"yes\", expected true or false");
    CHECK_SAID(f["normalizer"]["strip_accents"] = 1, "normalizer.strip_accents is 1, expected true or false");
    CHECK_SAID(f["pre_tokenizer"]["type"] = "Whitespace",
               "pre_tokenizer.type is \"Whitespace\", expected \"BertPreTokenizer\"");
    CHECK_SAID(f["pre_tokenizer"] = nullptr, "pre_tokenizer is missing or null, expected a BertPreTokenizer");
    CHECK_SAID(f["decoder"]["prefix"] = "@@", "decoder.prefix is \"@@\", expected \"##\"");
    CHECK_SAID(f["decoder"]["type"] = "ByteLevel", "decoder.type is \"ByteLevel\", expected \"WordPiece\"");
    CHECK_SAID(f["post_processor"]["type"] = "RobertaProcessing",
               "post_processor.type is \"RobertaProcessing\", expected BertProcessing or TemplateProcessing");
    CHECK_SAID(f["post_processor"]["sep"][0] = "</s>", "post_processor.sep[0] is \"</s>\", expected \"[SEP]\"");
    CHECK_SAID(f["post_processor"]["cls"][1] = 3, "post_processor.cls[1] is 3, expected 2, as in the vocabulary");
    CHECK_SAID(f["post_processor"] = processing("[CLS]:0 A:0", "A:0 B:1"),
               "post_processor is \"[CLS]:0 A:0\" and \"A:0 B:1\", expected \"[CLS]:0 A:0 [SEP]:0\" and "
               "\"[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1\"");
    CHECK_SAID(f["post_processor"] = processing("[CLS]:0 A:0 [SEP]:0", "[CLS]:0 A:0 [SEP]:0 B:0 [SEP]:0"),
               "post_processor is \"[CLS]:0 A:0 [SEP]:0\" and \"[CLS]:0 A:0 [SEP]:0 B:0 [SEP]:0\", "
               "expected \"[CLS]:0 A:0 [SEP]:0\" and "
               "\"[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1\"");
    CHECK_SAID((f["post_processor"] = processing("[CLS]:0 A:0 [SEP]:0", "[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1"),
                f["post_processor"]["special_tokens"]["[SEP]"]["ids"][0] = 2),
               "post_processor.special_tokens.[SEP].ids[0] is 2, expected 3, as in the vocabulary");
}

TEST_CASE("tokenizer.json: the vocabulary's ids are 0 to n - 1, each once") {
    CHECK_SAID(f["model"]["vocab"]["sun"] = 9,
               "model.vocab has 8 tokens, none of them with id 5 (\"sun\" has 9), expected the ids 0 to 7, "
               "each once");
    CHECK_SAID(f["model"]["vocab"]["sun"] = -1,
               "model.vocab has 8 tokens, none of them with id 5 (\"sun\" has -1), expected the ids 0 to 7, "
               "each once");
    CHECK_SAID(f["model"]["vocab"]["sun"] = 6, "model.vocab.sun is 6, expected an id of its own: \"##s\" has it, too");
    CHECK_SAID(f["model"]["vocab"]["sun"] = "5", "model.vocab.sun is \"5\", expected an id");
    CHECK_SAID(f["model"]["vocab"] = json::array({"sun"}),
               "model.vocab is a list of 1, expected an object of tokens with their ids");
    CHECK_SAID((f["model"]["vocab"] = {{"sun", 0}}, f["added_tokens"] = json::array()),
               "model.vocab is an object, expected [UNK] among its tokens");
    TemporaryFolder folder;
    std::string text = small().dump();
    text.replace(text.find("\"sun\""), 5, "\"##s\"");
    CHECK_THROWS_WITH_AS(read_tokenizer_json(folder.write("twice.json", text)),
                         doctest::Contains("has \"##s\" twice in one object"), TokenizerError);
}

TEST_CASE("tokenizer.json: ids of added tokens") {
    CHECK_SAID(f["added_tokens"][0]["id"] = 5, "added_tokens[0].id is 5, expected 4, the token's own, for \"[MASK]\"");
    CHECK_SAID(f["added_tokens"][2]["id"] = 12, "added_tokens[2].id is 12, expected 9, the next free, for \"<e>\"");
    CHECK_SAID(f["added_tokens"][1]["id"] = 5, "added_tokens[1].id is 5, expected 8, the next free, for \"sunrise\"");
    CHECK_SAID(f["added_tokens"][1]["content"] = "", "added_tokens[1].content is \"\", expected some text");
    CHECK_SAID(f["added_tokens"][1].erase("lstrip"),
               "added_tokens[1].lstrip is missing or null, expected true or false");
    json file = small();
    file["added_tokens"].push_back(file["added_tokens"][1]);
    file["added_tokens"][3]["special"] = true;
    HuggingFace one = read(file);
    REQUIRE(one.added.size() == 3);
    CHECK(one.added[1].special);
    CHECK(one.vocabulary.size() == 10);
}

TEST_CASE("tokenizer.json: keys that are not known are noted") {
    json file = small();
    file["extra"] = 1;
    file["model"]["dropout"] = nullptr;
    file["model"].erase("type");
    file["added_tokens"][1]["colour"] = "red";
    file["normalizer"]["fold"] = true;
    CHECK(read(file).notes == std::vector<std::string>{"extra is not known here and was passed over",
                                                       "model.type is missing and taken for WordPiece",
                                                       "model.dropout is not known here and was passed over",
                                                       "added_tokens[1].colour is not known here and was passed over",
                                                       "normalizer.fold is not known here and was passed over"});
}

TEST_CASE("tokenizer.json: any bytes are read or refused") {
    TemporaryFolder folder;
    auto refused = [&](const std::string& bytes, const char* why) {
        CHECK_THROWS_WITH_AS(read_tokenizer_json(folder.write("tokenizer.json", bytes)), doctest::Contains(why),
                             TokenizerError);
    };
    refused("", "is empty; JSON is expected");
    refused(small().dump() + "}", "is not JSON: byte ");
    refused(small().dump().substr(0, 400), "is not JSON: it ends in the middle, at byte 400");
    refused("{\"version\": \"\xff\"}", "is not JSON: byte 14 of the file");
    refused(std::string(200000, '['), "deeper than 64, at byte 65");
    refused(std::string(200000, '[') + std::string(200000, ']'), "deeper than 64, at byte 65");
    refused("[[[]]]", "the whole is a list of 1, expected an object");
    refused("{\"model\": " + std::string(200000, '[') + std::string(200000, ']') + "}", "deeper than 64, at byte 74");
    refused("{\"model\": [[[]]]}", "model is a list of 1");
    CHECK_THROWS_WITH_AS(read_tokenizer_json(folder.path), doctest::Contains("directory"), TokenizerError);
    CHECK_THROWS_WITH_AS(read_tokenizer_json(folder.path + "/none.json"), doctest::Contains("No such file"),
                         TokenizerError);
    std::string bytes = small().dump();
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::string broken = bytes;
        broken[i] = char(broken[i] ^ 0x12);
        try {
            read_tokenizer_json(folder.write("tokenizer.json", broken));
        } catch (const TokenizerError& error) {
            CHECK(std::string(error.what()).size() < 500);
        }
    }
}

TEST_CASE("a tokenizer that was written is read as it was") {
    TemporaryFolder folder;
    std::string path = folder.path + "/tokenizer.json";
    HuggingFace one = read(small());
    one.added = {one.added[0], one.added[1], one.added[2]};
    for (int id = 0; id < 4; id++) one.added.insert(one.added.begin() + id, AddedToken{one.vocabulary.token(id), id});
    folder.write("tokenizer.json", tokenizer_json({one.vocabulary, one.options, one.added}));
    check_equal(read_tokenizer_json(path), one);

    one.options.lower = one.options.clean = one.options.split_ideographs = false;
    one.options.strip_accents = true;
    one.options.max_word = 33;
    one.options.replace = {{U'\u2026', "..."}, {U'\U0001f600', ""}};
    one.added[5].single_word = one.added[5].strip_left = one.added[6].strip_right = true;
    folder.write("tokenizer.json", tokenizer_json({one.vocabulary, one.options, one.added}));
    check_equal(read_tokenizer_json(path), one);

    // Special tokens are added even if the file does not list them.
    Vocabulary plain({"[UNK]", "a", "\"\\\u4e2d", "[SEP]", ""});
    folder.write("tokenizer.json", tokenizer_json({plain, {}, {{"a", 1}}}));
    HuggingFace again = read_tokenizer_json(path);
    CHECK(tokens_of(again.vocabulary) == tokens_of(plain));
    CHECK(again.notes.size() == 1);  // no post_processor adds [CLS] and [SEP]; without [CLS], none is written
    REQUIRE(again.added.size() == 3);
    CHECK(again.added[0].text == "[UNK]");
    CHECK(again.added[1].text == "a");
    CHECK(again.added[2].text == "[SEP]");
}

TEST_CASE("what tokenizer.json cannot say is not written") {
    Vocabulary vocabulary({"[UNK]", "a", "b"});
    auto refused = [&](const Vocabulary& v, const WordPiece::Options& options, std::vector<AddedToken> added,
                       const char* why) {
        CHECK_THROWS_WITH_AS(tokenizer_json({v, options, added}), doctest::Contains(why), TokenizerError);
    };
    refused(Vocabulary({"a"}), {}, {}, "no [UNK]");
    refused(Vocabulary({"[UNK]", "\xff"}), {}, {}, "not UTF-8");
    refused(vocabulary, {}, {{"b", 1}}, "the added token b has the id 1, expected 2");
    AddedToken beyond{"a", 1};
    beyond.beyond = true;
    refused(vocabulary, {}, {beyond}, "is not the model's own");
    WordPiece::Options options;
    options.unknown = Unknown::character;
    refused(vocabulary, options, {}, "unknown characters");
    options = {};
    options.single_digits = true;
    refused(vocabulary, options, {}, "single digits");
    options = {};
    options.replace = {{U'x', "y"}, {U'y', "z"}};
    refused(vocabulary, options, {}, "the replacement of y");
}

TEST_CASE("a tokenizer from whatever a path names") {
    TemporaryFolder folder;
    CHECK_THROWS_WITH_AS(read_tokenizer(folder.path), doctest::Contains("neither tokenizer.json nor vocab.txt"),
                         TokenizerError);
    std::string vocab = folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nsun\n##s\n");
    for (const std::string& path : {vocab, folder.path}) {
        HuggingFace plain = read_tokenizer(path);
        CHECK(plain.vocabulary.size() == 7);
        CHECK(plain.options.rules == Rules::google);
        CHECK(plain.options.max_word == 200);
        CHECK(plain.options.lower);
        CHECK_FALSE(plain.options.recognise_special);
        CHECK(plain.notes.empty());
    }
    folder.write("vocab.txt", "[PAD]\n[UNK] \n[CLS]\t\n[SEP]\r\n[MASK]\nsun \n \n");
    for (const std::string& path : {vocab, folder.path})
        CHECK(read_tokenizer(path).vocabulary.tokens() ==
              Strings{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "sun", ""});
    folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nsun\n##s\n");

    // The folder of a run or of a packed text says whether text keeps its case.
    for (const auto& [file, text, cased] :
         {std::tuple("run.json", "{\"settings\": {\"cased\": true}}", true),
          std::tuple("run.json", "{\"settings\": {\"cased\": false}}", false), std::tuple("run.json", "[]", false),
          std::tuple("pack.json", "{\"cased\": true}", true), std::tuple("pack.json", "{}", false)}) {
        const std::string path = folder.write(file, text);
        CAPTURE(text);
        CHECK(read_tokenizer(folder.path).options.lower == !cased);
        CHECK(read_tokenizer(folder.path, !cased).options.lower == cased);
        std::filesystem::remove(path);
    }

    json token = {{"content", "<e>"}, {"single_word", true}, {"lstrip", false},
                  {"rstrip", true},   {"normalized", false}, {"special", true}};
    json mask = token;
    mask["content"] = "[MASK]";
    json config = {{"do_lower_case", false},
                   {"strip_accents", true},
                   {"tokenize_chinese_chars", false},
                   {"cls_token", "[CLS]"},
                   {"unk_token", {{"content", "[UNK]"}}},
                   {"added_tokens_decoder", {{"7", token}, {"4", mask}}}};
    folder.write("tokenizer_config.json", config.dump());
    HuggingFace set = read_tokenizer(folder.path);
    CHECK(set.options.rules == Rules::hugging_face);
    CHECK(set.options.max_word == 100);
    CHECK_FALSE(set.options.lower);
    CHECK(set.options.strip_accents == true);
    CHECK_FALSE(set.options.split_ideographs);
    CHECK(set.options.recognise_special);
    REQUIRE(set.added.size() == 6);  // including the four special tokens that no file lists
    CHECK(set.added[0].text == "[MASK]");
    CHECK(set.added[1].beyond);
    CHECK(set.vocabulary.token(7) == "<e>");
    CHECK(read_tokenizer(vocab).options.lower);  // if a file is given, only this file is read

    config["cls_token"] = "<s>";
    folder.write("tokenizer_config.json", config.dump());
    CHECK_THROWS_WITH_AS(read_tokenizer(folder.path), doctest::Contains("cls_token is \"<s>\", expected \"[CLS]\""),
                         TokenizerError);
    folder.write("tokenizer_config.json", json{{"do_basic_tokenize", false}}.dump());
    CHECK_THROWS_WITH_AS(read_tokenizer(folder.path), doctest::Contains("do_basic_tokenize is false"), TokenizerError);
    folder.write("tokenizer_config.json", "{}");
    folder.write("added_tokens.json", "{}");
    CHECK(read_tokenizer(folder.path).added.empty());
    folder.write("special_tokens_map.json", json{{"sep_token", "</s>"}}.dump());
    CHECK_THROWS_WITH_AS(read_tokenizer(folder.path), doctest::Contains("sep_token is \"</s>\""), TokenizerError);

    // tokenizer.json is complete. If the other file says something else, a note says so, but tokenizer.json is
    // followed.
    folder.write("tokenizer.json", small().dump());
    folder.write("tokenizer_config.json", json{{"do_lower_case", false}, {"strip_accents", nullptr}}.dump());
    HuggingFace whole = read_tokenizer(folder.path);
    CHECK(whole.options.lower);
    CHECK(whole.vocabulary.size() == 10);
    REQUIRE(whole.notes.size() == 1);
    CHECK(whole.notes[0].find("do_lower_case and gives as false") != std::string::npos);
    CHECK(read_tokenizer(folder.path + "/tokenizer.json").notes.empty());
}

namespace {

const char* const lines_of_bert = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nsun\n##s\n\u4e2d\n";

// Writes a folder with a vocab.txt and these files, and reads it.
HuggingFace read_folder(const std::map<std::string, json>& files, const std::string& lines = lines_of_bert) {
    TemporaryFolder folder;
    folder.write("vocab.txt", lines);
    for (const auto& [name, file] : files) folder.write(name, file.dump());
    return read_tokenizer(folder.path);
}

}  // namespace

TEST_CASE("additional special tokens and added tokens are read wherever a folder names them") {
    const json by_name = {"<a>", "sun", ""}, by_role = {{"image_token", "<a>"}, {"other", "sun"}};
    const json flags = json::array({{{"content", "<a>"}, {"lstrip", true}, {"single_word", true}}, "sun"});
    const json whole = small();
    for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"})
        for (const char* key : {"additional_special_tokens", "extra_special_tokens"})
            for (const json& named : {by_name, by_role, flags})
                for (bool with_json : {false, true}) {
                    std::map<std::string, json> files = {{file, {{key, named}}}};
                    if (with_json) files["tokenizer.json"] = whole;
                    CAPTURE(file);
                    CAPTURE(key);
                    CAPTURE(named.dump());
                    CAPTURE(with_json);
                    const HuggingFace read = read_folder(files);
                    const auto find = [&](const char* text) {
                        for (const AddedToken& token : read.added)
                            if (token.text == text) return token;
                        return AddedToken();
                    };
                    const AddedToken a = find("<a>"), sun = find("sun");
                    CHECK(a.id == (with_json ? 10 : 8));
                    CHECK(read.vocabulary.token(a.id) == "<a>");
                    CHECK((a.special && a.beyond && !a.normalised));
                    CHECK(a.strip_left == (named.is_array() && named[0].is_object()));
                    CHECK(a.single_word == (named.is_array() && named[0].is_object()));
                    CHECK((sun.id == 5 && sun.special && !sun.beyond));
                    CHECK(read.vocabulary.size() == a.id + 1);
                    CHECK(find(with_json ? "[MASK]" : "[CLS]").special);
                }
    const HuggingFace plain = read_folder({{"added_tokens.json", {{"<y>", 9}, {"<x>", 8}}},
                                           {"special_tokens_map.json", {{"additional_special_tokens", {"<y>"}}}}});
    CHECK(plain.vocabulary.token(8) == "<x>");
    CHECK(plain.vocabulary.token(9) == "<y>");
    REQUIRE(plain.added.size() == 7);
    CHECK((!plain.added[0].special && plain.added[0].normalised && plain.added[0].beyond));
    CHECK(plain.added[1].special);
    CHECK_THROWS_WITH_AS(read_folder({{"added_tokens.json", {{"<y>", 11}}}}),
                         doctest::Contains("expected 8, the next free"), TokenizerError);
}

TEST_CASE("a tokenizer that is not BERT's is refused by name, with or without a tokenizer.json") {
    struct Row {
        json config;
        const char* part;  // part: a part of the message; null: the folder is accepted
    };
    const Row rows[] = {
        {{{"tokenizer_class", "BertTokenizer"}}, nullptr},
        {{{"tokenizer_class", "BertTokenizerFast"}}, nullptr},
        {{{"tokenizer_class", nullptr}}, nullptr},
        {{{"tokenizer_class", "ElectraTokenizerFast"}}, nullptr},
        {{{"tokenizer_class", "PreTrainedTokenizerFast"}}, nullptr},
        {{{"tokenizer_class", "TokenizersBackend"}}, nullptr},
        {{{"tokenizer_class", "RoFormerTokenizer"}}, nullptr},  // RoFormer with a vocabulary of single characters
        {{{"tokenizer_class", "BertJapaneseTokenizer"}, {"word_tokenizer_type", "basic"}}, nullptr},
        {{{"tokenizer_class", "BertJapaneseTokenizer"}},
         "tokenizer_class is \"BertJapaneseTokenizer\", expected BertTokenizer"},
        {{{"tokenizer_class", "BertJapaneseTokenizer"}, {"word_tokenizer_type", "mecab"}},
         "word_tokenizer_type is \"mecab\", expected \"basic\""},
        {{{"word_tokenizer_type", "sudachi"}}, "put a space between them"},
        {{{"subword_tokenizer_type", "character"}}, "subword_tokenizer_type is \"character\", expected \"wordpiece\""},
        {{{"subword_tokenizer_type", "sentencepiece"}}, "subword_tokenizer_type is \"sentencepiece\""},
        {{{"do_word_tokenize", false}}, "do_word_tokenize is false, expected true"},
        {{{"do_subword_tokenize", false}}, "do_subword_tokenize is false"},
        {{{"do_basic_tokenize", false}}, "do_basic_tokenize is false"},
        {{{"tokenizer_class", "KoBertTokenizer"}}, "KoBertTokenizer is not here"},
        {{{"tokenizer_class", "XLMRobertaTokenizer"}}, "with a vocabulary that is learned"},
        {{{"tokenizer_class", "AlbertTokenizerFast"}}, "AlbertTokenizerFast is not here"},
    };
    for (const Row& row : rows)
        for (bool whole : {false, true}) {
            std::map<std::string, json> files = {{"tokenizer_config.json", row.config}};
            if (whole) files["tokenizer.json"] = small();
            CAPTURE(row.config.dump());
            if (row.part)
                CHECK_THROWS_WITH_AS(read_folder(files), doctest::Contains(row.part), TokenizerError);
            else
                CHECK_NOTHROW(read_folder(files));
        }
    // A RoFormer with a vocabulary of words, recognised by its class or by the type of the model.
    const std::string words = std::string(lines_of_bert) + "\u4e2d\u6587\n";
    for (const char* name : {"RoFormerTokenizer", "RoFormerTokenizerFast"})
        CHECK_THROWS_WITH_AS(
            read_folder({{"tokenizer_config.json", {{"tokenizer_class", name}}}}, words),
            doctest::Contains("with jieba, which is not supported, and the vocabulary holds such words (\u4e2d\u6587)"),
            TokenizerError);
    const json roformer = {{"model_type", "roformer"}};
    CHECK_THROWS_WITH_AS(read_folder({{"config.json", roformer}}, words), doctest::Contains("jieba"), TokenizerError);
    CHECK_NOTHROW(read_folder({{"config.json", roformer}}));
    CHECK_NOTHROW(read_folder({{"config.json", {{"model_type", "bert"}}}}, words));
    CHECK_NOTHROW(read_folder(
        {{"config.json", roformer}, {"tokenizer_config.json", {{"tokenizer_class", "BertTokenizer"}}}}, words));
}

// Tests each option of the table alone, and all options together.
TEST_CASE("a folder's tokenizer is written and read whole, whatever its options") {
    using Change = void (*)(WordPiece::Options&, std::vector<AddedToken>&, std::vector<std::string>&);
    const auto add = [](std::vector<AddedToken>& added, std::vector<std::string>& tokens, const char* text,
                        auto change) {
        AddedToken token{text, int(tokens.size())};
        token.beyond = true;
        change(token);
        tokens.push_back(text);
        added.push_back(token);
    };
    static const auto put = add;
    const std::pair<const char*, Change> table[] = {
        {"lower", [](auto& o, auto&, auto&) { o.lower = false; }},
        {"strips", [](auto& o, auto&, auto&) { o.lower = false, o.strip_accents = true; }},
        {"keeps accents", [](auto& o, auto&, auto&) { o.strip_accents = false; }},
        {"ideographs", [](auto& o, auto&, auto&) { o.split_ideographs = false; }},
        {"clean", [](auto& o, auto&, auto&) { o.clean = false; }},
        {"max_word", [](auto& o, auto&, auto&) { o.max_word = 4; }},
        {"replace",
         [](auto& o, auto&, auto&) {
             o.replace = {{U'\u2026', "..."}, {U'\u00fc', ""}};
         }},
        {"equal lines", [](auto&, auto&, auto& t) { t.insert(t.begin() + 6, "sun"); }},
        {"special", [](auto&, auto& a, auto& t) { put(a, t, "<x>", [](AddedToken&) {}); }},
        {"ordinary", [](auto&, auto& a, auto& t) { put(a, t, "<y>", [](AddedToken& x) { x.special = false; }); }},
        {"normalised", [](auto&, auto& a, auto& t) { put(a, t, "Ny", [](AddedToken& x) { x.normalised = true; }); }},
        {"single word", [](auto&, auto& a, auto& t) { put(a, t, "OK", [](AddedToken& x) { x.single_word = true; }); }},
        {"strip left", [](auto&, auto& a, auto& t) { put(a, t, "<l>", [](AddedToken& x) { x.strip_left = true; }); }},
        {"strip right", [](auto&, auto& a, auto& t) { put(a, t, "<r>", [](AddedToken& x) { x.strip_right = true; }); }},
    };
    const std::size_t count = std::size(table);
    const std::string text =
        "Sun S\u00fcn s\u00fcns \u4e2d\u6587\u2026 a\u00adb [MASK]ok sunok OK<x> <l> a <r> b<y>NY sunsuns caf\u00e9\u0301.";
    for (std::size_t which = 0; which <= count; which++) {
        WordPiece::Options options;
        options.rules = Rules::hugging_face;
        options.max_word = 100;
        options.recognise_special = true;
        std::vector<std::string> tokens(special_tokens, special_tokens + 5);
        for (const char* token : {"sun",  "##s",       "s",      "S",      "Sun",
                                  "a",    "b",         "ab",     "##b",    "un",
                                  "##un", "##\u00fcn", "\u4e2d", "\u6587", "\u4e2d\u6587",
                                  ".",    "##.",       "...",    "ca",     "c",
                                  "##fe", "##f\u00e9", "<",      ">",      "x",
                                  "l",    "r",         "y",      "o"})
            tokens.push_back(token);
        std::vector<AddedToken> added;
        for (int i = 0; i < 5; i++) added.push_back({special_tokens[i], i});
        for (std::size_t i = 0; i < count; i++)
            if (which == count || which == i) table[i].second(options, added, tokens);
        for (AddedToken& token : added)
            for (int id = 0; id < int(tokens.size()); id++)
                if (tokens[std::size_t(id)] == token.text) token.id = id;
        CAPTURE(std::string(which == count ? "all" : table[which].first));
        const WordPiece one(Vocabulary(tokens), options, added);
        TemporaryFolder folder;
        for (const auto& [name, bytes] : tokenizer_files(one)) folder.write(name, bytes);
        HuggingFace read = read_tokenizer(folder.path);
        CHECK(tokens_of(read.vocabulary) == tokens);
        check_equal(read, {one.vocabulary(), options, added, {}});
        const WordPiece again(read.vocabulary, read.options, read.added);
        CHECK(again.encode(text) == one.encode(text));
        // BertTokenizer of transformers reads these options only from tokenizer_config.json.
        const json config = json::parse(std::ifstream(folder.file("tokenizer_config.json")));
        CHECK(config["do_lower_case"] == options.lower);
        CHECK(config["strip_accents"] == (options.strip_accents ? json(*options.strip_accents) : json(nullptr)));
        CHECK(config["tokenize_chinese_chars"] == options.split_ideographs);
        if (which < count && table[which].first != std::string("equal lines")) {
            const WordPiece plain(Vocabulary(tokens), [] {
                WordPiece::Options o;
                o.rules = Rules::hugging_face, o.max_word = 100, o.recognise_special = true;
                return o;
            }());
            CHECK(plain.encode(text) != one.encode(text));  // the text is encoded differently without the option
        }
    }
    // If vocab.txt belongs to another tokenizer than tokenizer.json, it does not explain missing ids.
    TemporaryFolder folder;
    const WordPiece twice(Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "sun", "a", "sun"}));
    for (const auto& [name, bytes] : tokenizer_files(twice)) folder.write(name, bytes);
    CHECK(read_tokenizer(folder.path).vocabulary.token(4) == "sun");
    CHECK(read_tokenizer(folder.path).vocabulary.id("sun") == 6);
    folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nmoon\na\nsun\n");
    CHECK_THROWS_WITH_AS(read_tokenizer(folder.path), doctest::Contains("none of them with id 4"), TokenizerError);
}
