// SPDX-License-Identifier: MIT
// ./bench tokenizer: measures encoding, decoding and training of WordPiece. The text is in memory.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "data/text.h"
#include "data/training_text.h"
#include "tokenizer/hugging_face/hugging_face.h"
#include "tokenizer/threads.h"
#include "tokenizer/trainer.h"
#include "tools/bench/bench.h"
#include "tools/bench/measure.h"
#include "tools/line_filter.h"

namespace masquerade {
namespace {

namespace fs = std::filesystem;

constexpr int trained_size = 8000;     // number of tokens to learn; the same as in tokenizer_peer.py
constexpr double default_size = 16e6;  // bytes; the default text is repeated up to about this size

// Results that are not used otherwise are stored here, so that the compiler cannot remove their computation.
volatile std::size_t seen = 0;

struct CaseOptions {
    Strings texts;
    std::string vocabulary;
    bool cased = false;
};

struct BenchText {
    std::string name, bytes;              // bytes: the text; every line ends in a line feed
    std::vector<std::string_view> lines;  // views into `bytes`, without line feeds

    double megabytes() const { return double(bytes.size()) / 1e6; }
};

void read_bench_text(const Strings& files, BenchText& t) {
    auto add = [&](const Strings& lines) {
        for (const std::string& line : lines) t.bytes += line, t.bytes += '\n';
    };
    for (const std::string& path : files) {
        add(read_text(path, std::numeric_limits<std::size_t>::max()).source);
        t.name += (t.name.empty() ? "" : ", ") + printable(fs::path(path).filename().string());
    }
    if (files.empty()) {
        const TrainingText training = find_training_text("", "");
        t.name = printable(fs::path(training.origin.name).filename().string());
        add(training.train);
        for (const std::string once = t.bytes; double(t.bytes.size()) + double(once.size()) / 2 < default_size;)
            t.bytes += once;
    }
    t.lines = lines_of(t.bytes);
}

Vocabulary train_on(std::string_view lines, const NormaliseOptions& options, int threads) {
    WordCounts words(options);
    words.add_text(lines, threads);
    return train_vocabulary(words, trained_size);
}

WordPiece tokenizer_of(HuggingFace read) {
    return WordPiece(std::move(read.vocabulary), std::move(read.options), std::move(read.added));
}

// Returns the path of the vocabulary file. For a model's folder, it is the file that read_tokenizer() reads. If no
// vocabulary is given, one is learned from the text.
std::string vocabulary_file(const CaseOptions& o, const BenchText& text, const SharedFolder& folder) {
    if (o.vocabulary.empty()) {
        WordPiece::Options options;
        options.lower = !o.cased;
        return folder.write("vocab.txt", train_on(text.bytes, options, threads()).lines());
    }
    if (!fs::is_directory(o.vocabulary)) return fs::absolute(o.vocabulary);
    const fs::path model = fs::absolute(o.vocabulary), json = model / "tokenizer.json";
    return fs::exists(json) ? json : model / "vocab.txt";
}

// Encodes every line by the rules of the peer (Hugging Face's tokenizers), so that the peer can compare its own ids
// with these ids. Returns, for each line, the number of ids and then the ids, as integers of 32 bits.
std::string ids_alike(const BenchText& text, const WordPiece& tokenizer) {
    WordPiece::Options rules = tokenizer.options();
    if (rules.rules == Rules::google) rules.rules = Rules::hugging_face, rules.max_word = 100;
    const WordPiece alike(tokenizer.vocabulary(), rules, tokenizer.added());
    Encoder encoder(alike);
    Tokens ids;
    for (std::string_view line : text.lines) {
        const std::size_t begin = ids.size();
        ids.push_back(0);
        encoder.append(line, ids);
        ids[begin] = ids.size() - begin - 1;
    }
    return std::string(reinterpret_cast<const char*>(ids.data()), 4 * ids.size());
}

void run(Bench& bench, const CaseOptions& o) {
    if (bench.common.device != Device::cpu)
        throw Error("--device cuda: bench tokenizer has no work for a GPU; leave the option out");
    const SharedFolder folder;
    BenchText text;
    read_bench_text(o.texts, text);
    const std::string file = vocabulary_file(o, text, folder);
    HuggingFace read =
        read_tokenizer(o.vocabulary.empty() ? file : o.vocabulary, o.cased ? std::optional(true) : std::nullopt);
    for (const std::string& note : read.notes) log_line("note: ", o.vocabulary, ": ", note);
    const WordPiece tokenizer = tokenizer_of(std::move(read));
    std::vector<Tokens> ids;
    std::size_t tokens = 0;
    for (std::string_view line : text.lines) {
        ids.push_back(tokenizer.encode(line));
        tokens += ids.back().size();
    }
    const WordPiece::Options& rules = tokenizer.options();
    const std::string vocabulary = printable(o.vocabulary);
    bench.begin(
        {{"text",
          {{"name", text.name}, {"lines", text.lines.size()}, {"bytes", text.bytes.size()}, {"tokens", tokens}}},
         {"vocabulary", {{"file", vocabulary}, {"tokens", tokenizer.vocabulary().size()}, {"lower", rules.lower}}}},
        fmt::format("text        {}: {} lines, {} MB, {:.2f} M tokens\nvocabulary  {}: {} tokens, {}\n", text.name,
                    text.lines.size(), figures(text.megabytes()), double(tokens) / 1e6,
                    vocabulary.empty() ? "learned from it" : vocabulary, tokenizer.vocabulary().size(),
                    rules.lower ? "lower case" : "cased"));

    Json about;  // what the peer (Hugging Face's tokenizers) needs to do the same work
    if (bench.options.turns)
        about = {{"text", folder.write("text", text.bytes)},
                 {"ids", folder.write("ids", ids_alike(text, tokenizer))},
                 {"vocabulary", file},
                 {"recognise", rules.recognise_special},
                 {"normalizer",
                  {{"lowercase", rules.lower},
                   {"clean_text", rules.clean},
                   {"handle_chinese_chars", rules.split_ideographs},
                   {"strip_accents", rules.strips()}}}};
    auto measure = [&](const std::string& name, const char* work, int count, const std::function<void()>& call) {
        const bool loads = work == std::string("load");
        call();  // warm-up, not timed
        about["work"] = work;
        bench.measure({{"name", name},
                       {"amount", loads ? 1 : text.megabytes()},
                       {"unit", loads ? "files" : "MB"},
                       {"threads", count}},
                      about, [&] { return seconds_of(call); });
    };
    auto expect = [&](std::size_t found) {
        if (found != tokens) throw Error(masquerade::text(found, " tokens where encoding line by line gave ", tokens));
    };
    auto encode = [&](auto& into) {
        into.clear();
        Encoder encoder(tokenizer);
        for (std::string_view line : text.lines) encoder.append(line, into);
        expect(into.size());
    };
    const std::set<int> counts = {1, threads()};
    Tokens all;
    std::vector<Piece> pieces;
    measure("encode", "encode", 1, [&] { encode(all); });
    measure("encode with offsets", "pieces", 1, [&] { encode(pieces); });
    constexpr std::size_t part = 1000;  // lines that a thread encodes at a time
    const std::size_t parts = (text.lines.size() + part - 1) / part;
    std::vector<Tokens> of_parts(parts);
    for (int n : counts)
        if (n > 1)
            measure("encode, " + counted(n, "thread"), "encode", n, [&] {
                share_out(n, parts, [&] {
                    return [&, encoder = Encoder(tokenizer)](std::size_t p) mutable {
                        of_parts[p].clear();
                        for (std::size_t i = p * part; i < std::min((p + 1) * part, text.lines.size()); i++)
                            encoder.append(text.lines[i], of_parts[p]);
                    };
                });
                std::size_t found = 0;
                for (const Tokens& some : of_parts) found += some.size();
                expect(found);
            });
    measure("decode", "decode", 1, [&] {
        for (const Tokens& line : ids) seen = seen + tokenizer.decode(line).size();
    });
    for (int n : counts)
        measure("train 8000, " + counted(n, "thread"), "train", n,
                [&] { seen = seen + std::size_t(train_on(text.bytes, rules, n).size()); });
    measure("load vocabulary", "load", 1,
            [&] { seen = seen + std::size_t(tokenizer_of(read_tokenizer(file)).vocabulary().size()); });
}

}  // namespace

RunCase tokenizer_case(Options& app) {
    auto o = std::make_shared<CaseOptions>();
    app.input("--text", o->texts, "FILE", "text, one sentence a line; several may be given (default: corpus/)");
    app.input("--vocab", o->vocabulary, "FILE", "vocab.txt, tokenizer.json or their folder (default: learned)");
    app.flag("--cased", o->cased, "keep upper case and accents");
    return [o](Bench& bench) { run(bench, *o); };
}

}  // namespace masquerade
