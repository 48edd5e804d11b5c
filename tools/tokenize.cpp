// SPDX-License-Identifier: MIT
// tokenize: text on standard input to tokens, ids or offsets, one line out for one line in; and back; and what there
// is to know about a vocabulary and a text.
#include "tools/tokenize/tokenize.h"

#include "tools/program.h"

using namespace masquerade;

namespace {

void add_options(CLI::App& app, TokenizeSettings& s) {
    auto flag = [&](const char* name, bool& value, const char* text) {
        return app.add_flag(name, value, text);
    };
    auto option = [&](const char* name, auto& value, const char* shape, const char* text) {
        return app.add_option(name, value, text)->option_text(shape);
    };
    auto one_of = [&](const char* name, std::string& value, const std::vector<std::string>& names,
                      const char* text) {
        return option(name, value, "NAME", text)->check(CLI::IsMember(names));
    };
    option("--vocab", s.vocabulary, "FILE", "vocab.txt, tokenizer.json or their folder")->required();

    app.option_defaults()->group("How text is read");
    flag("--cased", s.cased, "keep upper case and accents");
    one_of("--rules", s.rules, {"google", "hugging-face"}, "google (BERT's; default) or hugging-face");
    option("--max-word", s.max_word, "N", "longest word (200; hugging-face: 100)")
        ->check(CLI::Range(1, 1'000'000'000));
    flag("--recognise", s.recognise, "[MASK] and the like in the text are tokens");

    app.option_defaults()->group("What is written");
    flag("--ids", s.ids, "numbers instead of tokens");
    flag("--offsets", s.offsets, "add @BEGIN:END, bytes of the line");
    flag("--characters", s.characters, "add @BEGIN:END, characters of the line");
    flag("--special", s.special, "add [CLS] and [SEP]");
    flag("--pairs", s.pairs, "a line is FIRST<tab>SECOND");
    flag("--types", s.types, "add /0 (first text of a pair) or /1 (second)");
    option("--max-length", s.max_length, "N", "cut to N tokens, special ones counted")
        ->check(CLI::Range(3, 1'000'000'000));

    app.option_defaults()->group("Other work than encoding");
    flag("--decode", s.decode, "tokens (with --ids: ids) back to text");
    flag("--report", s.report, "how the vocabulary fits the text");
    option("--simplify", s.simplify, "FILE", "write FILE without tokens that never match");
    option("--write-json", s.write_json, "FILE", "write FILE as Hugging Face's tokenizer.json");

    app.option_defaults()->group("Learning a vocabulary");
    CLI::Option* train = option("--train", s.train, "SIZE", "learn SIZE tokens from the text, write --vocab")
                             ->check(CLI::Range(6, 10'000'000));
    option("--min-count", s.min_count, "N", "what is seen less often is no token (2)")
        ->check(CLI::Range(1, 1'000'000'000))
        ->needs(train);
    app.option_defaults()->group("Options");
}

// Options that mean nothing together.
void check(const TokenizeSettings& s) {
    int instead = s.decode + s.report + (s.train > 0) + !s.simplify.empty() + !s.write_json.empty();
    if (instead > 1)
        throw BadUsage("--decode, --report, --train, --simplify and --write-json: one at a time");
    bool encoding = s.offsets || s.characters || s.special || s.pairs || s.types || s.max_length > 0;
    if (instead == 1 && encoding)
        throw BadUsage(
            "--offsets, --characters, --special, --pairs, --types and --max-length say how encoded lines are written; "
            "leave them out here");
    if (instead == 1 && s.ids && !s.decode) throw BadUsage("--ids goes with encoding and --decode");
    if (s.offsets && s.characters)
        throw BadUsage("--offsets counts bytes, --characters code points: give one of them");
}

void run(const TokenizeSettings& s) {
    if (s.decode) return decode_lines(s);
    if (s.report) return report_text(s);
    if (s.train > 0) return learn_vocabulary(s);
    if (!s.simplify.empty()) return simplify_vocabulary(s);
    if (!s.write_json.empty()) return write_json(s);
    encode_lines(s);
}

}  // namespace

int main(int argc, char** argv) {
    TokenizeSettings settings;
    auto setup = [&](CLI::App& app) { add_options(app, settings); };
    auto body = [&](const Common&) {
        check(settings);
        run(settings);
    };
    return run_program(argc, argv, "tokenize",
                       "WordPiece: text on standard input, one line out for one line in", setup, body);
}
