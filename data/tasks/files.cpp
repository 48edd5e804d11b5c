// SPDX-License-Identifier: MIT
// The task of classifying text files, which are read as bytes or as the tokens of a vocabulary. Each subfolder of the
// task's folder is a class. One file in ten is held out, chosen by a hash of the file's name and its folder's name.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <tuple>
#include <unordered_map>

#include "data/sentences.h"
#include "data/tasks/examples.h"
#include "engine/base/error.h"
#include "input/input.h"

namespace masquerade {
namespace {
namespace fs = std::filesystem;

constexpr int bytes = 256;

struct File {
    std::uint32_t order;
    std::string path;
    int kind;
    bool operator<(const File& other) const { return std::tie(order, path) < std::tie(other.order, other.path); }
};

class FileExamples : public Examples {
  public:
    FileExamples(const TaskOptions& options, std::uint64_t seed, const WordPiece* reader)
        : max_length_(options.max_length), seed_(seed), words_(options.reads_words()), reader_(reader) {
        name = options.task;
        mask = "A full";
        longest = words_ ? std::max(max_length_, 3) : 1 + max_length_;
        for (int i = 0; i < bytes && !words_; i++) vocabulary.push_back("byte" + std::to_string(i));
        for (const fs::path& folder : sorted(name))
            if (fs::is_directory(folder)) add(folder, classes_++);
        if (classes_ < 2 || train_.empty() || held_out_.empty())
            throw BadInput(text(name, " has ", classes_, " classes, ", train_.size(), " files to train on and ",
                                held_out_.size(),
                                " held out; expected a folder of text files for each of two classes or more"));
        for (std::vector<File>* part : {&train_, &held_out_}) std::sort(part->begin(), part->end());
        if (!reader_) return;
        for (const std::string& answer : vocabulary) {
            answers_.push_back(reader_->vocabulary().id(answer));
            if (answers_.back() < 0)
                throw BadInput(
                    text("the vocabulary has no ", answer, ", a class of ", name, "; have its folders changed?"));
        }
        vocabulary.clear();
        for (int id = 0; id < reader_->vocabulary().size(); id++) vocabulary.push_back(reader_->vocabulary().token(id));
    }

    Solved example(std::uint64_t number, bool held_out) const override {
        if (held_out) return read(held_out_.at(number));
        Sequence random(seed_, "examples.train", std::uint32_t(number), std::uint32_t(number >> 32));
        return read(train_[random.below(train_.size())]);
    }
    std::uint64_t held_out() const override { return held_out_.size(); }
    std::uint64_t cut() const override {
        if (!words_) return cut_;
        std::uint64_t count = 0;
        for (const std::vector<File>* part : {&train_, &held_out_})
            for (const File& file : *part) count += sentence_of(file).cut;
        return count;
    }
    std::uint64_t hash() const override { return hash_ >> 2; }  // a checkpoint stores only numbers below 2^62
    std::uint64_t contents() const override {
        if (contents_ != 0) return contents_;
        contents_ = hash_;
        for (const std::vector<File>* part : {&train_, &held_out_})
            for (const File& file : *part) contents_ = hash_of(text(contents_, ":", hash_of(bytes_of(file))));
        return contents_;
    }

