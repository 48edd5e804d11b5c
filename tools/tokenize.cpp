// SPDX-License-Identifier: MIT
// ./tokenize: encodes lines of standard input as tokens or ids, or decodes lines of tokens or ids. It also learns
// vocabularies, simplifies and converts them, reports how well they fit a text, and packs texts for training.
#include "tools/tokenize/tokenize.h"

#include "tools/program.h"

using namespace masquerade;

namespace {

constexpr const char *reading = "How text is read", *written = "What is written";

void add_options(Options& app, TokenizeSettings& s) {
    auto count = [&](const char* name, int& value, const char* text) {
        return app.number(name, value, 1, 1'000'000'000, text);
    };
    // The file is declared as an input, although --train writes it. No input can be lost, because --train refuses to
    // overwrite an existing file.
    app.input("--vocab", s.vocabulary, "FILE", "vocab.txt, tokenizer.json or their folder");

    app.heading(reading);
    app.flag("--cased", s.cased, "keep upper case and accents");
    app.choice("--rules", s.rules, {"google", "hugging-face"}, "google (BERT's; default) or hugging-face");
    count("--max-word", s.max_word,
          "words of more than N characters become [UNK] (default: 200; with --rules hugging-face: 100)");
    app.choice("--unknown", s.unknown, {"word", "character"}, "what becomes [UNK]: a word (default) or character");
    app.flag("--single-digits", s.single_digits, "make every digit a token");
    app.flag("--recognise", s.recognise, "read [MASK] and the like in text as tokens");
    app.input("--replace", s.replace, "FILE",
              "replace each FROM by TO; a line of FILE is FROM<tab>TO. If FILE is the word ascii, "
              "typographic quotes and dashes are replaced by plain ones");

    app.heading(written);
    app.flag("--ids", s.ids, "numbers instead of tokens");
    app.flag("--offsets", s.offsets, "add @BEGIN:END, in bytes of the line");
    app.flag("--characters", s.characters, "add @BEGIN:END, in characters of the line");
    app.flag("--special", s.special, "add [CLS] and [SEP]");
    app.flag("--pairs", s.pairs, "an input line is FIRST<tab>SECOND");
    app.flag("--types", s.types, "add /0 (first text of a pair) or /1 (second)");
    const Option cut = count("--max-length", s.max_length, "cut to N tokens, special ones counted");
    app.choice("--truncate", s.truncate, {"longest", "first", "second"},
               "which text of a pair is cut: longest (default), first or second")
        .needs(cut);
    app.flag("--cut-left", s.cut_left, "cut the beginning, not the end").needs(cut);

    app.heading("Instead of encoding");
    app.flag("--decode", s.decode, "tokens (with --ids: ids) back to text");
    app.flag(
        "--restore", s.restore,
        "encode and decode each line of text, and print the share of lines whose normalised text comes back unchanged");
    app.flag("--report", s.report, "how the vocabulary fits the text");
    app.output("--simplify", s.simplify, "FILE",
               "write the vocabulary to FILE, without tokens that no text can produce");
    app.output("--write-json", s.write_json, "FILE",
               "write the tokenizer to FILE in the format of Hugging Face's tokenizer.json");

    app.heading("Packing a text, for ./train --data FOLDER");
    app.output("--pack", s.pack, "FOLDER", "write the ids of the text into a new folder");
    app.input("--check", s.check, "FOLDER", "read all of a packed text, and check it");

    app.heading("Learning a vocabulary");
    const Option train =
        app.number("--train", s.train, 6, 10'000'000,
                   "learn a vocabulary of SIZE tokens from the text, and write it to the file of --vocab", "SIZE");
    count("--min-count", s.min_count, "minimum count of a token in the text (default: 2)").needs(train);
    app.heading("Options");  // for the options of all programs, which run_program() declares
}

// Throws BadUsage if the user combined options that exclude each other.
void check(const Options& app, const TokenizeSettings& s) {
    const int instead = s.decode + s.report + s.restore + (s.train > 0) + !s.simplify.empty() + !s.write_json.empty() +
                        !s.pack.empty() + !s.check.empty();
    if (instead > 1)
        throw BadUsage(
            "--decode, --report, --restore, --train, --simplify, --write-json, --pack and --check: one at a time");
    if (s.vocabulary.empty() == s.check.empty())
        throw BadUsage(s.check.empty() ? "--vocab is required" : "--check reads a packed text: leave out --vocab");
    for (const Option& option : app.given()) {
        const bool pairs = !s.pack.empty() && option.name() == "--pairs", ids = s.decode && option.name() == "--ids";
        if (instead == 1 && option.heading() == written && !pairs && !ids)
            throw BadUsage(option.name(), " says how encoded lines are written: leave it out here");
        if (s.train > 0 && (option.name() == "--unknown" || option.name() == "--recognise"))
            throw BadUsage(option.name(), " says how words become tokens, and --train counts words: leave it out");
        if (option.heading() == reading && (!s.check.empty() || (!s.pack.empty() && option.name() != "--cased")))
            throw BadUsage(option.name(), s.pack.empty()
                                              ? " says how text is read, and --check reads none: leave it out"
                                              : ": a packed text is read as training reads text; expected no "
                                                "option but --cased, or a tokenizer.json with other rules "
                                                "(--write-json)");
    }
    if (s.offsets && s.characters) throw BadUsage("--offsets counts bytes, --characters code points: give one of them");
}

void run(const TokenizeSettings& s) {
    if (s.decode) return decode_lines(s);
    if (s.report) return report_text(s);
    if (s.restore) return measure_restoration(s);
    if (!s.pack.empty()) return pack_text(s);
    if (!s.check.empty()) return check_pack(s);
    if (s.train > 0) return learn_vocabulary(s);
    if (!s.simplify.empty()) return simplify_vocabulary(s);
    if (!s.write_json.empty()) return write_json(s);
    encode_lines(s);
}

}  // namespace

int main(int argc, char** argv) {
    TokenizeSettings settings;
    Options given;  // a handle on the options; after parsing, it knows which options the user gave
    auto setup = [&](Options& app) { add_options(given = app, settings); };
    auto body = [&](const Common&) {
        check(given, settings);
        run(settings);
    };
    const char* what = "WordPiece: text on standard input, one line out for one line in";
    return run_program(argc, argv, "tokenize", what, setup, body);
}
