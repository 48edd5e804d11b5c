// SPDX-License-Identifier: MIT
// Learns a vocabulary from a text, reports how well a vocabulary fits a text, removes tokens that never match, and
// converts a vocabulary to tokenizer.json.
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "engine/base/write_file.h"
#include "tokenizer/report.h"
#include "tokenizer/trainer.h"
#include "tokenizer/vocabulary_notes.h"
#include "tools/line_filter.h"
#include "tools/program.h"
#include "tools/say.h"
#include "tools/tokenize/tokenize.h"

namespace masquerade {

namespace {

// Throws BadUsage if no new file can be written at `path`. Call this before long work, so that its result is not lost.
// `option` is the option that names the file, for the message.
void check_new_file(const std::string& path, const char* option) {
    namespace fs = std::filesystem;
    std::error_code none;
    fs::path folder = fs::path(path).parent_path();
    if (fs::exists(path, none))
        throw BadUsage(path, " is there already; remove it, or name another file with ", option);
    if (!folder.empty() && !fs::is_directory(folder, none))
        throw BadUsage("the folder ", folder.string(), " is not there; make it, or name another with ", option);
    if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
        throw BadUsage("the folder of ", path, " cannot be written to; name another with ", option);
}

// A progress bar on standard error. On a terminal, it is redrawn in place. If standard error is not a terminal,
// nothing is printed.
class ProgressBar {
  public:
    ~ProgressBar() { clear(); }

    // `done` is the finished share of the work, from 0 to 1; negative if it is unknown.
    void show(std::string line, double done) {
        if (!terminal_) return;
        drawn_ = true;
        const double share = std::min(done, 1.0);
        if (done >= 0) line = fmt::format("[{}] {:3.0f} % {}", bar_of(share, 24), 100 * share, line);
        fmt::print(stderr, "\r\x1b[K{}", line.substr(0, std::size_t(terminal_width() - 1)));
        std::fflush(stderr);
    }

    void clear() {
        if (drawn_) fmt::print(stderr, "\r\x1b[K");
        drawn_ = false;
    }

  private:
    bool terminal_ = is_terminal(stderr), drawn_ = false;
};

// Returns the size of standard input in bytes, or 0 if it is not a regular file.
double input_size() {
    struct stat status {};
    return fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode) ? double(status.st_size) : 0;
}

// Adds the words of standard input to `words`. Shows a progress bar.
WordCounts count_words(WordCounts words) {
    ProgressBar bar;
    const double size = input_size();
    each_block([&](std::string_view block, long) {
        words.add_text(block, threads());
        bar.show(text("counting words ", words.different(), " different"),
                 size > 0 ? double(words.bytes() + words.lines()) / size : -1);
    });
    return words;
}

}  // namespace

// The vocabulary file is written only when the vocabulary is complete, so Ctrl-C never leaves an incomplete file.
void learn_vocabulary(const TokenizeSettings& s) {
    check_new_file(s.vocabulary, "--vocab");
    WordPiece::Options reading;
    override_reading(s, reading);
    TrainerOptions options;
    options.min_count = s.min_count;
    options.max_word = reading.max_word;
    const WordCounts words = count_words(WordCounts(reading));
    ProgressBar bar;
    Vocabulary vocabulary = train_vocabulary(words, s.train, options, [&](double done) { bar.show("merging", done); });
    bar.clear();
    replace_file(s.vocabulary, vocabulary.lines());
    log_line(s.vocabulary, ": ", vocabulary.size(), " tokens");
    if (vocabulary.size() < s.train)
        log_line("note: nothing more occurs ", s.min_count, " times in this text; ", s.train,
                 " tokens need more of it");
    say("{}", Lines{report(words, WordPiece(std::move(vocabulary), reading))});
}

// Prints how well the vocabulary fits the text in standard input. The words of the text are counted with the options
// of the tokenizer.
void report_text(const TokenizeSettings& s) {
    WordPiece tokenizer = open_tokenizer(s);
    for (const std::string& note : vocabulary_notes(tokenizer)) log_line("note: ", s.vocabulary, ": ", note);
    say("{}", Lines{report(count_words(WordCounts(tokenizer)), tokenizer)});
}

void simplify_vocabulary(const TokenizeSettings& s) {
    check_new_file(s.simplify, "--simplify");
    const WordPiece tokenizer = open_tokenizer(s);
    Strings first(special_tokens, special_tokens + 4);  // all but [MASK]
    for (const AddedToken& token : tokenizer.added())
        if (tokenizer.recognises(token) && std::find(first.begin(), first.end(), token.text) == first.end())
            first.push_back(token.text);
    Simplified simplified = simplify(tokenizer.vocabulary(), first, tokenizer.options());
    replace_file(s.simplify, simplified.vocabulary.lines());
    log_line(s.simplify, ": ", simplified.vocabulary.size(), " tokens");
    for (int id : simplified.keep_tokens) say("{}\n", id);
}

void write_json(const TokenizeSettings& s) {
    check_new_file(s.write_json, "--write-json");
    WordPiece tokenizer = open_tokenizer(s);
    const Vocabulary& vocabulary = tokenizer.vocabulary();
    replace_file(s.write_json, tokenizer_json(tokenizer));
    log_line(s.write_json, ": ", vocabulary.size(), " tokens");
    int equal = 0;
    for (int id = 0; id < vocabulary.size(); id++) equal += vocabulary.id(vocabulary.token(id)) != id;
    if (equal > 0)
        log_line("note: ", equal,
                 " tokens of the vocabulary occur again further down, and tokenizer.json can hold only ",
                 "the last of equal tokens: keep the vocabulary beside it, as vocab.txt");
}

}  // namespace masquerade
