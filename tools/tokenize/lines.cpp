// SPDX-License-Identifier: MIT
// Encodes lines, decodes lines of tokens, and counts the lines whose normalised text encoding and decoding restore.
#include <algorithm>
#include <string_view>

#include "input/lines.h"
#include "input/number.h"
#include "tokenizer/frame.h"
#include "tokenizer/replacements.h"
#include "tools/line_filter.h"
#include "tools/program.h"
#include "tools/say.h"
#include "tools/tokenize/tokenize.h"

namespace masquerade {

void override_reading(const TokenizeSettings& s, WordPiece::Options& options) {
    if (s.cased) options.lower = false, options.strip_accents = false;
    if (!s.rules.empty()) {
        options.rules = s.rules == "google" ? Rules::google : Rules::hugging_face;
        options.max_word = options.rules == Rules::google ? 200 : 100;
    }
    if (s.max_word > 0) options.max_word = s.max_word;
    if (s.single_digits) options.single_digits = true;
    if (!s.replace.empty()) options.replace = s.replace == "ascii" ? ascii_punctuation() : read_replacements(s.replace);
}

HuggingFace read_vocabulary(const TokenizeSettings& s) {
    HuggingFace read = read_tokenizer(s.vocabulary, s.cased ? std::optional(true) : std::nullopt);
    for (const std::string& note : read.notes) log_line("note: ", s.vocabulary, ": ", note);
    return read;
}

WordPiece open_tokenizer(const TokenizeSettings& s) {
    HuggingFace read = read_vocabulary(s);
    WordPiece::Options& options = read.options;
    override_reading(s, options);
    if (s.unknown == "character") options.unknown = Unknown::character;
    options.recognise_special = s.recognise;
    return WordPiece(std::move(read.vocabulary), std::move(options), std::move(read.added));
}

namespace {

// Encodes lines and formats their tokens. Each thread has its own LineEncoder.
class LineEncoder {
  public:
    LineEncoder(const WordPiece& tokenizer, const TokenizeSettings& settings)
        : tokenizer_(tokenizer), settings_(settings), encoder_(tokenizer) {
        const Vocabulary& v = tokenizer.vocabulary();
        if (settings.special && (v.cls() < 0 || v.sep() < 0))
            throw BadInput("the vocabulary has no ", v.cls() < 0 ? "[CLS]" : "[SEP]", "; leave --special out");
    }

    void write(std::string_view line, long number, std::string& out) {
        const std::size_t tab = settings_.pairs ? line.find('\t') : line.npos;
        const bool pair = tab != line.npos, special = settings_.special;
        read(line.substr(0, tab), first_);
        read(pair ? line.substr(tab + 1) : "", second_);
        const Lengths kept = cut({int(first_.ids.size()), int(second_.ids.size())}, special ? pair ? 3 : 2 : 0, number);
        const std::size_t begin = out.size();
        if (special) put(tokenizer_.vocabulary().cls(), {}, '0', out);
        put(first_, kept.first, '0', out);
        if (special) put(tokenizer_.vocabulary().sep(), {}, '0', out);
        put(second_, kept.second, '1', out);
        if (special && pair) put(tokenizer_.vocabulary().sep(), {}, '1', out);
        if (out.size() > begin) out.pop_back();  // removes the space after the last token
    }

  private:
    struct Encoded {
        std::vector<int> ids;
        std::vector<Piece> pieces;  // filled only if offsets are requested
    };

    void read(std::string_view text, Encoded& to) {
        to.ids.clear();
        to.pieces.clear();
        if (!settings_.offsets && !settings_.characters) return encoder_.append(text, to.ids);
        encoder_.append(text, to.pieces);
        for (const Piece& piece : to.pieces) to.ids.push_back(piece.id);
        if (settings_.characters) to_code_points(text, to.pieces);
    }

    // Returns how many tokens of each text are kept, so that both texts and the special tokens fit into --max-length.
    Lengths cut(Lengths all, int special_tokens, long number) const {
        if (settings_.max_length == 0) return all;
        const std::string& which = settings_.truncate;
        const Truncation cut_from = which == "first"    ? Truncation::first
                                    : which == "second" ? Truncation::second
                                                        : Truncation::longest;
        const int room = settings_.max_length - special_tokens;
        if (room < 0)
            throw BadInput("--max-length is ", settings_.max_length, ", less than the special tokens of line ", number,
                           "; expected at least ", special_tokens);
        const auto kept = masquerade::cut(cut_from, tokenizer_.options().rules, room, all);
        if (!kept)
            throw BadInput("line ", number, " has ", all.first, " and ", all.second, " tokens, and --max-length ",
                           settings_.max_length, " leaves nothing of the ", which,
                           " text if that alone is cut; raise it, or use --truncate longest");
        return *kept;
    }

