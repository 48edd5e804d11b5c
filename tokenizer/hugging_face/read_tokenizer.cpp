// SPDX-License-Identifier: MIT
// Reads a tokenizer from any path: tokenizer.json, vocab.txt, or a model folder.
#include <algorithm>
#include <filesystem>

#include "tokenizer/hugging_face/hugging_face.h"
#include "tokenizer/hugging_face/read_added_tokens.h"
#include "input/utf8.h"
#include "tokenizer/vocabulary_notes.h"

namespace masquerade {

namespace {

namespace fs = std::filesystem;

// Adds a note for each option whose values in tokenizer_config.json and tokenizer.json differ. The value in
// tokenizer.json is used.
void compare(const TokenizerField& config, HuggingFace& read) {
    const WordPiece::Options& options = read.options;
    auto note = [&](const char* key, const nlohmann::json& used) {
        TokenizerField said = config[key];
        if (said.is_null() || said.value() == used) return;
        read.notes.push_back("tokenizer.json has " + in_words(used) + " for what tokenizer_config.json calls " + key +
                             " and gives as " + in_words(said.value()) +
                             ": the first is taken (transformers takes the second)");
    };
    note("do_lower_case", options.lower);
    note("tokenize_chinese_chars", options.split_ideographs);
    note("strip_accents", json_of(options.strip_accents));
}

// Settings of tokenizer_config.json. Only `value` fits the way in which BERT splits text; other values are refused.
// `otherwise` is the part of the message that says why.
struct Expected {
    const char *key, *value, *otherwise;
};
constexpr Expected expected_words[] = {{"word_tokenizer_type", "basic", ": MeCab, Sudachi and Juman++ are not here"},
                                       {"subword_tokenizer_type", "wordpiece",
                                        ": words are always cut into the pieces of WordPiece here"}};
constexpr const char* expected_true[] = {"do_basic_tokenize", "do_word_tokenize", "do_subword_tokenize"};

// The tokenizer classes of transformers that split text as BertTokenizer does. Each name is written without its
// ending: "Bert" stands for BertTokenizer and BertTokenizerFast. PreTrainedTokenizerFast does what tokenizer.json says.
constexpr const char* classes_like_bert[] = {"Bert",     "PreTrained", "DistilBert",  "Electra",   "ConvBert",
                                             "LayoutLM", "MobileBert", "SqueezeBert", "Retribert", "Lxmert"};

// Returns the first token without "##" that has several ideographs; "" if there is none. BERT's tokenizer never
// produces such a token. Only a tokenizer that first splits text into Chinese words produces it.
std::string first_word_of_ideographs(const Vocabulary& vocabulary) {
    const Characters characters(NormaliseOptions{false});
    for (const std::string& token : vocabulary.tokens()) {
        if (continues(token) || !is_utf8(token)) continue;
        int ideographs = 0;
        for (char32_t c : code_points(token)) ideographs += characters[c].is(Character::ideograph);
        if (ideographs > 1) return token;
    }
    return "";
}

// Throws TokenizerError if the files describe a tokenizer that does not split text into words as BERT does. `config`
// is tokenizer_config.json, and `type` is model_type in config.json.
void refuse_foreign(const TokenizerField& config, const std::string& type, const Vocabulary& vocabulary) {
    for (const Expected& word : expected_words)
        if (const TokenizerField given = config[word.key]; !given.is_null() && given.value() != word.value)
            given.fail(
                '"', word.value, '"', word.otherwise,
                ". Cut the text into words with that program, put a space between them, and take the key out, with "
                "tokenizer_class \"BertTokenizer\" and tokenize_chinese_chars false");
    for (const char* key : expected_true)
        if (const TokenizerField given = config[key]; !given.is_null() && !given.boolean())
            given.fail("true: text is always cut into words first, and words into pieces");
    const TokenizerField given = config["tokenizer_class"];
    const std::string name =
        given.is_null() ? (type == "roformer" ? "RoFormerTokenizer" : "BertTokenizer") : given.string();
    const std::string kind = name.substr(0, name.find("Tokenizer"));
    if (kind == "RoFormer") {
        if (const std::string word = first_word_of_ideographs(vocabulary); !word.empty())
            throw TokenizerError(config.where(), ": ", name,
                                 " cuts Chinese into words with jieba, which is not supported, and the "
                                 "vocabulary holds such words (",
                                 word,
                                 "); a RoFormer by characters is expected, such as "
                                 "roformer_chinese_char_base");
        return;
    }
    if (kind == "BertJapanese" && !config["word_tokenizer_type"].is_null()) return;  // it is "basic", as checked above
    for (const char* known : classes_like_bert)
        if (kind == known) return;
    if (name != "TokenizersBackend")
        given.fail("BertTokenizer or one that cuts text as it does: ", name,
                   " is not here. If it does, name BertTokenizer "
                   "there; else start without these weights, with a vocabulary that is learned");
}

// Collects the added tokens of all files, in the order of reading. A token that the vocabulary lacks is appended to it.
class Additions {
  public:
    explicit Additions(HuggingFace& read) : read_(read), own_(read.vocabulary.size()) {}

