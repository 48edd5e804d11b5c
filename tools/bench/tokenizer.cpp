// SPDX-License-Identifier: MIT
// ./bench tokenizer: encoding, decoding and training of WordPiece.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "tokenizer/hugging_face/hugging_face.h"
#include "tools/bench/measure.h"
#include "tools/bench/memory.h"
#include "tools/bench/tokenizer_work.h"

namespace masquerade {
namespace {

namespace fs = std::filesystem;

constexpr const char* columns = "{:<22}{:>7}{:>14}{:>8}\n";

class TokenizerCase : public BenchCase {
  public:
    TokenizerCase()
        : BenchCase("tokenizer", "encoding, decoding and training of WordPiece", "Hugging Face's tokenizers") {}

    void add_options(CLI::App& app) override {
        app.add_option("--text", texts_, "text, one sentence a line; several may be given (default: corpus/)")
            ->option_text("FILE");
        app.add_option("--vocab", vocabulary_,
                       "vocab.txt, tokenizer.json or a model's folder (default: learned)")
            ->option_text("FILE");
        app.add_flag("--cased", cased_, "keep upper case and accents (with a vocab.txt)");
    }

    void run(Session& session) override {
        if (session.common.device != Device::cpu)
            throw Error("--device cuda: bench tokenizer has no work for a GPU; leave the option out");
        const BenchText text = read_bench_text(texts_);
        const WordPiece tokenizer = open(text);
        const std::vector<TokenizerWork> all = tokenizer_work(text, tokenizer, path_, threads());
        begin(session, text, tokenizer, std::int64_t(all.front().tokens));
        tell(session, text, tokenizer);
        for (const TokenizerWork& work : all) measure(session, work);
    }

  private:
    WordPiece open(const BenchText& text) {
        if (vocabulary_.empty()) {
            WordPiece::Options options;
            options.lower = !cased_;
            Vocabulary learned = train_on(text.once(), options, threads());
            std::string bytes;
            for (int id = 0; id < learned.size(); id++) bytes += learned.token(id) + '\n';
            path_ = learned_.emplace(bytes).path();
            return WordPiece(std::move(learned), std::move(options));
        }
        path_ = vocabulary_;
        HuggingFace read = read_tokenizer(path_);
        for (const std::string& note : read.notes) log_line("note: ", path_, ": ", note);
        if (cased_) {
            if (fs::is_directory(path_) || fs::path(path_).extension() == ".json")
                throw BadUsage(path_ + " says itself what becomes of upper case; --cased is for a vocab.txt");
            read.options.lower = false;
        }
        return WordPiece(std::move(read.vocabulary), std::move(read.options), std::move(read.added));
    }

    void begin(Session& session, const BenchText& text, const WordPiece& tokenizer, std::int64_t tokens) const {
        const int size = tokenizer.vocabulary().size();
        const bool lower = tokenizer.options().lower;
        const std::string file = fs::path(vocabulary_).filename();
        session.begin("rows",
                      {{"text",
                        {{"name", text.name},
                         {"copies", text.copies}, {"lines", text.lines.size()}, {"bytes", text.bytes.size()},
                         {"tokens", tokens}}},
                       {"vocabulary", {{"file", vocabulary_}, {"tokens", size}, {"lower", lower}}}},
                      fmt::format("text        {}{}: {} lines, {} MB, {} M tokens\n"
                                  "vocabulary  {}: {} tokens, {}\n\n",
                                  fs::path(text.name).filename().string(),
                                  text.copies > 1 ? fmt::format(", {} times", text.copies) : "", text.lines.size(),
                                  figures(text.megabytes()), figures(double(tokens) / 1e6),
                                  file.empty() ? "learned from it" : file, size, lower ? "lower case" : "cased") +
                          fmt::format(fmt::runtime(columns), "", "MB/s", "range", "Mtok/s"));
    }

    // The text, the vocabulary and its options, and every line's ids by the other program's rules: how many, then those.
    void tell(Session& session, const BenchText& text, const WordPiece& tokenizer) {
        if (!session.options.turns) return;
        const WordPiece::Options& o = tokenizer.options();
        WordPiece::Options rules = o;
        if (rules.rules == Rules::google) rules.rules = Rules::hugging_face, rules.max_word = 100;
        const WordPiece alike(tokenizer.vocabulary(), rules, tokenizer.added());
        Encoder encoder(alike);
        std::vector<int> ids, line;
        for (std::string_view one : text.lines) {
            line.clear();
            encoder.append(one, line);
            ids.push_back(int(line.size()));
            ids.insert(ids.end(), line.begin(), line.end());
        }
        lines_.emplace(text.bytes);
        ids_.emplace(std::string_view(reinterpret_cast<const char*>(ids.data()), 4 * ids.size()));
        std::string file = path_;  // of a model's folder that which read_tokenizer takes
        if (fs::is_directory(path_))
            file += fs::exists(path_ + "/tokenizer.json") ? "/tokenizer.json" : "/vocab.txt";
        session.start({{"text", lines_->path()}, {"ids", ids_->path()}, {"bytes", text.bytes.size()},
                       {"vocabulary", fs::absolute(file).string()}, {"recognise", o.recognise_special},
                       {"normalizer",
                        {{"lowercase", o.lower},
                         {"clean_text", o.clean}, {"handle_chinese_chars", o.split_ideographs},
                         {"strip_accents", o.strips()}}}});
    }

    static void measure(Session& session, const TokenizerWork& work) {
        session.start({{"work", work.beside}, {"threads", work.threads}, {"label", work.label}});
        work.run();  // fills caches and memory
        const auto runs = session.in_turns(work.label, {[&] { return seconds_of(work.run); }})[0];
        const Spread seconds = spread_of(runs);
        Json ours = {{"seconds", {{"median", seconds.median}, {"least", seconds.least}, {"most", seconds.most}}},
                     {"runs", runs}};
        if (work.bytes > 0) ours["mb_per_second"] = work.bytes / 1e6 / seconds.median;
        if (work.tokens > 0) ours["million_tokens_per_second"] = work.tokens / 1e6 / seconds.median;
        const Spread s = work.bytes > 0
                             ? rate_of(work.bytes / 1e6, seconds)
                             : Spread{1e3 * seconds.median, 1e3 * seconds.least, 1e3 * seconds.most};
        session.add({{"name", work.key}, {"bytes", std::int64_t(work.bytes)},
                     {"tokens", std::int64_t(work.tokens)}, {"ours", ours}, {"threads", work.threads}},
                    {fmt::format(fmt::runtime(columns), work.label + (work.bytes > 0 ? "" : ", ms"),
                                 figures(s.median), figures(s.least) + " - " + figures(s.most),
                                 work.tokens > 0 ? figures(work.tokens / 1e6 / seconds.median) : "-")});
    }

    std::vector<std::string> texts_;
    std::string vocabulary_, path_;  // path_: of what is read, learned or not
    bool cased_ = false;
    std::optional<SharedFile> learned_, lines_, ids_;  // a vocabulary; what the other program reads
};

}  // namespace

std::unique_ptr<BenchCase> tokenizer_case() { return std::make_unique<TokenizerCase>(); }

}  // namespace masquerade
