// SPDX-License-Identifier: MIT
// Compares the tokenizer with other tokenizers, word by word and id by id. The project's own cases are in
// tests/golden/tokenizer (make.py describes their form). The environment variables GOLDEN and VOCABULARIES name another
// folder of cases and the folder of their vocabularies; tests/golden/tokenizer/run.sh sets them.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "doctest/doctest.h"
#include "tokenizer/wordpiece.h"

using namespace masquerade;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const fs::path ours = "tests/golden/tokenizer";

// Makes a tokenizer for each set of options in the cases.
class Tokenizers {
  public:
    explicit Tokenizers(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

    const WordPiece& with(const json& options) {
        auto found = made_.find(options.dump());
        if (found == made_.end()) found = made_.try_emplace(options.dump(), vocabulary_, read_options(options)).first;
        return found->second;
    }

  private:
    static WordPiece::Options read_options(const json& given) {
        WordPiece::Options options;
        for (const auto& [key, value] : given.items()) {
            if (key == "lower")
                options.lower = value;
            else if (key == "strip_accents" && value.is_null())
                options.strip_accents = std::nullopt;
            else if (key == "strip_accents")
                options.strip_accents = value.get<bool>();
            else if (key == "clean")
                options.clean = value;
            else if (key == "ideographs")
                options.split_ideographs = value;
            else if (key == "special")
                options.recognise_special = value;
            else if (key == "max_word")
                options.max_word = value;
            else if (key == "rules" && value == "hugging-face")
                options.rules = Rules::hugging_face;
            else if (key != "vocabulary")
                throw std::runtime_error("no such option of golden cases: " + key);
        }
        return options;
    }

    Vocabulary vocabulary_;
    std::map<std::string, WordPiece> made_;
};

std::string text_of(const json& golden) {
    std::string text;
    if (golden.contains("text")) return golden["text"];
    std::string hex = golden.at("bytes");
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) text += char(std::stoi(hex.substr(i, 2), nullptr, 16));
    return text;
}

template <class T>
T repeated(const T& one, int times) {
    T all;
    for (int i = 0; i < times; i++) all.insert(all.end(), one.begin(), one.end());
    return all;
}

std::vector<std::string> words_of(const WordPiece& tokenizer, const std::string& text) {
    std::vector<std::string> all;
    for (Words words(text, tokenizer.characters()); words.next();) all.push_back(words.text());
    return all;
}

std::string ascii(const json& value) {
    return value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 400);
}

std::string shown(const WordPiece& tokenizer, const std::vector<int>& ids) {
    json tokens = json::array();
    for (int id : ids) tokens.push_back(tokenizer.vocabulary().token(id));
    return ascii(tokens);
}

// Whether each of the three ways of encoding gives these ids, and whether the words are right.
bool agrees(const WordPiece& tokenizer, const json& golden, const char* words, const std::vector<int>& one) {
    int times = golden.value("repeat", 1);
    std::string text = repeated(text_of(golden), times);
    std::vector<int> ids = repeated(one, times), encoded = tokenizer.encode(text), from_encoder, from_pieces;
    Encoder encoder(tokenizer);
    encoder.append(text, from_encoder);
    for (const Piece& piece : tokenizer.encode_pieces(text)) from_pieces.push_back(piece.id);
    std::vector<std::string> expected_words, made_words = words_of(tokenizer, text);
    if (golden.contains(words))
        expected_words = repeated(golden[words].get<std::vector<std::string>>(), times);
    else
        expected_words = made_words;
    if (encoded == ids && from_encoder == ids && from_pieces == ids && made_words == expected_words) return true;
    static int reported = 0;
    if (++reported > 5) return false;
    FAIL_CHECK(golden["kind"].get<std::string>()
               << ": " << ascii(text) << "\n  expected     " << shown(tokenizer, ids) << "\n  encode       "
               << shown(tokenizer, encoded) << "\n  Encoder      " << shown(tokenizer, from_encoder)
               << "\n  pieces       " << shown(tokenizer, from_pieces) << "\n  expected words " << ascii(expected_words)
               << "\n  words          " << ascii(made_words));
    return false;
}

struct Count {
    int cases = 0, equal = 0;
    void add(bool same) {
        cases++;
        equal += same;
    }
};

// Returns the ids of a column of tokens.
std::vector<int> ids_of(const json& tokens, const Vocabulary& vocabulary) {
    std::vector<int> ids;
    for (const auto& token : tokens) ids.push_back(vocabulary.id(token.get<std::string>()));
    return ids;
}

// Runs the cases of one file. If some cases have a column for the Hugging Face library, all cases are also run with its
// rules. If a case has no such column, the library gives the same tokens as BERT's reference.
void run(const fs::path& file, json settings, const fs::path& vocabularies, Count& count) {
    Tokenizers tokenizers(Vocabulary::load(vocabularies / settings.at("vocabulary").get<std::string>()));
    Count own, library;
    bool two_columns = false;
    std::vector<json> cases;
    std::ifstream lines(file, std::ios::binary);
    for (std::string line; std::getline(lines, line);) {
        cases.push_back(json::parse(line));
        two_columns = two_columns || cases.back().contains("hf_fast_tokens");
    }
    for (const json& golden : cases) {
        json options = settings;
        if (golden.contains("options")) options.update(golden["options"]);
        const WordPiece& tokenizer = tokenizers.with(options);
        own.add(agrees(tokenizer, golden, "basic", golden.at("ids")));
        if (!two_columns) continue;
        options["rules"] = "hugging-face";
        bool other = golden.contains("hf_fast_tokens");
        std::vector<int> ids =
            other ? ids_of(golden["hf_fast_tokens"], tokenizer.vocabulary()) : golden["ids"].get<std::vector<int>>();
        library.add(agrees(tokenizers.with(options), golden, other ? "hf_fast_basic" : "basic", ids));
    }
    CAPTURE(file);
    CHECK(own.cases > 0);
    CHECK(own.equal == own.cases);
    CHECK(library.equal == library.cases);
    count.cases += own.cases + library.cases;
    count.equal += own.equal + library.equal;
    if (std::getenv("GOLDEN")) {
        std::printf("%s: %d of %d cases", file.c_str(), own.equal, own.cases);
        if (two_columns) std::printf(", by Hugging Face's rules %d of %d", library.equal, library.cases);
        std::printf("\n");
    }
}

std::set<std::string> run_folder(const fs::path& folder, const fs::path& vocabularies) {
    fs::path settings_file = (fs::exists(folder / "settings.json") ? folder : ours) / "settings.json";
    json settings = json::parse(std::ifstream(settings_file));
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".jsonl") names.insert(entry.path().stem());
    Count count;
    for (const std::string& name : names) {
        REQUIRE_MESSAGE(settings.contains(name), "no settings of ", name, " in ", settings_file.string());
        run(folder / (name + ".jsonl"), settings[name], vocabularies, count);
    }
    if (std::getenv("GOLDEN")) std::printf("%d of %d golden cases are equal\n", count.equal, count.cases);
    return names;
}

}  // namespace

TEST_CASE("golden cases of other tokenizers, word for word and id for id") {
    const char *folder = std::getenv("GOLDEN"), *vocabularies = std::getenv("VOCABULARIES");
    std::set<std::string> names = run_folder(folder ? folder : ours, vocabularies ? vocabularies : ours);
    std::set<std::string> of_ours{"lower", "cased", "hugging_face_lower", "hugging_face_cased",
                                  "hugging_face_switches"};
    if (folder)
        CHECK_FALSE(names.empty());
    else
        CHECK(names == of_ours);
}
