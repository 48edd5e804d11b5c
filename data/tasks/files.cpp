// SPDX-License-Identifier: MIT
// The task of classifying text files, which are read as bytes. Each folder is a class. One file in ten is held out,
// chosen by a hash of the file's name and its folder's name.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <tuple>

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
    FileExamples(const TaskOptions& options, std::uint64_t seed) : max_length_(options.max_length), seed_(seed) {
        name = options.task;
        mask = "A full";
        longest = 1 + max_length_;
        for (int i = 0; i < bytes; i++) vocabulary.push_back("byte" + std::to_string(i));
        for (const fs::path& folder : sorted(name))
            if (fs::is_directory(folder)) add(folder, classes_++);
        if (classes_ < 2 || train_.empty() || held_out_.empty())
            throw BadInput(text(name, " has ", classes_, " classes, ", train_.size(), " files to train on and ",
                                held_out_.size(),
                                " held out; expected a folder of text files for each of two classes or more"));
        for (std::vector<File>* part : {&train_, &held_out_}) std::sort(part->begin(), part->end());
    }

    Solved example(std::uint64_t number, bool held_out) const override {
        if (held_out) return read(held_out_.at(std::size_t(number)));
        Sequence random(seed_, "examples.train", std::uint32_t(number), std::uint32_t(number >> 32));
        return read(train_[random.below(std::uint32_t(train_.size()))]);
    }
    std::uint64_t held_out() const override { return held_out_.size(); }
    std::uint64_t hash() const override { return hash_ >> 2; }  // a checkpoint stores only numbers below 2^62
    std::uint64_t contents() const override {
        if (contents_ != 0) return contents_;
        contents_ = hash_;
        for (const std::vector<File>* part : {&train_, &held_out_})
            for (const File& file : *part) contents_ = hash_of(text(contents_, ":", hash_of(bytes_of(file))));
        return contents_;
    }

    // The baseline "bigrams" is naive Bayes with add-one smoothing. It chooses the class c with the largest sum of
    // log P(c) and, over all pairs of neighbouring bytes, of log P(pair | c).
    std::vector<Baseline> baselines(const std::vector<Solved>& asked) const override {
        const auto n = std::size_t(classes_);
        std::vector<std::vector<double>> pairs(n, std::vector<double>(bytes * bytes, 1));
        std::vector<double> total(n, bytes * bytes), files_of(n, 0);
        for (const File& file : train_) {
            const Solved s = read(file);
            const auto kind = std::size_t(file.kind);
            for (std::size_t i = 2; i < s.tokens.size(); i++, total[kind]++) pairs[kind][pair(s, i)]++;
            files_of[kind]++;
        }
        const auto most = std::max_element(files_of.begin(), files_of.end()) - files_of.begin();
        double right = 0, majority = 0;
        for (const Solved& s : asked) {
            std::vector<double> score(n);
            for (std::size_t k = 0; k < n; k++) {
                score[k] = std::log(files_of[k] / double(train_.size()));
                for (std::size_t i = 2; i < s.tokens.size(); i++) score[k] += std::log(pairs[k][pair(s, i)] / total[k]);
            }
            const auto best = std::max_element(score.begin(), score.end()) - score.begin();
            right += s.answers[0] == first_word + bytes + int(best);
            majority += s.answers[0] == first_word + bytes + int(most);
        }
        return {{"majority", "the most frequent answer", majority / double(asked.size())},
                {"bigrams", "naive Bayes over pairs of bytes", right / double(asked.size())}};
    }

  private:
    static std::size_t pair(const Solved& s, std::size_t i) {
        return std::size_t((s.tokens[i - 1] - first_word) * bytes + s.tokens[i] - first_word);
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
            files++, cut += fs::file_size(file) > std::uintmax_t(max_length_);
            const std::uint32_t order = make_stream(0, named, 0).key0;
            (order % 10 == 0 ? held_out_ : train_).push_back({order, file.string(), kind});
        }
        if (train_.size() + held_out_.size() == before)
            throw BadInput(
                text(folder.string(), " is a class without a file; expected text files in it, or no such folder"));
    }

    static std::string bytes_of(const File& file) { return read_input<BadInput>(file.path, SIZE_MAX - 1); }

    Solved read(const File& file) const {
        Solved s{{cls_id}, {0}, {first_word + bytes + file.kind}};
        for (char c : bytes_of(file)) {
            if (int(s.tokens.size()) == longest) break;
            s.tokens.push_back(first_word + int(static_cast<unsigned char>(c)));
        }
        return s;
    }

    const int max_length_;
    const std::uint64_t seed_;
    int classes_ = 0;
    std::vector<File> train_, held_out_;
    std::uint64_t hash_ = 0;
    mutable std::uint64_t contents_ = 0;  // 0: not computed yet
};

}  // namespace

std::unique_ptr<Examples> open_files(const TaskOptions& options, std::uint64_t seed) {
    return std::make_unique<FileExamples>(options, seed);
}

}  // namespace masquerade
