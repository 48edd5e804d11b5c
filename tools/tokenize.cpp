// SPDX-License-Identifier: MIT
// tokenize: text on standard input to tokens, ids or offsets, one line out for one line in; and back; and the
// training of a vocabulary.
#include <charconv>
#include <string_view>

#include "tokenizer/trainer.h"
#include "tokenizer/wordpiece.h"
#include "tools/program.h"

using namespace masquerade;

namespace {

struct Settings {
    std::string vocabulary;
    bool cased = false, ids = false, offsets = false, decode = false, special = false, single_digits = false;
    int max_word = 200, train = 0;
};

// Calls use(line, number from 1) for each line of standard input; a last line without a line feed counts.
// What was written goes out whenever no more input is at hand, so that a program at the other end of a pipe
// gets its answers.
template <class Use>
void each_line(Use use) {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    std::string line;
    for (long number = 1; std::getline(std::cin, line); number++) {
        use(line, number);
        if (std::cin.rdbuf()->in_avail() <= 0) std::cout.flush();
    }
    if (std::cin.bad()) throw BadInput("standard input cannot be read");
}

void train(const Settings& settings) {
    VocabularyTrainer trainer({!settings.cased, settings.single_digits});
    each_line([&](const std::string& line, long) { trainer.add(line); });
    Vocabulary vocabulary = trainer.train(settings.train);
    vocabulary.save(settings.vocabulary);
    log_line(settings.vocabulary, ": ", vocabulary.size(), " tokens");
    if (vocabulary.size() < settings.train)
        log_line("note: nothing more occurs twice in this text; ", settings.train, " tokens need more of it");
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
        if (ids.back() < 0 || ids.back() >= vocabulary.size())
            throw BadInput(text("line ", line_number, ": \"", field, "\" is no ", as_ids ? "id" : "token",
                                " of the vocabulary; ", as_ids ? "without" : "with",
                                " --ids, --decode reads ", as_ids ? "tokens" : "ids"));
    }
}

void print_encoded(const WordPiece& tokenizer, const Settings& settings, std::string_view line) {
    const Vocabulary& vocabulary = tokenizer.vocabulary();
    std::string out;
    auto field = [&](int id, const std::string& place) {
        if (!out.empty()) out += ' ';
        out += settings.ids ? std::to_string(id) : vocabulary.token(id);
        if (settings.offsets) out += place;
    };
    auto place = [](int begin, int end) { return '@' + std::to_string(begin) + ':' + std::to_string(end); };
    if (settings.special) field(vocabulary.cls(), place(0, 0));
    if (settings.offsets)
        for (const Piece& piece : tokenizer.encode_pieces(line))
            field(piece.id, place(piece.begin, piece.end));
    else
        for (int id : tokenizer.encode(line)) field(id, {});
    if (settings.special) field(vocabulary.sep(), place(int(line.size()), int(line.size())));
    std::cout << out << '\n';
}

void convert(const Settings& settings) {
    WordPiece tokenizer(Vocabulary::load(settings.vocabulary),
                        {!settings.cased, settings.max_word, settings.single_digits});
    const Vocabulary& vocabulary = tokenizer.vocabulary();
    if (settings.special && (vocabulary.cls() < 0 || vocabulary.sep() < 0))
        throw BadInput("--special: the vocabulary " + settings.vocabulary + " has no [CLS] or no [SEP]");
    each_line([&](const std::string& line, long number) {
        if (settings.decode)
            std::cout << tokenizer.decode(read_ids(line, number, vocabulary, settings.ids)) << '\n';
        else
            print_encoded(tokenizer, settings, line);
    });
}

}  // namespace

int main(int argc, char** argv) {
    Settings settings;
    auto setup = [&](CLI::App& app) {
        app.add_option("--vocab", settings.vocabulary, "the vocabulary, one token a line")->required();
        app.add_flag("--cased", settings.cased, "keep upper case and accents");
        CLI::Option* ids = app.add_flag("--ids", settings.ids, "numbers instead of tokens");
        CLI::Option* offsets =
            app.add_flag("--offsets", settings.offsets, "add @BEGIN:END, bytes of the line");
        CLI::Option* special = app.add_flag("--special", settings.special, "add [CLS] and [SEP]");
        CLI::Option* decode =
            app.add_flag("--decode", settings.decode, "tokens (with --ids: ids) back to text");
        CLI::Option* train =
            app.add_option("--train", settings.train, "learn this many tokens, write them to --vocab");
        CLI::Option* longest =
            app.add_option("--max-word", settings.max_word, "a longer word, in code points, is [UNK]");
        app.add_flag("--single-digits", settings.single_digits, "every digit a token of its own");
        train->check(CLI::Range(6, 10'000'000));
        longest->check(CLI::Range(1, 1'000'000'000))->capture_default_str();
        for (CLI::Option* option : {ids, offsets, special, decode, longest}) train->excludes(option);
        for (CLI::Option* option : {offsets, special}) decode->excludes(option);
    };
    auto body = [&](const Common&) { settings.train > 0 ? train(settings) : convert(settings); };
    return run_program(argc, argv, "tokenize",
                       "WordPiece: text on standard input, one line out for one line in", setup, body);
}