    // Reads added_tokens_decoder of tokenizer_config.json: {"7": {"content": ..., ...}, ...}.
    void decoder_list(const TokenizerField& decoder) {
        if (!decoder.value().is_object()) decoder.fail("an object of ids with their tokens");
        nlohmann::json list = nlohmann::json::array();
        for (const auto& item : decoder.value().items()) {
            const std::string& id = item.key();
            bool number = !id.empty() && id.size() < 10 && id.find_first_not_of("0123456789") == id.npos;
            if (!number || !item.value().is_object()) decoder[id].fail("an object, under its id");
            list.push_back(item.value());
            list.back()["id"] = std::stoi(id);
        }
        take(decoder, list);
    }

    // Reads added_tokens.json: {"<x>": 30522, ...}. The tokens get the flags that transformers gives them; they are not
    // special.
    void plain_list(const TokenizerField& ids) {
        if (!ids.value().is_object()) ids.fail("an object of tokens with their ids");
        nlohmann::json list = nlohmann::json::array();
        for (const auto& item : ids.value().items()) {
            list.push_back({{"content", item.key()}, {"id", ids[item.key()].number(0)}});
            for (const auto& [key, flag] : token_flags) list.back()[key] = flag == &AddedToken::normalised;
        }
        take(ids, list);
    }

    // Reads a special token: a text, or an object {content, lstrip, ...}. Adds the token if it has not been added
    // yet, and marks it as special.
    void special(const TokenizerField& given) {
        const std::string& text = given.is_string() ? given.string() : given["content"].string();
        if (text.empty()) return;
        auto same = find(text);
        if (same == read_.added.end()) {
            const int next = read_.vocabulary.size();
            AddedToken token{text, read_.vocabulary.add(text)};
            token.beyond = token.id == next;
            read_.added.push_back(token);
            same = read_.added.end() - 1;
        }
        if (!given.is_string())
            for (const auto& [key, flag] : token_flags)
                if (flag != &AddedToken::special) given[key].read((*same).*flag);
        same->special = true;
    }

    // Reads the additional special tokens in tokenizer_config.json or special_tokens_map.json. If with_five is true,
    // also reads BERT's five special tokens (keys unk_token and so on). Their texts must be BERT's: "[UNK]" and so on.
    void roles(const TokenizerField& config, bool with_five) {
        for (int i = 0; i < 5; i++) {
            const TokenizerField token = config[role_keys[i]];
            if (token.is_null() || !with_five) continue;
            (token.is_string() ? token : token["content"]).expect(special_tokens[i]);
            const int id = read_.vocabulary.id(special_tokens[i]);
            if (!token.is_string() && id >= 0 && id < own_) special(token);
        }
        for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
            const TokenizerField more = config[key];
            if (more.is_null()) continue;
            if (more.value().is_object()) {
                for (const auto& item : more.value().items()) special(more[item.key()]);
            } else {
                for (const TokenizerField& token : more.list()) special(token);
            }
        }
    }

    // Adds those of BERT's five special tokens that the vocabulary has and that were not added yet, as transformers
    // always does.
    void five() {
        for (AddedToken& token : special_added(read_.vocabulary))
            if (find(token.text) == read_.added.end()) read_.added.push_back(std::move(token));
    }

  private:
    std::vector<AddedToken>::iterator find(const std::string& text) {
        return std::find_if(read_.added.begin(), read_.added.end(),
                            [&](const AddedToken& token) { return token.text == text; });
    }
    void take(const TokenizerField& where, nlohmann::json& list) {
        std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a["id"] < b["id"]; });
        for (AddedToken& token : read_added_tokens(where.with(list), read_.vocabulary, read_.notes))
            read_.added.push_back(std::move(token));
    }

    HuggingFace& read_;
    const int own_;  // number of tokens before the first addition
};

