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

#include "data/tasks/examples.h"
#include "data/text.h"

namespace masquerade {
namespace {
namespace fs = std::filesystem;

constexpr int bytes = 256;

// Returns the files or the folders in a folder, sorted. Skips hidden names such as .git, .DS_Store and
// .ipynb_checkpoints.
std::set<fs::path> sorted(const fs::path& folder, fs::file_type type) {
    std::set<fs::path> names;
    for (const fs::path& name : fs::directory_iterator(folder))
        if (name.filename().string()[0] != '.' && fs::status(name).type() == type) names.insert(name);
    return names;
}

std::uint64_t bigram(int first, int second) { return std::uint64_t(first) << 32 | std::uint64_t(second); }

// Returns the share of the examples that answer(example) answers correctly.
template <class Answer>
double right(const std::vector<Solved>& asked, Answer answer) {
    const auto count =
        std::count_if(asked.begin(), asked.end(), [&](const Solved& s) { return s.answers[0] == answer(s); });
    return double(count) / double(asked.size());
}

// The files from which an example is made: one file of a class or, in the second task, two files of the same name.
struct Item {
    Strings paths;
    int kind = 0;  // index of the class
    std::uint32_t order = 0;
    bool operator<(const Item& other) const { return std::tie(order, paths) < std::tie(other.order, other.paths); }
};

// The base class of both tasks.
class FileTask : public Examples {
  public:
    ReadCounts counts() const override {
        if (!words_) return counts_;
        const WordCounter words(reader_->vocabulary());
        ReadCounts all;
        for_each_path([&](const std::string& path) {
            const Sentence s = sentence_of(read_bytes(path));
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
            [&](const std::string& path) { contents_ = hash_of(text(contents_, ":", hash_of(read_bytes(path)))); });
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
        for (const std::string& path : item.paths)
            counts_.lines++, counts_.cut += fs::file_size(path) > std::uintmax_t(max_length_);
        (item.order % 10 == 0 ? held_out_ : train_).push_back(std::move(item));
    }
    // Sorts the items, and sets the vocabulary and the ids of the answers, whose tokens are "=" and these names. Throws
    // BadInput if the vocabulary of the reader lacks an answer.
    void complete(const WordList& names) {
        for (std::vector<Item>* part : {&train_, &held_out_}) std::sort(part->begin(), part->end());
        if (!words_) add_numbered(vocabulary, "byte", bytes);
        for (const std::string& word : names) {
            const std::string answer = "=" + word;
            answers_.push_back(reader_ ? reader_->vocabulary().id(answer) : first_word + int(vocabulary.size()));
            if (answers_.back() < 0)
                throw BadInput("the vocabulary has no ", answer, ", an answer of task ", name,
                               "; have its folders or the setting paired changed?");
            if (!reader_) vocabulary.push_back(answer);
        }
        if (reader_) vocabulary = reader_->vocabulary().tokens();
    }
    Sentence sentence_of(const std::string& text) const { return encode_lines(*reader_, {text}, tokens_)[0]; }
    // Returns [CLS] and the tokens of a text and, if it is read as words, [SEP].
    Tokens ids_of(const std::string& text) const {
        if (words_) return sentence_of(text).ids;
        Tokens tokens{cls_id};
        for (const char byte : text.substr(0, max_length_)) tokens.push_back(first_word + std::uint8_t(byte));
        return tokens;
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
            for (const Item& item : *part) std::for_each(item.paths.begin(), item.paths.end(), use);
    }

    ReadCounts counts_;                   // of bytes: the number of files, and of those with more than max_length_
    mutable std::uint64_t contents_ = 0;  // 0: not computed yet
};

class FileExamples : public FileTask {
  public:
    FileExamples(const TaskOptions& options, std::uint64_t seed, const WordPiece* reader)
        : FileTask(options, seed, reader, std::max(options.max_length, 3)) {
        longest = words_ ? tokens_ : 1 + max_length_;
        for (const fs::path& folder : sorted(name, fs::file_type::directory)) add_class(folder);
        if (names_.size() < 2 || train_.empty() || held_out_.empty())
            throw BadInput(name, " has ", names_.size(), " classes, ", train_.size(), " files to train on and ",
                           held_out_.size(),
                           " held out; expected a folder of text files for each of two classes or more");
        complete(names_);
    }

