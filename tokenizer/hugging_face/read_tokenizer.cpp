// SPDX-License-Identifier: MIT
// A tokenizer from whatever a path names: tokenizer.json, vocab.txt, or a folder of a model.
#include <algorithm>
#include <filesystem>

#include "tokenizer/hugging_face/hugging_face.h"
#include "tokenizer/hugging_face/read_added_tokens.h"
#include "tokenizer/vocabulary_notes.h"

namespace masquerade {

namespace {

namespace fs = std::filesystem;

std::string show(const TokenizerField& field) { return field.is_null() ? "not set" : in_words(field.value()); }

// Notes each option that tokenizer_config.json gives otherwise than the tokenizer.json that was read.
void compare(const TokenizerField& config, HuggingFace& read) {
    const WordPiece::Options& options = read.options;
    std::optional<bool> accents = options.strip_accents;
    auto note = [&](const char* key, const nlohmann::json& used) {
        TokenizerField said = config[key];
        if (said.is_null() || said.value() == used) return;
        read.notes.push_back("tokenizer.json has " + in_words(used) +
                             " for what tokenizer_config.json calls " + key + " and gives as " + show(said) +
                             ": the first is taken (transformers takes the second)");
    };
    note("do_lower_case", options.lower);
    note("tokenize_chinese_chars", options.split_ideographs);
    note("strip_accents", accents ? nlohmann::json(*accents) : nlohmann::json());
}

// {"7": {"content": ..., ...}, ...}
void read_decoder_list(const TokenizerField& decoder, HuggingFace& read) {
    if (!decoder.value().is_object()) decoder.fail("an object of ids with their tokens");
    nlohmann::json list = nlohmann::json::array();
    for (const auto& item : decoder.value().items()) {
        const std::string& id = item.key();
        bool number = !id.empty() && id.size() < 10 && id.find_first_not_of("0123456789") == id.npos;
        if (!number || !item.value().is_object()) decoder[id].fail("an object, under its id");
        list.push_back(item.value());
        list.back()["id"] = std::stoi(id);
    }
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a["id"] < b["id"]; });
    std::vector<std::string> tokens;
    for (int id = 0; id < read.vocabulary.size(); id++) tokens.push_back(read.vocabulary.token(id));
    read.added = read_added_tokens(decoder.with(list), tokens, read.notes);
    read.vocabulary = Vocabulary(std::move(tokens));
}

// A vocab.txt as transformers reads it with that tokenizer_config.json.
void apply_config(const TokenizerField& config, HuggingFace& read) {
    WordPiece::Options& options = read.options;
    options.rules = Rules::hugging_face;
    options.max_word = 100;
    options.recognise_special = true;
    auto set = [&](const char* key, bool& option) {
        if (!config[key].is_null()) option = config[key].boolean();
    };
    set("do_lower_case", options.lower);
    set("tokenize_chinese_chars", options.split_ideographs);
    if (!config["strip_accents"].is_null()) options.strip_accents = config["strip_accents"].boolean();
    if (!config["do_basic_tokenize"].is_null() && !config["do_basic_tokenize"].boolean())
        config["do_basic_tokenize"].fail("true: text is always cut into words first");
    TokenizerField added = config["added_tokens_decoder"];
    if (!added.is_null()) read_decoder_list(added, read);
}

// The roles of special tokens, as tokenizer_config.json and special_tokens_map.json give them.
void check_roles(const TokenizerField& config) {
    for (const char* role : {"unk", "cls", "sep", "pad", "mask"}) {
        TokenizerField token = config[role + std::string("_token")];
        if (token.is_null()) continue;
        std::string expected = '[' + std::string(role) + ']';
        for (char& c : expected)
            if (c >= 'a' && c <= 'z') c = char(c - 32);
        (token.is_string() ? token : token["content"]).expect(expected);
    }
}

}  // namespace

HuggingFace read_tokenizer(const std::string& path, bool cased) {
    std::error_code ignored;
    HuggingFace read;
    if (!fs::is_directory(path, ignored)) {
        if (fs::path(path).extension() == ".json")
            read = read_tokenizer_json(path);
        else
            read.vocabulary = Vocabulary::load(path);
    } else {
        auto file_in = [&](const char* name) { return (fs::path(path) / name).string(); };
        std::string whole = file_in("tokenizer.json"), plain = file_in("vocab.txt");
        std::string config = file_in("tokenizer_config.json");
        bool has_whole = fs::exists(whole, ignored);
        if (!has_whole && !fs::exists(plain, ignored))
            throw TokenizerError("the folder " + path + " holds neither tokenizer.json nor vocab.txt");
        if (has_whole)
            read = read_tokenizer_json(whole);
        else
            read.vocabulary = Vocabulary::load(plain);
        bool more = false;  // added tokens
        if (fs::exists(config, ignored)) {
            const nlohmann::json file = read_json_file(config);
            TokenizerField top(config, file);
            if (has_whole) {
                compare(top, read);
            } else {
                check_roles(top);
                apply_config(top, read);
                more = !top["added_tokens_decoder"].is_null();
            }
        }
        if (std::string map = file_in("special_tokens_map.json"); !has_whole && fs::exists(map, ignored)) {
            const nlohmann::json file = read_json_file(map);
            check_roles(TokenizerField(map, file));
        }
        if (!has_whole && !more && fs::exists(file_in("added_tokens.json"), ignored))
            read.notes.push_back("added_tokens.json is not read: a tokenizer.json would hold its tokens");
    }
    if (cased) read.options.lower = false, read.options.strip_accents = false;
    std::string casing = casing_note(read.vocabulary, read.options.lower);
    if (!casing.empty()) read.notes.push_back(casing);
    return read;
}

}  // namespace masquerade
