// SPDX-License-Identifier: MIT
// Tasks about text files, which are read as bytes or as the tokens of a vocabulary. In the first task, each subfolder
// of the task's folder is a class, and a text is to be classified. One file in ten is held out, chosen by a hash of the
// file's name and its folder's name. In the second task, there are two subfolders, and the question is whether a text
// of the one and a text of the other have the same file name (the retrieval task of Long Range Arena). One name in ten
// is held out.
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

// Returns the paths in a folder, sorted. Skips hidden names such as .git, .DS_Store and .ipynb_checkpoints.
std::set<fs::path> sorted(const fs::path& folder) {
    std::set<fs::path> names;
    for (const fs::path& name : fs::directory_iterator(folder))
        if (name.filename().string()[0] != '.') names.insert(name);
    return names;
}

std::string bytes_of(const std::string& path) { return read_input<BadInput>(path, SIZE_MAX - 1); }

// The base class of both tasks. An Item, from which an example is made, is a File or a Pair. It has a member `order`
// and a function each(use), which calls use(path) for the path of each of its files.
template <class Item>
class FileTask : public Examples {
  public:
    ReadCounts counts() const override {
        if (!words_) return counts_;
        const WordCounter words(reader_->vocabulary());
        ReadCounts all;
        for_each_path([&](const std::string& path) {
            const Sentence s = sentence_of(bytes_of(path));
            all.lines++, all.cut += s.cut;
            words.add(s.ids, all);
        });
        return all;
    }
    std::uint64_t hash() const override { return hash_ >> 2; }  // a checkpoint stores only numbers below 2^62
    std::uint64_t contents() const override {
        if (contents_ != 0) return contents_;
        contents_ = hash_;
        for_each_path(
            [&](const std::string& path) { contents_ = hash_of(text(contents_, ":", hash_of(bytes_of(path)))); });
        return contents_;
    }

  protected:
    // `tokens` is the maximum number of tokens of a text that is read as words, with [CLS] and [SEP].
    FileTask(const TaskOptions& options, std::uint64_t seed, const WordPiece* reader, int tokens)
        : max_length_(options.max_length),
          tokens_(tokens),
          seed_(seed),
          words_(options.reads_words()),
          reader_(words_ ? reader : nullptr) {
        name = options.task;
        mask = "A full";
    }
    // Adds an item. `named` is the name by which it is held out, or not.
    void add(const std::string& named, Item item) {
        item.order = make_stream(0, named, 0).key0;
        item.each([&](const std::string& path) {
            counts_.lines++, counts_.cut += fs::file_size(path) > std::uintmax_t(max_length_);
        });
        (item.order % 10 == 0 ? held_out_ : train_).push_back(std::move(item));
    }
    // Sorts the items, and sets the vocabulary and the ids of the answers. Throws BadInput if the vocabulary of the
    // reader lacks an answer.
    void complete(const WordList& answers) {
        for (std::vector<Item>* part : {&train_, &held_out_}) std::sort(part->begin(), part->end());
        if (reader_) {
            for (const std::string& answer : answers) {
                answers_.push_back(reader_->vocabulary().id(answer));
                if (answers_.back() < 0)
                    throw BadInput("the vocabulary has no ", answer, ", an answer of task ", name,
                                   "; have its folders or the setting paired changed?");
            }
            for (int id = 0; id < reader_->vocabulary().size(); id++)
                vocabulary.emplace_back(reader_->vocabulary().token(id));
            return;
        }
        for (int i = 0; i < bytes && !words_; i++) vocabulary.push_back("byte" + std::to_string(i));
        for (const std::string& answer : answers) {
            answers_.push_back(first_word + int(vocabulary.size()));
            vocabulary.push_back(answer);
        }
    }
    Sentence sentence_of(const std::string& text) const { return encode_lines(*reader_, {text}, tokens_)[0]; }
    // Appends the tokens of the first max_length_ bytes of `text`.
    void append_bytes(const std::string& text, Tokens& tokens) const {
        for (std::size_t i = 0; i < std::min(text.size(), std::size_t(max_length_)); i++)
            tokens.push_back(first_word + std::uint8_t(text[i]));
    }

    const int max_length_, tokens_;
    const std::uint64_t seed_;
    const bool words_;
    const WordPiece* const reader_;
    Tokens answers_;  // ids of the answers; without meaning if files are read as words and there is no reader
    std::vector<Item> train_, held_out_;
    std::uint64_t hash_ = 0;  // of the names and sizes of all files

  private:
    template <class Use>
    void for_each_path(Use use) const {
        for (const std::vector<Item>* part : {&train_, &held_out_})
            for (const Item& item : *part) item.each(use);
    }

    ReadCounts counts_;                   // of bytes: the number of files, and of those with more than max_length_
    mutable std::uint64_t contents_ = 0;  // 0: not computed yet
};

