// SPDX-License-Identifier: MIT
#include "data/tasks/examples.h"

#include <filesystem>
#include <map>

#include "engine/base/named.h"
#include "tokenizer/vocabulary.h"

namespace masquerade {
namespace {

template <int fixed, int times>
int rows(const TaskOptions& o) {
    return fixed + times * o.length;
}

int rows_of_picture(const TaskOptions& o) { return 1 + o.side * o.side; }

class MadeExamples : public Examples {
  public:
    MadeExamples(const TaskKind& kind, const TaskOptions& options, std::uint64_t seed)
        : kind_(kind), options_(options), seed_(seed) {
        name = kind.name;
        mask = kind.mask;
        scattered = kind.scattered;
        longest = kind.longest(options);
        vocabulary = kind.words(options);
        example(0, true);  // throws BadUsage if the options allow no example
    }

    Solved example(std::uint64_t number, bool held_out) const override {
        Sequence random = random_of(seed_, "examples", number, held_out);
        for (int tries = 0; tries < 2000; tries++) {
            Solved s = kind_.make(options_, random);
            if (is_held_out(s.tokens) == held_out) return s;
        }
        throw BadUsage(
            text("task ", name, " has too few examples to hold some out; choose a larger length or vocabulary"));
    }

    std::vector<Baseline> baselines(const std::vector<Solved>& asked) const override {
        // Few questions do not need many examples, which take long to generate.
        const std::size_t enough = std::min<std::size_t>(20000, 100 * asked.size());
        std::vector<Solved> known;
        for (std::size_t tokens = 0; known.size() < enough && tokens < 4000000; tokens += known.back().tokens.size())
            known.push_back(example(known.size(), false));
        std::vector<Baseline> all = {{"majority", "the most frequent answer", right_by_clue(known, asked, nullptr)}};
        for (const auto& clue : kind_.clues)
            all.push_back({clue.name, clue.what, right_by_clue(known, asked, clue.of)});
        return all;
    }

  private:
    const TaskKind& kind_;
    const TaskOptions options_;
    const std::uint64_t seed_;
};

}  // namespace

bool is_held_out(const Tokens& tokens) {
    const std::uint64_t h = hash_of({reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(int)});
    return (h ^ h >> 32) % 16 == 0;
}

const std::vector<TaskKind>& task_kinds() {
    static const std::vector<TaskKind::Clue> of_listops = {{"root", "from the first operator alone", root_operator},
                                                           {"digits", "from it and its own digits", root_and_digits}};
    static const std::vector<TaskKind> all = {
        {"listops", "the value of a nested expression of 500 to 2000 tokens", "A full", false, listops_words,
         rows<2000, 0>, listops, of_listops},
        {"listops_mini", "the same of 20 to 100 tokens", "A full", false, listops_words, rows<100, 0>, listops_mini,
         of_listops},
        {"recall",
         "the values of keys that came before",
         "A causal",
         true,
         keys_and_values,
         rows<1, 1>,
         recall,
         {{"last", "the value of the last pair", last_value}}},
        {"copy", "the same words once more", "A causal", false, numbered_words, rows<1, 2>, copy_of_words, {}},
        {"induction",
         "the last word occurred earlier: which word followed it there?",
         "A causal",
         false,
         numbered_words,
         rows<1, 1>,
         induction,
         {}},
        {"pathfinder",
         "whether a dashed curve joins two discs",
         "A full",
         false,
         grey_levels,
         rows_of_picture,
         pathfinder,
         {{"distance", "from the distance of the discs", disc_distance}}},
    };
    return all;
}

std::unique_ptr<Examples> open_examples(const TaskOptions& options, std::uint64_t seed, const WordPiece* reader) {
    std::unique_ptr<Examples> found;
    for (const TaskKind& kind : task_kinds())
        if (kind.name == options.task) found = std::make_unique<MadeExamples>(kind, options, seed);
    if (!found && !std::filesystem::is_directory(options.task))
        throw BadUsage(
            text("there is no task and no folder ", options.task, "; tasks are ", joined(names_of(task_kinds()))));
    if (found && options.reads_words())
        throw BadUsage("tokens=words: task ", options.task, " has its own words; only a folder of texts has those ",
                       "of a vocabulary");
    if (found && options.paired)
        throw BadUsage("paired=true: task ", options.task,
                       " makes its own examples; expected task=FOLDER, with two folders of texts");
    if (!found) found = open_files(options, seed, reader);
    if (options.reads_words()) return found;
    found->vocabulary.insert(found->vocabulary.begin(), special_tokens, special_tokens + first_word);
    return found;
}

double right_by_clue(const std::vector<Solved>& known, const std::vector<Solved>& asked, ClueOf* clue) {
    std::map<int, std::map<int, int>> counts;  // clue (a number computed from an example) -> answer -> number of times
    for (const Solved& s : known)
        for (int answer : s.answers) counts[clue ? clue(s) : 0][answer]++;
    std::map<int, int> best;
    for (const auto& [seen, answers] : counts)
        for (const auto& [answer, count] : answers)
            if (!best.count(seen) || count > answers.at(best[seen])) best[seen] = answer;
    double right = 0, all = 0;
    for (const Solved& s : asked) {
        const auto found = best.find(clue ? clue(s) : 0);
        for (int answer : s.answers) right += found != best.end() && found->second == answer;
        all += double(s.answers.size());
    }
    return right / all;
}

}  // namespace masquerade