    std::string description() const override {
        constexpr std::size_t most = 10;
        std::vector<int> train(names_.size()), held_out(names_.size());
        for (const Item& file : train_) train[file.kind]++;
        for (const Item& file : held_out_) held_out[file.kind]++;
        std::string all = text(names_.size(), " classes of files: ");
        for (std::size_t i = 0; i < std::min(names_.size(), most); i++)
            all += text(i > 0 ? ", " : "", names_[i], " ", train[i], " to train on and ", held_out[i], " held out");
        return names_.size() > most ? text(all, " and ", names_.size() - most, " more") : all;
    }

    Solved example(std::uint64_t number, bool held_out) const override {
        if (held_out) return read(held_out_.at(number));
        return read(train_[random_of(seed_, "examples", number, false).below(train_.size())]);
    }
    std::uint64_t held_out() const override { return held_out_.size(); }
    Tokens tokens_of(const std::string& text) const override { return ids_of(text); }

    // The baseline "bigrams" is naive Bayes with add-one smoothing. It chooses the class c with the largest score: log
    // P(c) plus the sum of log P(pair | c) over all pairs of neighbouring tokens.
    std::vector<Baseline> baselines(const std::vector<Solved>& asked) const override {
        const std::size_t n = names_.size();
        const double V = words_ ? double(vocabulary.size()) : bytes;
        std::vector<std::unordered_map<std::uint64_t, double>> pairs(n);
        std::vector<double> total(n, V * V), files_of(n, 0);
        for (const Item& file : train_) {
            const Tokens tokens = read(file).tokens;
            const int kind = file.kind;
            for (std::size_t i = 2; i < tokens.size(); i++, total[kind]++)
                pairs[kind][bigram(tokens[i - 1], tokens[i])]++;
            files_of[kind]++;
        }
        const auto most = std::max_element(files_of.begin(), files_of.end()) - files_of.begin();
        const auto by_bigrams = [&](const Solved& s) {
            std::vector<double> score(n);
            for (std::size_t k = 0; k < n; k++) {
                score[k] = std::log(files_of[k] / double(train_.size()));
                for (std::size_t i = 2; i < s.tokens.size(); i++) {
                    const auto seen = pairs[k].find(bigram(s.tokens[i - 1], s.tokens[i]));
                    score[k] += std::log((seen == pairs[k].end() ? 1 : 1 + seen->second) / total[k]);
                }
            }
            return answers_[std::max_element(score.begin(), score.end()) - score.begin()];
        };
        return {{"majority", "the most frequent answer", right(asked, [&](auto&) { return answers_[most]; })},
                {"bigrams", text("naive Bayes over pairs of ", words_ ? "tokens" : "bytes"), right(asked, by_bigrams)}};
    }

  private:
    void add_class(const fs::path& folder) {
        const std::string word = folder.filename().string();
        if (word.find_first_of("\r\n") != word.npos)
            throw BadInput(folder.string(),
                           " has a line end in its name, which is a line of vocab.txt; rename the folder");
        const std::set<fs::path> files = sorted(folder, fs::file_type::regular);
        if (files.empty())
            throw BadInput(folder.string(), " is a class without a file; expected text files in it, or no such folder");
        for (const fs::path& file : files) {
            const std::string named = (folder.filename() / file.filename()).string();
            hash_ = hash_of(text(hash_, named, ":", fs::file_size(file)));
            add(named, {{file.string()}, int(names_.size())});
        }
        names_.push_back(word);
    }

    Solved read(const Item& file) const { return {ids_of(read_bytes(file.paths[0])), {0}, {answers_[file.kind]}}; }