    void put(const Encoded& text, int kept, char type, std::string& out) const {
        const std::size_t begin = settings_.cut_left ? text.ids.size() - std::size_t(kept) : 0;
        for (std::size_t i = begin; i < begin + std::size_t(kept); i++)
            put(text.ids[i], text.pieces.empty() ? Piece{} : text.pieces[i], type, out);
    }

    // Appends the id or the token, then the type and the offsets if they are requested, and then a space.
    void put(int id, const Piece& piece, char type, std::string& out) const {
        if (settings_.ids) {
            char digits[12];
            out.append(digits, std::to_chars(digits, digits + 12, id).ptr);
        } else {
            out += tokenizer_.vocabulary().token(id);
        }
        if (settings_.types) (out += '/') += type;
        if (settings_.offsets || settings_.characters)
            out += '@' + std::to_string(piece.begin) + ':' + std::to_string(piece.end);
        out += ' ';
    }

    const WordPiece& tokenizer_;
    const TokenizeSettings& settings_;
    Encoder encoder_;
    Encoded first_, second_;
};

// Reads a line of ids or, if `as_ids` is false, a line of tokens as encode_lines() prints them. Ids and tokens are
// separated by white space. Throws BadInput if the vocabulary lacks an id or a token of the line.
std::vector<int> read_ids(std::string_view line, long line_number, const Vocabulary& vocabulary, bool as_ids) {
    std::vector<int> ids;
    while (true) {
        line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
        if (line.empty()) return ids;
        std::string_view field = line.substr(0, line.find_first_of(" \t\r"));
        line.remove_prefix(field.size());
        int id = -1;  // no number, or no token
        if (as_ids)
            read_number(field, id);
        else
            id = vocabulary.id(field);
        if (as_ids && id >= vocabulary.size())
            throw BadInput("line ", line_number, ": the vocabulary has no id ", id, "; its ids are 0 to ",
                           vocabulary.size() - 1);
        if (id < 0)
            throw BadInput("line ", line_number, ": \"", field, "\" is no ", as_ids ? "id" : "token",
                           " of the vocabulary; ", as_ids ? "without" : "with", " --ids, --decode reads ",
                           as_ids ? "tokens" : "ids");
        ids.push_back(id);
    }
}

// Calls work(line, line number, out) for each line of standard input, in parallel. work() appends the output line to
// `out`.
template <class Work>
void filter_lines(Work work) {
    each_block([&](std::string_view block, long first) {
        const auto lines = lines_of(block);
        write_lines(lines.size(), [&](std::size_t i, std::string& out) { work(lines[i], first + long(i), out); });
    });
}

}  // namespace

void encode_lines(const TokenizeSettings& s) {
    const WordPiece tokenizer = open_tokenizer(s);
    filter_lines([&](std::string_view line, long number, std::string& out) {
        thread_local LineEncoder encoder(tokenizer, s);
        encoder.write(line, number, out);
    });
}

void decode_lines(const TokenizeSettings& s) {
    const WordPiece tokenizer = open_tokenizer(s);
    filter_lines([&](std::string_view line, long number, std::string& out) {
        if (number == 1) line = without_mark(line);
        out += tokenizer.decode(read_ids(line, number, tokenizer.vocabulary(), s.ids));
    });
}

// Encodes and decodes each line, and counts the lines whose normalised text is restored exactly. Prints the first ten
// differences. Lines that contain [UNK] are skipped, because they cannot be restored.
void measure_restoration(const TokenizeSettings& s) {
    const WordPiece tokenizer = open_tokenizer(s);
    Encoder encoder(tokenizer);
    long lines = 0, unknown = 0, failed = 0;
    each_block([&](std::string_view block, long) {
        for (std::string_view line : lines_of(block)) {
            std::vector<Piece> pieces;
            std::vector<int> ids;
            encoder.append(line, pieces);
            for (const Piece& piece : pieces) ids.push_back(piece.id);
            lines++;
            if (std::count(ids.begin(), ids.end(), tokenizer.vocabulary().unk()) > 0) {
                unknown++;
                continue;
            }
            const std::string wanted = tokenizer.spelled(line, pieces), got = tokenizer.decode(ids);
            if (got != wanted && failed++ < 10) say("- {}\n+ {}\n", wanted, got);
        }
    });
    const long whole = lines - unknown, exact = whole - failed;
    say("{} lines, {} left out for [UNK], {} of {} restored exactly: {:.2f} %\n", lines, unknown, exact, whole,
        whole > 0 ? 100 * double(exact) / double(whole) : 0);
}

}  // namespace masquerade
