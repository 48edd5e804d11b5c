// SPDX-License-Identifier: MIT
// ./bench tokenizer: encoding, decoding and training, beside Hugging Face tokenizers.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "engine/ops/cpu/parallel.h"
#include "tokenizer/hugging_face/hugging_face.h"
#include "tools/bench/case.h"
#include "tools/bench/machine.h"
#include "tools/bench/measure.h"
#include "tools/bench/progress.h"
#include "tools/bench/tokenizer_peers.h"
#include "tools/bench/tokenizer_work.h"

namespace masquerade {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Arguments {
    std::vector<std::string> texts;
    std::string vocabulary, peer;
    bool cased = false, json = false;
    int repeats = 5;
};

class Measurement {
  public:
    explicit Measurement(const Arguments& arguments)
        : a_(arguments),
          text_(read_bench_text(a_.texts)),
          tokenizer_(open()),
          peers_(a_.peer, text_, vocabulary_file(), tokenizer_.options()) {}

    void run() {
        std::vector<TokenizerWork> all = tokenizer_work(text_, tokenizer_, path_, threads());
        describe(this_machine());
        describe_inputs(all.front().row.tokens);
        try {
            ask_peer([&] { describe_peer(); });
            if (!a_.json) fmt::print("\n{}", table_head(peers_.here()));
            for (TokenizerWork& work : all) measure(work);
            json_["complete"] = true;
        } catch (const Stopped&) {
            json_["complete"] = false;
            show_progress("");
            log_line("note: stopped as asked; the rows that are there are whole");
        }
        if (a_.json)
            fmt::print("{}\n", json_.dump(2));
        else if (!calls_.empty())
            fmt::print("\nthe peer's fastest calls\n{}", calls_);
        if (!peer_error_.empty()) throw PeerError(peer_error_);
    }

  private:
    WordPiece open() {
        if (a_.vocabulary.empty()) {
            WordPiece::Options options;
            options.lower = !a_.cased;
            Vocabulary learned = train_on(text_.once(), options, threads());
            std::string bytes;
            for (int id = 0; id < learned.size(); id++) bytes += learned.token(id) + '\n';
            learned_.emplace(bytes);
            path_ = learned_->path();
            return WordPiece(std::move(learned), std::move(options));
        }
        path_ = a_.vocabulary;
        HuggingFace read = read_tokenizer(path_);
        for (const std::string& note : read.notes) log_line("note: ", path_, ": ", note);
        if (a_.cased) {
            if (fs::is_directory(path_) || fs::path(path_).extension() == ".json")
                throw BadUsage(path_ + " says itself what becomes of upper case; --cased is for a vocab.txt");
            read.options.lower = false;
        }
        return WordPiece(std::move(read.vocabulary), std::move(read.options), std::move(read.added));
    }

    // The file of a model's folder that read_tokenizer takes.
    std::string vocabulary_file() const {
        if (!fs::is_directory(path_)) return path_;
        const std::string json = path_ + "/tokenizer.json";
        return fs::exists(json) ? json : path_ + "/vocab.txt";
    }

    // A line of the head.
    template <class... Parts>
    void print(const char* label, const char* format, const Parts&... parts) {
        if (!a_.json) fmt::print("{:<12}{}\n", label, fmt::format(fmt::runtime(format), parts...));
        std::fflush(stdout);
    }

    void describe(const Machine& m) {
        print("machine", "{}, {} threads, {}", m.processor, m.threads, m.instructions);
        print("program", "masquerade {}{}{}; load of the machine {:.1f}", version,
              m.commit.empty() ? "" : ", commit ", m.commit, m.load);
        if (!m.optimised) log_line("warning: a debug or sanitizer build: its speed says nothing");
        json_.update(json_head("tokenizer", Device::cpu, m));
    }

    void describe_inputs(double tokens) {
        const int size = tokenizer_.vocabulary().size();
        const bool lower = tokenizer_.options().lower;
        const std::string file = fs::path(a_.vocabulary).filename();
        print("text", "{}{}: {} lines, {} MB, {} M tokens", fs::path(text_.name).filename().string(),
              text_.copies > 1 ? fmt::format(", {} times", text_.copies) : "", text_.lines.size(),
              figures(text_.megabytes()), figures(tokens / 1e6));
        print("vocabulary", "{}: {} tokens, {}", file.empty() ? "learned from it" : file, size,
              lower ? "lower case" : "cased");
        json_["text"] = {{"name", text_.name},
                         {"copies", text_.copies},
                         {"lines", text_.lines.size()},
                         {"bytes", text_.bytes.size()},
                         {"tokens", std::int64_t(tokens)}};
        json_["vocabulary"] = {{"file", a_.vocabulary}, {"tokens", size}, {"lower", lower}};
        json_["rows"] = Json::array();
    }