    WordList names_;  // of the classes
};

// An example of the second task is [CLS] text [SEP] text [SEP]. Half of the examples are two texts of the same name.
class PairedExamples : public FileTask {
  public:
    PairedExamples(const TaskOptions& options, std::uint64_t seed, const WordPiece* reader)
        : FileTask(options, seed, reader, options.max_length + 2) {
        longest = 3 + 2 * max_length_;
        const std::set<fs::path> folders = sorted(name, fs::file_type::directory);
        if (folders.size() == 2)
            for (const fs::path& file : sorted(*folders.begin(), fs::file_type::regular))
                add_pair(file, *folders.rbegin() / file.filename());
        if (folders.size() != 2 || train_.size() < 2 || held_out_.size() < 2)
            throw BadInput(name, " has ", folders.size(), " folders, and ", train_.size(),
                           " file names in both to train on and ", held_out_.size(), " held out; paired=true ",
                           "expects two folders, and in each part two file names or more that both folders have");
        complete({"other", "same"});
    }

    Solved example(std::uint64_t number, bool held_out) const override {
        const std::vector<Item>& part = held_out ? held_out_ : train_;
        Sequence random = random_of(seed_, "examples", number, held_out);
        const std::size_t n = part.size(), one = held_out ? number / 2 : random.below(n);
        const bool same = held_out ? number % 2 : random.below(2);
        const std::size_t other = (one + 1 + random.below(n - 1)) % n;
        Solved s{{}, {0}, {answers_[same]}};
        for (const std::string& path : {part.at(one).paths[0], part[same ? one : other].paths[1]}) {
            const Tokens ids = ids_of(read_bytes(path));
            s.tokens.insert(s.tokens.end(), ids.begin() + !s.tokens.empty(), ids.end());  // [CLS] only at the beginning
            if (!words_) s.tokens.push_back(sep_id);
        }
        return s;
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
            known.emplace_back(overlap(s), s.answers[0] == answers_[1]);
        }
        std::sort(known.begin(), known.end());
        // correct: number of right answers if exactly the first i examples are answered by "=other"
        double correct = std::count_if(known.begin(), known.end(), [](const auto& k) { return k.second; });
        double best = correct, threshold = -1;
        const bool most = 2 * correct >= double(known.size());
        for (std::size_t i = 0; i < known.size(); i++) {
            correct += known[i].second ? -1 : 1;
            if (correct <= best || (i + 1 < known.size() && known[i + 1].first == known[i].first)) continue;
            best = correct, threshold = known[i].first;
        }
        return {{"majority", "the most frequent answer", right(asked, [&](auto&) { return answers_[most]; })},
                {"overlap", text("from the share of common pairs of ", words_ ? "tokens" : "bytes"),
                 right(asked, [&](const Solved& s) { return answers_[overlap(s) > threshold]; })}};
    }

  private:
    void add_pair(const fs::path& first, const fs::path& second) {
        if (!fs::is_regular_file(second)) return;
        const std::string named = first.filename().string();
        hash_ = hash_of(text(hash_, named, ":", fs::file_size(first), ":", fs::file_size(second)));
        add(named, {{first.string(), second.string()}});
    }

    double overlap(const Solved& s) const {
        const int sep = words_ ? reader_->vocabulary().sep() : sep_id;
        const auto middle = std::find(s.tokens.begin(), s.tokens.end(), sep);
        const auto pairs = [](auto begin, auto end) {
            std::set<std::uint64_t> all;
            for (auto i = begin; i != end && i + 1 != end; ++i) all.insert(bigram(*i, *(i + 1)));
            return all;
        };
        const auto one = pairs(s.tokens.begin() + 1, middle), two = pairs(middle + 1, s.tokens.end() - 1);
        double common = 0;
        for (std::uint64_t each : one) common += double(two.count(each));
        return common / std::max(1.0, double(one.size() + two.size()) - common);
    }
};

}  // namespace

std::unique_ptr<Examples> open_files(const TaskOptions& options, std::uint64_t seed, const WordPiece* reader) {
    if (options.paired) return std::make_unique<PairedExamples>(options, seed, reader);
    return std::make_unique<FileExamples>(options, seed, reader);
}

}  // namespace masquerade
