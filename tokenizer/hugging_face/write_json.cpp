// SPDX-License-Identifier: MIT
// Makes the texts of tokenizer.json, tokenizer_config.json and vocab.txt.
#include "input/utf8.h"
#include "tokenizer/hugging_face/hugging_face.h"
#include "tokenizer/hugging_face/read_added_tokens.h"

namespace masquerade {

namespace {

using Json = nlohmann::ordered_json;

// Throws TokenizerError if one replacement produces a character that another one replaces. The results would differ,
// because the library applies the replacements of tokenizer.json one after another, and WordPiece applies all of them
// at once.
Json normalizer(const NormaliseOptions& options) {
    Json bert = {{"type", "BertNormalizer"},
                 {"clean_text", options.clean},
                 {"handle_chinese_chars", options.split_ideographs},
                 {"strip_accents", json_of(options.strip_accents)},
                 {"lowercase", options.lower}};
    if (options.replace.empty()) return bert;
    Json list = Json::array();
    std::string made;
    for (const auto& [from, to] : options.replace) {
        list.push_back(
            {{"type", "Replace"}, {"pattern", {{"String", to_utf8(std::u32string(1, from))}}}, {"content", to}});
        made += to;
    }
    for (const auto& item : list)
        if (const std::string from = item["pattern"]["String"]; made.find(from) != made.npos)
            throw TokenizerError("the replacement of ", from,
                                 " cannot be written: another one makes that character, "
                                 "and in tokenizer.json one is done after the other");
    list.push_back(std::move(bert));
    return {{"type", "Sequence"}, {"normalizers", std::move(list)}};
}

// Returns the tokens in `added` and the special tokens of the vocabulary, in a map from their ids.
std::map<int, AddedToken> all_added(const Vocabulary& vocabulary, const std::vector<AddedToken>& added) {
    std::map<int, AddedToken> all;
    for (const AddedToken& token : special_added(vocabulary)) all[token.id] = token;
    for (const AddedToken& token : added) {
        if (vocabulary.id(token.text) != token.id || token.id < 0)
            throw TokenizerError("the added token ", token.text, " has the id ", token.id, ", expected ",
                                 vocabulary.id(token.text), ", its id in the vocabulary (-1: it is not there)");
        all[token.id] = token;
    }
    return all;
}

// Returns the part `model` of tokenizer.json. Its vocabulary does not contain tokens with AddedToken::beyond. These
// tokens must therefore have the last ids.
Json model(const Vocabulary& vocabulary, const std::map<int, AddedToken>& added, int max_word) {
    int size = vocabulary.size();  // becomes the number of tokens before the final ones with `beyond`
    for (auto last = added.rbegin(); last != added.rend() && last->first == size - 1 && last->second.beyond; ++last)
        size--;
    std::vector<std::pair<std::string, Json>> tokens;
    for (int id = 0; id < size; id++) {
        const std::string& token = vocabulary.token(id);
        auto found = added.find(id);
        if (found != added.end() && found->second.beyond)
            throw TokenizerError("the added token ", token, " with id ", id,
                                 " is not the model's own, but those that follow it are: put it behind all of them");
        if (vocabulary.id(token) == id) tokens.push_back({token, id});
    }
    // Builds the object from a list, because ordered_json would compare each inserted key with all earlier keys,
    // which takes quadratic time.
    Json::object_t ids(tokens.begin(), tokens.end());
    return {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", max_word},
            {"vocab", std::move(ids)}};
}

Json post_processor(const Vocabulary& vocabulary) {
    if (vocabulary.cls() < 0 || vocabulary.sep() < 0) return nullptr;
    return {{"type", "BertProcessing"},
            {"sep", Json::array({"[SEP]", vocabulary.sep()})},
            {"cls", Json::array({"[CLS]", vocabulary.cls()})}};
}

}  // namespace

std::string tokenizer_json(const WordPiece& tokenizer) {
    const Vocabulary& vocabulary = tokenizer.vocabulary();
    const WordPiece::Options& options = tokenizer.options();
    if (options.unknown != Unknown::word || options.single_digits)
        throw TokenizerError(
            "tokenizer.json cannot say that unknown characters are [UNK] each by itself, and is not "
            "written for single digits");
    const std::map<int, AddedToken> all = all_added(vocabulary, tokenizer.added());
    Json tokens = Json::array();
    for (const auto& [id, token] : all) {
        tokens.push_back({{"id", id}, {"content", token.text}});
        for (const auto& [key, flag] : token_flags) tokens.back()[key] = token.*flag;
    }
    const Json file = {{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", std::move(tokens)},
                       {"normalizer", normalizer(options)},
                       {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                       {"post_processor", post_processor(vocabulary)},
                       {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
                       {"model", model(vocabulary, all, options.max_word)}};
    try {
        return file.dump(2) + '\n';
    } catch (const nlohmann::json::exception&) {
        throw TokenizerError("a token of the vocabulary is not UTF-8 and cannot be written to tokenizer.json");
    }
}

namespace {

// Returns the settings that transformers needs in addition to tokenizer.json. The BertTokenizer of transformers
// ignores the other options in tokenizer.json: it builds a tokenizer from the vocabulary and these settings alone. A
// tokenizer with other options is therefore declared as PreTrainedTokenizerFast.
Json tokenizer_config(const WordPiece& tokenizer) {
    const WordPiece::Options& options = tokenizer.options();
    const bool as_bert = options.clean && options.replace.empty() && options.max_word == 100;
    Json config = {{"tokenizer_class", as_bert ? "BertTokenizer" : "PreTrainedTokenizerFast"},
                   {"do_lower_case", options.lower},
                   {"strip_accents", json_of(options.strip_accents)},
                   {"tokenize_chinese_chars", options.split_ideographs}};
    // role_keys: keys such as "pad_token", in the order of special_tokens.
    for (int i = 0; i < 5; i++)
        if (tokenizer.vocabulary().id(special_tokens[i]) >= 0) config[role_keys[i]] = special_tokens[i];
    Json more = Json::array();
    for (const AddedToken& token : tokenizer.added())
        if (token.special && !tokenizer.vocabulary().is_special(token.id)) more.push_back(token.text);
    if (!more.empty()) config["additional_special_tokens"] = std::move(more);
    return config;
}

}  // namespace

std::map<std::string, std::string> tokenizer_files(const WordPiece& tokenizer) {
    return {{"tokenizer.json", tokenizer_json(tokenizer)},
            {"tokenizer_config.json", tokenizer_config(tokenizer).dump(2) + '\n'},
            {"vocab.txt", tokenizer.vocabulary().lines()}};
}

}  // namespace masquerade