struct File {
    std::string path;
    int kind;
    std::uint32_t order = 0;
    bool operator<(const File& other) const { return std::tie(order, path) < std::tie(other.order, other.path); }
    template <class Use>
    void each(Use use) const {
        use(path);
    }
};

class FileExamples : public FileTask<File> {
  public:
    FileExamples(const TaskOptions& options, std::uint64_t seed, const WordPiece* reader)
        : FileTask(options, seed, reader, std::max(options.max_length, 3)) {
        longest = words_ ? tokens_ : 1 + max_length_;
        WordList classes;
        for (const fs::path& folder : sorted(name))
            if (fs::is_directory(folder)) add_class(folder, classes);
        classes_ = int(classes.size());
        if (classes_ < 2 || train_.empty() || held_out_.empty())
            throw BadInput(name, " has ", classes_, " classes, ", train_.size(), " files to train on and ",
                           held_out_.size(),
                           " held out; expected a folder of text files for each of two classes or more");
        complete(classes);
        for (const std::string& word : classes) names_.push_back(word.substr(1));
    }

    std::string description() const override {
        constexpr std::size_t most = 10;
        std::vector<int> train(names_.size()), held_out(names_.size());
        for (const File& file : train_) train[std::size_t(file.kind)]++;
        for (const File& file : held_out_) held_out[std::size_t(file.kind)]++;
        std::string all = text(classes_, " classes of files: ");
        for (std::size_t i = 0; i < std::min(names_.size(), most); i++)
            all += text(i > 0 ? ", " : "", names_[i], " ", train[i], " to train on and ", held_out[i], " held out");
        return names_.size() > most ? text(all, " and ", names_.size() - most, " more") : all;
    }

    Solved example(std::uint64_t number, bool held_out) const override {
        if (held_out) return read(held_out_.at(number));
        Sequence random(seed_, "examples.train", std::uint32_t(number), std::uint32_t(number >> 32));
        return read(train_[random.below(train_.size())]);
    }
    std::uint64_t held_out() const override { return held_out_.size(); }
    Tokens tokens_of(const std::string& text) const override {
        if (words_) return sentence_of(text).ids;
        Tokens tokens{cls_id};
        append_bytes(text, tokens);
        return tokens;
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
            right += s.answers[0] == answers_[best];
            majority += s.answers[0] == answers_[most];
        }
        return {{"majority", "the most frequent answer", majority / double(asked.size())},
                {"bigrams", text("naive Bayes over pairs of ", words_ ? "tokens" : "bytes"),
                 right / double(asked.size())}};
    }

  private:
    static std::uint64_t pair(const Solved& s, std::size_t i) {
        return std::uint64_t(s.tokens[i - 1]) << 32 | std::uint64_t(s.tokens[i]);
    }
    void add_class(const fs::path& folder, WordList& classes) {
        const std::string word = "=" + folder.filename().string();
        if (word.find_first_of("\r\n") != word.npos)
            throw BadInput(
                text(folder.string(), " has a line end in its name, which is a line of vocab.txt; rename the folder"));
        const int kind = int(classes.size());
        classes.push_back(word);
        const std::size_t before = train_.size() + held_out_.size();
        for (const fs::path& file : sorted(folder)) {
            if (!fs::is_regular_file(file)) continue;
            const std::string named = (folder.filename() / file.filename()).string();
            hash_ = hash_of(text(hash_, named, ":", fs::file_size(file)));
            add(named, {file.string(), kind});
        }
        if (train_.size() + held_out_.size() == before)
            throw BadInput(
                text(folder.string(), " is a class without a file; expected text files in it, or no such folder"));
    }

    Solved read(const File& file) const { return {tokens_of(bytes_of(file.path)), {0}, {answers_[file.kind]}}; }

    int classes_ = 0;
    WordList names_;  // of the classes
};

struct Pair {
    std::string first, second;
    std::uint32_t order = 0;
    bool operator<(const Pair& other) const { return std::tie(order, first) < std::tie(other.order, other.first); }
    template <class Use>
    void each(Use use) const {
        use(first), use(second);
    }
};

// An example of the second task is [CLS] text [SEP] text [SEP]. Half of the examples are two texts of the same name.
class PairedExamples : public FileTask<Pair> {
  public:
    PairedExamples(const TaskOptions& options, std::uint64_t seed, const WordPiece* reader)
        : FileTask(options, seed, reader, options.max_length + 2) {
        longest = 3 + 2 * max_length_;
        std::vector<fs::path> folders;
        for (const fs::path& folder : sorted(name))
            if (fs::is_directory(folder)) folders.push_back(folder);
        if (folders.size() == 2)
            for (const fs::path& file : sorted(folders[0])) add_pair(file, folders[1] / file.filename());
        if (folders.size() != 2 || train_.size() < 2 || held_out_.size() < 2)
            throw BadInput(name, " has ", folders.size(), " folders, and ", train_.size(),
                           " file names in both to train on and ", held_out_.size(), " held out; paired=true ",
                           "expects two folders, and in each part two file names or more that both folders have");
        complete({"=other", "=same"});
    }