// Sets the options to those that transformers uses for a vocab.txt with this tokenizer_config.json.
void apply_config(const TokenizerField& config, WordPiece::Options& options) {
    options.rules = Rules::hugging_face;
    options.max_word = 100;
    options.recognise_special = true;
    config["do_lower_case"].read(options.lower);
    config["tokenize_chinese_chars"].read(options.split_ideographs);
    config["strip_accents"].read(options.strip_accents);
}

// A JSON file. If the file does not exist, `json` is an empty object.
struct File {
    std::string path;
    bool there = exists(path);
    nlohmann::json json = there ? read_json_file(path) : nlohmann::json::object();
    TokenizerField top() const { return {path, json}; }
};

// Reads vocab.txt as BERT does, which drops white space at the end of a line.
Vocabulary load_lines(const std::string& path) {
    Strings tokens = Vocabulary::load(path).tokens();
    for (std::string& token : tokens) token.resize(token.find_last_not_of(" \t\r") + 1);
    return Vocabulary(std::move(tokens));
}

// Returns the setting `cased` of a run (run.json) or of a packed text (pack.json) of this project.
std::optional<bool> stored_cased(const fs::path& folder) {
    nlohmann::json run = File{(folder / "run.json").string()}.json, pack = File{(folder / "pack.json").string()}.json;
    if (run.is_object()) run = run.value("settings", nlohmann::json());
    for (const nlohmann::json& stored : {run, pack})
        if (stored.is_object() && stored.contains("cased") && stored["cased"].is_boolean())
            return stored["cased"].get<bool>();
    return std::nullopt;
}

HuggingFace read_folder(const fs::path& folder) {
    HuggingFace read;
    const auto in_folder = [&](const char* name) { return (folder / name).string(); };
    const std::string whole = in_folder("tokenizer.json"), plain = in_folder("vocab.txt");
    const bool has_whole = exists(whole);
    if (!has_whole && !exists(plain))
        throw TokenizerError("the folder ", folder.string(), " holds neither tokenizer.json nor vocab.txt");
    if (has_whole)
        read = read_tokenizer_json(whole);
    else
        read.vocabulary = load_lines(plain);
    const File config{in_folder("tokenizer_config.json")}, map{in_folder("special_tokens_map.json")},
        more{in_folder("added_tokens.json")}, model{in_folder("config.json")};
    const auto type = model.json.is_object() ? model.json.find("model_type") : model.json.end();
    refuse_foreign(config.top(), type != model.json.end() && type->is_string() ? type->get<std::string>() : "",
                   read.vocabulary);
    Additions additions(read);
    if (has_whole) {
        compare(config.top(), read);
    } else {
        const TokenizerField listed = config.top()["added_tokens_decoder"];
        if (config.there || map.there || more.there) apply_config(config.top(), read.options);
        if (!listed.is_null())
            additions.decoder_list(listed);
        else if (more.there)
            additions.plain_list(more.top());
    }
    additions.roles(config.top(), !has_whole);
    additions.roles(map.top(), !has_whole);
    if (!read.added.empty() && !has_whole) additions.five();
    return read;
}

}  // namespace

HuggingFace read_tokenizer(const std::string& path, std::optional<bool> cased) {
    std::error_code ignored;
    HuggingFace read;
    if (fs::is_directory(path, ignored))
        read = read_folder(path);
    else if (fs::path(path).extension() == ".json")
        read = read_tokenizer_json(path);
    else
        read.vocabulary = load_lines(path);
    if (!cased && fs::is_directory(path, ignored) && read.options.rules == Rules::google) cased = stored_cased(path);
    if (cased) {
        read.options.lower = !*cased;
        read.options.strip_accents = *cased ? std::optional(false) : std::nullopt;
    }
    std::string casing = casing_note(read.vocabulary, read.options.lower);
    if (!casing.empty()) read.notes.push_back(casing);
    return read;
}

WordPiece training_tokenizer(HuggingFace read) {
    read.options.recognise_special = false;
    return {std::move(read.vocabulary), std::move(read.options), std::move(read.added)};
}

}  // namespace masquerade