    // The baseline "bigrams" is naive Bayes with add-one smoothing. It chooses the class c with the largest score: log
    // P(c) plus the sum of log P(pair | c) over all pairs of neighbouring tokens.
    std::vector<Baseline> baselines(const std::vector<Solved>& asked) const override {
        const std::size_t n = classes_;
        const double V = words_ ? double(vocabulary.size()) : bytes;
        std::vector<std::unordered_map<std::uint64_t, double>> pairs(n);
        std::vector<double> total(n, V * V), files_of(n, 0);
        for (const File& file : train_) {
            const Solved s = read(file);
            const int kind = file.kind;
            for (std::size_t i = 2; i < s.tokens.size(); i++, total[kind]++) pairs[kind][pair(s, i)]++;
            files_of[kind]++;
        }
        const auto most = std::max_element(files_of.begin(), files_of.end()) - files_of.begin();
        double right = 0, majority = 0;
        for (const Solved& s : asked) {
            std::vector<double> score(n);
            for (std::size_t k = 0; k < n; k++) {
                score[k] = std::log(files_of[k] / double(train_.size()));
                for (std::size_t i = 2; i < s.tokens.size(); i++) {
                    const auto seen = pairs[k].find(pair(s, i));
                    score[k] += std::log((seen == pairs[k].end() ? 1 : 1 + seen->second) / total[k]);
                }
            }
            const auto best = std::max_element(score.begin(), score.end()) - score.begin();
            right += s.answers[0] == answer(best);
            majority += s.answers[0] == answer(most);
        }
        return {{"majority", "the most frequent answer", majority / double(asked.size())},
                {"bigrams", text("naive Bayes over pairs of ", words_ ? "tokens" : "bytes"),
                 right / double(asked.size())}};
    }

  private:
    int answer(int kind) const { return reader_ ? answers_[kind] : first_word + bytes + kind; }
    static std::uint64_t pair(const Solved& s, std::size_t i) {
        return std::uint64_t(s.tokens[i - 1]) << 32 | std::uint64_t(s.tokens[i]);
    }
    // Returns the paths in a folder, sorted. Skips hidden names such as .git, .DS_Store and .ipynb_checkpoints.
    static std::set<fs::path> sorted(const fs::path& folder) {
        std::set<fs::path> names;
        for (const fs::path& name : fs::directory_iterator(folder))
            if (name.filename().string()[0] != '.') names.insert(name);
        return names;
    }

    void add(const fs::path& folder, int kind) {
        const std::string word = "=" + folder.filename().string();
        if (word.find_first_of("\r\n") != word.npos)
            throw BadInput(
                text(folder.string(), " has a line end in its name, which is a line of vocab.txt; rename the folder"));
        vocabulary.push_back(word);
        const std::size_t before = train_.size() + held_out_.size();
        for (const fs::path& file : sorted(folder)) {
            if (!fs::is_regular_file(file)) continue;
            const std::string named = (folder.filename() / file.filename()).string();
            hash_ = hash_of(text(hash_, named, ":", fs::file_size(file)));
            files++, cut_ += fs::file_size(file) > std::uintmax_t(max_length_);
            const std::uint32_t order = make_stream(0, named, 0).key0;
            (order % 10 == 0 ? held_out_ : train_).push_back({order, file.string(), kind});
        }
        if (train_.size() + held_out_.size() == before)
            throw BadInput(
                text(folder.string(), " is a class without a file; expected text files in it, or no such folder"));
    }

    static std::string bytes_of(const File& file) { return read_input<BadInput>(file.path, SIZE_MAX - 1); }

    Sentence sentence_of(const File& file) const { return encode_lines(*reader_, {bytes_of(file)}, longest)[0]; }

    Solved read(const File& file) const {
        if (words_) return {sentence_of(file).ids, {0}, {answer(file.kind)}};
        Solved s{{cls_id}, {0}, {answer(file.kind)}};
        for (char c : bytes_of(file)) {
            if (int(s.tokens.size()) == longest) break;
            s.tokens.push_back(first_word + std::uint8_t(c));
        }
        return s;
    }

    const int max_length_;
    const std::uint64_t seed_;
    const bool words_;
    const WordPiece* const reader_;
    std::vector<int> answers_;  // ids of the classes in the reader's vocabulary; empty without a reader
    std::uint64_t cut_ = 0;     // number of files with more than max_length_ bytes
    int classes_ = 0;
    std::vector<File> train_, held_out_;
    std::uint64_t hash_ = 0;
    mutable std::uint64_t contents_ = 0;  // 0: not computed yet
};

}  // namespace

std::unique_ptr<Examples> open_files(const TaskOptions& options, std::uint64_t seed, const WordPiece* reader) {
    return std::make_unique<FileExamples>(options, seed, options.reads_words() ? reader : nullptr);
}

}  // namespace masquerade
