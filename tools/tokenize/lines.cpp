// SPDX-License-Identifier: MIT
// Lines to tokens, and tokens to lines.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "tokenizer/batch.h"
#include "tokenizer/decoder.h"
#include "tokenizer/hugging_face/hugging_face.h"
#include "tokenizer/replacements.h"
#include "tokenizer/restoration.h"
#include "tools/line_filter.h"
#include "tools/program.h"
#include "tools/tokenize/tokenize.h"

namespace masquerade {

void override_reading(const TokenizeSettings& s, NormaliseOptions& options) {
    if (s.cased) options.lower = false, options.strip_accents = false;
    if (!s.rules.empty()) options.rules = s.rules == "google" ? Rules::google : Rules::hugging_face;
    if (s.single_digits) options.single_digits = true;
    if (!s.replace.empty())
        options.replace = s.replace == "ascii" ? ascii_punctuation() : read_replacements(s.replace);
}

WordPiece open_tokenizer(const TokenizeSettings& s) {
    HuggingFace read = read_tokenizer(s.vocabulary, s.cased);
    for (const std::string& note : read.notes) log_line("note: ", s.vocabulary, ": ", note);
    WordPiece::Options& options = read.options;
    override_reading(s, options);
    if (!s.rules.empty()) options.max_word = options.rules == Rules::google ? 200 : 100;
    if (s.max_word > 0) options.max_word = s.max_word;
    if (s.unknown == "character") options.unknown = Unknown::character;
    options.recognise_special = s.recognise;
    return WordPiece(std::move(read.vocabulary), std::move(options), std::move(read.added));
}

namespace {

// Sequence b as a line: ids or tokens, and what was asked for beside them.
void print_sequence(const PackedBatch& batch, int b, const WordPiece& tokenizer, const TokenizeSettings& s,
                    std::string& out) {
    for (int i = batch.starts[std::size_t(b)]; i < batch.starts[std::size_t(b) + 1]; i++) {
        std::size_t at = std::size_t(i);
        if (i > batch.starts[std::size_t(b)]) out += ' ';
        if (s.ids) {
            char digits[12];
            out.append(digits, std::to_chars(digits, digits + 12, batch.ids[at]).ptr);
        } else {
            out += tokenizer.vocabulary().token(batch.ids[at]);
        }
        if (s.types) out += batch.types[at] == 0 ? "/0" : "/1";
        if (s.offsets || s.characters) {
            const Piece& p = batch.pieces[at];
            out += '@' + std::to_string(p.begin) + ':' + std::to_string(p.end);
        }
    }
}

// The offsets of a block's pieces, from bytes to characters of their text.
void to_code_points(const std::vector<Input>& inputs, PackedBatch& batch) {
    for (std::size_t b = 0; b < inputs.size(); b++) {
        int begin = batch.starts[b], middle = begin, end = batch.starts[b + 1];
        while (middle < end && batch.types[std::size_t(middle)] == 0) middle++;
        Piece* pieces = batch.pieces.data();
        to_code_points(inputs[b].first, pieces + begin, pieces + middle);
        to_code_points(inputs[b].second.value_or(""), pieces + middle, pieces + end);
    }
}

// -1 where the field is no number.
int number_in(std::string_view field) {
    int number = -1;
    const char* last = field.data() + field.size();
    auto [end, error] = std::from_chars(field.data(), last, number);
    return error == std::errc() && end == last ? number : -1;
}

// Fields separated by spaces: ids, or tokens as encoding prints them.
std::vector<int> read_ids(std::string_view line, long line_number, const Vocabulary& vocabulary,
                          bool as_ids) {
    std::vector<int> ids;
    while (true) {
        line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
        if (line.empty()) return ids;
        std::string_view field = line.substr(0, line.find_first_of(" \t\r"));
        line.remove_prefix(field.size());
        ids.push_back(as_ids ? number_in(field) : vocabulary.id(field));
        if (as_ids && ids.back() >= vocabulary.size())
            throw BadInput(text("line ", line_number, ": the vocabulary has no id ", ids.back(),
                                "; its ids are 0 to ", vocabulary.size() - 1));
        if (ids.back() < 0)
            throw BadInput(text("line ", line_number, ": \"", field, "\" is no ", as_ids ? "id" : "token",
                                " of the vocabulary; ", as_ids ? "without" : "with",
                                " --ids, --decode reads ", as_ids ? "tokens" : "ids"));
    }
}

}  // namespace

void encode_lines(const TokenizeSettings& s) {
    WordPiece tokenizer = open_tokenizer(s);
    each_block([&](std::string_view block, long first_number) {
        std::vector<Input> inputs;
        for (std::string_view line : lines_of(block)) {
            const std::size_t tab = s.pairs ? line.find('\t') : line.npos;
            inputs.push_back(tab == line.npos ? Input{line, {}} : Input{line.substr(0, tab), line.substr(tab + 1)});
        }
        PackedBatch batch = encode_batch(
            tokenizer, inputs.size(), [&](std::size_t i) { return inputs[i]; }, s.frame, threads(),
            std::size_t(first_number));
        if (s.characters) to_code_points(inputs, batch);
        write_lines(inputs.size(),
                    [&](std::size_t i, std::string& out) { print_sequence(batch, int(i), tokenizer, s, out); });
    });
}

void decode_lines(const TokenizeSettings& s) {
    WordPiece tokenizer = open_tokenizer(s);
    Decoder::Options options;
    options.spaces = s.plain ? Decoder::Spaces::plain : Decoder::Spaces::restored;
    each_block([&](std::string_view block, long first) {
        const std::vector<std::string_view> lines = lines_of(block);
        write_lines(lines.size(), [&](std::size_t i, std::string& out) {
            Decoder decoder(tokenizer, options);
            for (int id : read_ids(lines[i], first + long(i), tokenizer.vocabulary(), s.ids)) decoder.push(id, out);
            decoder.finish(out);
        });
    });
}

// Lines that come back otherwise are shown, the first ten of them.
void measure_restoration(const TokenizeSettings& s) {
    WordPiece tokenizer = open_tokenizer(s);
    std::vector<std::string> lines;
    each_block([&](std::string_view block, long) {
        for (std::string_view line : lines_of(block)) lines.emplace_back(line);
    });
    int shown = 0;
    Restoration r = restoration(tokenizer, lines, [&](const std::string& wanted, const std::string& got) {
        if (shown++ < 10) std::cout << "- " << wanted << "\n+ " << got << '\n';
    });
    std::cout << fmt::format("{} lines, {} left out for [UNK], {} of {} restored exactly: {:.2f} %\n",
                             r.lines, r.unknown, r.exact, r.lines - r.unknown, 100 * r.share());
}

}  // namespace masquerade