    // The peer, and whether the tokenizer gives the same ids by the peer's rules.
    void describe_peer() {
        print("peer", "Hugging Face tokenizers {}", peers_.version());
        show_progress("comparing ids");
        WordPiece::Options theirs = tokenizer_.options();
        if (theirs.rules == Rules::google) theirs.rules = Rules::hugging_face, theirs.max_word = 100;
        const IdComparison ids =
            compare_ids(text_, WordPiece(tokenizer_.vocabulary(), theirs, tokenizer_.added()), peers_.ids());
        show_progress("");
        if (ids.different == 0)
            print("ids", "equal to the peer's in every line, by its rules: {} tokens", ids.theirs);
        else
            print("ids", "NOT the peer's: {} lines differ, first line {}; {} tokens, peer {}", ids.different,
                  ids.first_line, ids.ours, ids.theirs);
        json_["peer"] = {{"name", "Hugging Face tokenizers"}, {"version", peers_.version()}};
        json_["ids"] = {{"tokens", ids.ours},
                        {"peer_tokens", ids.theirs},
                        {"different_lines", ids.different},
                        {"first_different_line", ids.first_line}};
    }

    void measure(TokenizerWork& work) {
        Row& row = work.row;
        nlohmann::json call;
        ask_peer([&] {
            show_progress(row.label + ": trying the peer's calls");
            call = peers_.choose(work.peer_work, work.threads);
        });
        for (int i = 0; i < a_.repeats; i++) {
            show_progress(fmt::format("{}: {} of {}", row.label, i + 1, a_.repeats));
            if (stop_requested()) throw Stopped{};
            if (i == 0) work.run();  // fills caches and memory; the choice of a call did so for the peer
            row.ours.push_back(seconds_of(work.run));
            ask_peer([&] { row.peer.push_back(peers_.run(work.peer_work, work.threads)); });
        }
        show_progress("");
        if (!peers_.here()) row.peer.clear();
        if (!a_.json) fmt::print("{}", table_line(row));
        std::fflush(stdout);
        Json json = json_of(row);
        json["threads"] = work.threads;
        if (!row.peer.empty()) {
            json["peer"].update(call);
            calls_ += fmt::format("{:<22}{}\n", row.label, call.at("call").get<std::string>());
        }
        json_["rows"].push_back(json);
    }

    // Where the peer fails, ours is measured on alone, and the error told at the end.
    template <class Ask>
    void ask_peer(Ask ask) {
        if (!peers_.here()) return;
        try {
            ask();
        } catch (const PeerError& error) {
            peer_error_ = error.what();
        } catch (const nlohmann::json::exception& error) {
            peer_error_ = text("the peer's answer is not what was asked for: ", error.what());
        }
        if (!peer_error_.empty()) peers_.give_up();
    }

    const Arguments& a_;
    BenchText text_;
    std::optional<SharedFile> learned_;
    std::string path_;  // of the vocabulary
    WordPiece tokenizer_;
    TokenizerPeers peers_;
    Json json_;
    std::string calls_, peer_error_;
};

class TokenizerCase : public BenchCase {
  public:
    TokenizerCase() : BenchCase("tokenizer", "encoding, decoding and training of WordPiece") {}

    void add_options(CLI::App& app) override {
        app.add_option("--text", a_.texts,
                       "text, one sentence a line; several may be given (default: corpus/)")
            ->option_text("FILE");
        app.add_option("--vocab", a_.vocabulary,
                       "vocab.txt, tokenizer.json or a model's folder (default: learned)")
            ->option_text("FILE");
        app.add_flag("--cased", a_.cased, "keep upper case and accents (with a vocab.txt)");
        app.add_option("--repeats", a_.repeats, "runs of each; the table has their median (default: 5)")
            ->check(CLI::Range(1, 1000))
            ->option_text("N");
        app.add_option("--peer", a_.peer, "a Python that has tokenizers, or none (default: looked for)")
            ->option_text("PYTHON");
        app.add_flag("--json", a_.json, "the same as JSON, with the seconds of each run");
    }

    void run(const Common& common) override {
        if (common.device != Device::cpu)
            throw Error("--device cuda: bench tokenizer has no work for a GPU; leave the option out");
        stop_requested();  // from here on Ctrl-C asks
        try {
            Measurement(a_).run();
        } catch (const Stopped&) {
            log_line("note: stopped as asked");
        }
    }

  private:
    Arguments a_;
};

}  // namespace

std::unique_ptr<BenchCase> tokenizer_case() { return std::make_unique<TokenizerCase>(); }

}  // namespace masquerade