    Solved example(std::uint64_t number, bool held_out) const override {
        const std::vector<Pair>& part = held_out ? held_out_ : train_;
        Sequence random(held_out ? 0 : seed_, held_out ? "examples.held_out" : "examples.train", std::uint32_t(number),
                        std::uint32_t(number >> 32));
        const std::size_t n = part.size(), one = held_out ? number / 2 : random.below(std::uint32_t(n));
        const bool same = held_out ? number % 2 : random.below(2);
        const std::size_t other = (one + 1 + random.below(std::uint32_t(n - 1))) % n;
        return read(part.at(one).first, part[same ? one : other].second, same);
    }
    std::uint64_t held_out() const override { return 2 * held_out_.size(); }
    std::string description() const override {
        return text(train_.size(), " pairs of files to train on, ", held_out_.size(), " held out");
    }

    // The baseline "overlap" answers "=same" if the share of common pairs of neighbouring tokens, among those of either
    // text, is above the threshold that is best on 2,000 training examples.
    std::vector<Baseline> baselines(const std::vector<Solved>& asked) const override {
        std::vector<std::pair<double, bool>> known;
        for (std::uint64_t i = 0; i < 2000; i++) {
            const Solved s = example(i, false);
            known.emplace_back(overlap(s), is_same(s));
        }
        std::sort(known.begin(), known.end());
        // right: number of right answers if exactly the first i examples are answered by "=other"
        double right = std::count_if(known.begin(), known.end(), [](const auto& k) { return k.second; });
        double best = right, threshold = -1, majority = right;
        for (std::size_t i = 0; i < known.size(); i++) {
            right += known[i].second ? -1 : 1;
            if (right <= best || (i + 1 < known.size() && known[i + 1].first == known[i].first)) continue;
            best = right, threshold = known[i].first;
        }
        const bool most = 2 * majority >= double(known.size());
        double by_overlap = 0, by_majority = 0;
        for (const Solved& s : asked) {
            by_overlap += (overlap(s) > threshold) == is_same(s);
            by_majority += most == is_same(s);
        }
        return {{"majority", "the most frequent answer", by_majority / double(asked.size())},
                {"overlap", text("from the share of common pairs of ", words_ ? "tokens" : "bytes"),
                 by_overlap / double(asked.size())}};
    }

  private:
    void add_pair(const fs::path& first, const fs::path& second) {
        if (!fs::is_regular_file(first) || !fs::is_regular_file(second)) return;
        const std::string named = first.filename().string();
        hash_ = hash_of(text(hash_, named, ":", fs::file_size(first), ":", fs::file_size(second)));
        add(named, {first.string(), second.string()});
    }

    Solved read(const std::string& first, const std::string& second, bool same) const {
        Solved s{{words_ ? reader_->vocabulary().cls() : cls_id}, {0}, {answers_[same]}};
        for (const std::string& path : {first, second}) {
            if (words_) {
                const Tokens ids = sentence_of(bytes_of(path)).ids;
                s.tokens.insert(s.tokens.end(), ids.begin() + 1, ids.end());
            } else {
                append_bytes(bytes_of(path), s.tokens);
                s.tokens.push_back(sep_id);
            }
        }
        return s;
    }

    bool is_same(const Solved& s) const { return s.answers[0] == answers_[1]; }
    double overlap(const Solved& s) const {
        const int sep = words_ ? reader_->vocabulary().sep() : sep_id;
        const auto middle = std::find(s.tokens.begin(), s.tokens.end(), sep);
        const auto pairs = [](auto begin, auto end) {
            std::set<std::uint64_t> all;
            for (auto i = begin; i != end && i + 1 != end; ++i)
                all.insert(std::uint64_t(*i) << 32 | std::uint64_t(*(i + 1)));
            return all;
        };
        const auto one = pairs(s.tokens.begin() + 1, middle), two = pairs(middle + 1, s.tokens.end() - 1);
        double common = 0;
        for (std::uint64_t each : one) common += double(two.count(each));
        return common / std::max(1.0, double(one.size() + two.size()) - common);
    }
};

}  // namespace

std::unique_ptr<Examples> open_paired_files(const TaskOptions& options, std::uint64_t seed, const WordPiece* reader) {
    return std::make_unique<PairedExamples>(options, seed, reader);
}

std::unique_ptr<Examples> open_files(const TaskOptions& options, std::uint64_t seed, const WordPiece* reader) {
    return std::make_unique<FileExamples>(options, seed, reader);
}

}  // namespace masquerade
