// SPDX-License-Identifier: MIT
// Tests combinations of settings with the calls of ./train, ./generate and ./evaluate. A combination either works or is
// refused. If it works, it trains; a resumed run has the same bits as a run without a stop, and writes the same text;
// and it can be measured. If it is refused, there is one line of error, and no run folder. The settings come from the
// tables of families, objectives, kinds and settings.
//
// COMBINATIONS=300 draws 300 random combinations instead of a few, also tries every kind of attention with every mask,
// and prints the results. COMBINATION=17 draws only combination number 17.
#include <doctest/doctest.h>

#include <cstdio>
#include <map>

#include "data/grammar.h"
#include "engine/base/random.h"
#include "models/runs/training.h"
#include "models/runs/writer.h"
#include "tests/folder.h"
#include "tests/models/runs/other_value.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

// Returns the path of a text of pairs or, if `pairs` is false, of their sources.
std::string text_file(bool pairs) {
    static const TemporaryFolder folder;
    static const bool written = [] {
        const std::vector<std::string> lines = grammar_questions(3, 61);
        std::string both, sources;
        for (std::size_t i = 0; i + 1 < lines.size(); i++) {
            const std::string source = lines[i].substr(0, i % 3 ? 14 : lines[i].size());
            both += source + "\t" + lines[i + 1].substr(0, 20) + "\n", sources += source + "\n";
        }
        folder.write("pairs.tsv", both), folder.write("sources.txt", sources);
        return true;
    }();
    return folder.file(written && pairs ? "pairs.tsv" : "sources.txt");
}

struct Outcome {
    std::string refused, writes_not, measured_not;  // the messages; "" if it succeeded
};

void train_to(Training& training, std::int64_t steps) {
    training.options.steps = steps;
    training.options.minutes = 0;
    training.trainer().quiet = true;
    training.trainer().run(never);
}

// Returns the output of ./generate for two lines, or two samples. If the run cannot write, `refusal` gets the message.
std::string written_by(Run& run, const Family& kind, std::string& refusal) {
    Writing how;
    how.run = kind.name;
    how.search.maximum = 5;
    if (kind.options & Family::of_latents) how.count = 2;
    try {
        const RunWriter writer = run.writer(how);
        Strings lines = {"who are you?", "where is it"};
        if (writer.samples > 0) lines.assign(std::size_t(writer.samples), "");
        return writer.write(lines, 0);
    } catch (const BadUsage& e) {
        refusal = e.what();
        return "";
    }
}

// Trains, resumes, writes and measures the combination, and makes the checks that the head of this file describes.
Outcome attempt(const Strings& words, std::int64_t steps, bool measures) {
    const TemporaryFolder folder;
    const Family& kind = kind_of(words);
    Outcome found;
    const bool pairs = kind.reads != TextKind::sentences || std::count(words.begin(), words.end(), "pairs=true") > 0;
    const bool reads = kind.reads != TextKind::none && std::none_of(words.begin(), words.end(), [](const auto& word) {
                           return word.rfind("task=", 0) == 0;  // a task makes its own examples
                       });
    const auto fresh = [&](const std::string& name, std::int64_t to) {
        NewTraining wanted;
        wanted.words = words;
        wanted.out = folder.file(name);
        if (reads) wanted.data = text_file(pairs);
        Training training(wanted);
        train_to(training, to);
        return bits_of(training.run->parameters.values());
    };
    std::vector<char> straight;
    try {
        straight = fresh("straight", steps);
    } catch (const BadUsage& e) {
        found.refused = e.what();
    } catch (const BadInput& e) {
        found.refused = e.what();
    }
    if (!found.refused.empty()) {
        CHECK(std::filesystem::is_empty(folder.path));
        CHECK(found.refused.find('\n') == std::string::npos);
        return found;
    }
    fresh("halves", steps / 2);
    {
        Training rest(folder.file("halves"), {});
        train_to(rest, steps);
        CHECK(bits_of(rest.run->parameters.values()) == straight);
    }
    std::string texts[2];
    for (const int i : {0, 1}) {
        const std::string path = folder.file(i ? "halves" : "straight");
        const auto run = kind.load(path, false, Device::cpu);
        texts[i] = written_by(*run, kind, found.writes_not);
        if (i == 0 || !measures) continue;
        Measuring how;
        how.run = path;
        how.limit = 3, how.samples = 5, how.importance = 2;
        how.search.maximum = 4;
        try {
            for (const Measure& m : run->measures(how).rows) CHECK_FALSE(m.key.empty());
        } catch (const BadUsage& e) {
            found.measured_not = e.what();
        } catch (const BadInput& e) {
            found.measured_not = e.what();
        }
    }
    CHECK(texts[0] == texts[1]);
    CHECK(texts[0].empty() != found.writes_not.empty());
    return found;
}

// Returns words for the settings that make a run of this family tiny.
Strings tiny_words(const Family& kind) {
    Strings words = {kind.name};
    const auto settings = kind.settings();
    Config keys;
    settings->declare(keys);
    for (const char* pair :
         {"layers=2",          "decoder_layers=1", "latent_layers=1", "latent_size=4", "width=16",
          "heads=2",           "inner=16",         "batch_tokens=60", "max_length=12", "max_target=8",
          "prior_sentences=9", "held_out=4",       "warmup=2",        "save_every=2",  "schedule_start=10",
          "schedule_steps=20", "deviation=0.2",    "precision=f32",   "flow_width=8",  "batch_rows=20"})
        if (const std::string word = pair; keys.has(word.substr(0, word.find('=')))) words.push_back(word);
    if (kind.reads != TextKind::none)
        words.push_back("vocabulary=80");
    else if (keys.has("task"))
        words.insert(words.end(), {"task=recall", "length=16", "pairs=2", "vocabulary=16"});
    return words;
}

const Strings masks = {"A full; B causal",
                       "AB causal",
                       "AB anticausal",
                       "A causal; B causal sees A",
                       "A full; B causal sees A[0]",
                       "A full window=2; B causal window=2 sees A[-1]",
                       "A full window=1 over=all; B causal window=2 dilation=2 over=all sees A",
                       "A none; B causal sees A",
                       "A causal window=2 stride=3 globals=1; B causal sees A | layers 0:1: A full; B causal",
                       "A full; B causal | layers 1:: A full; B causal sees A[0]"};

// Returns values of a setting that keep a run small.
Strings small_values(const std::string& key, const std::string& family) {
    static const std::map<std::string, Strings> table = {
        {"layers", {"1", "2", "3"}},
        {"decoder_layers", {"1", "2"}},
        {"width", {"8", "16", "24"}},
        {"heads", {"1", "2", "4"}},
        {"kv_heads", {"1", "2"}},
        {"inner", {"8", "33"}},
        {"latent_size", {"2", "3", "4,6", "16"}},
        {"latent_at", {"0", "1", "0,1"}},
        {"mask", masks},
        {"vocabulary", {"64", "90"}},
        {"batch_tokens", {"2", "30", "100"}},
        {"max_length", {"3", "7", "20"}},
        {"max_target", {"2", "5", "12"}},
        {"positions", {"1", "40"}},
        {"recompute", {"*layer.*", "*layer.0", "*"}},
        {"prior_sentences", {"1", "9"}},
        {"seed", {"7", "18446744073709551615"}},
        {"codes", {"2", "16"}},
        {"save_every", {"1", "3"}},
        {"embedding", {"8", "20"}},
        {"learning_rate", {"0.001", "0.1"}},
        {"task", {"listops_mini", "copy", "induction", "recall"}},
        {"length", {"1", "9"}},
        {"patterns", {"0:1 window=1", "0:1 full | 1:2 stride=2", "-1: block=3 last=1", "0:9 window=2 dilation=2"}},
        {"latent_kinds", {"vq", "flow", "vmf,gaussian"}},
        {"points", {"moons", "checker"}},
        {"dropout", {"0", "0.3"}},  // with 0.9, most rows are 0, and their norms have gradients beyond float
    };
    if (key == "task" && family != "classify") return {"copy", "sort", "star_graph", "sudoku"};
    const auto found = table.find(key);
    return found != table.end()
               ? found->second
               : Strings{"true", "false", "0", "1", "2", "3", "5", "8", "0.25", "0.9", special_value(family, key)};
}

// Returns groups of settings that work only together. A random combination has at most one group.
const std::vector<Strings>& groups_of_settings() {
    static const std::vector<Strings> all = {
        {"pairs=true", "conditional=true"},
        {"pairs=true", "conditional=true", "latent=gaussian", "source_prior=true"},
        {"pairs=true", "conditional=true", "source_prior=true", "layers=3", "latent_layers=2", "latent=gaussian"},
        {"pairs=true", "conditional=true", "layers=3", "latent_layers=2", "latent_kinds=gaussian,flow"},
        {"layers=3", "latent_layers=2", "latent_kinds=vmf,vq"},
        {"layers=3", "latent_layers=2", "latent_kinds=flow,gaussian_chain", "flow_actnorm=true"},
        {"latent=flow", "flow_steps=2", "flow_linear=lu"},
        {"pairs=true", "conditional=true", "decoder=diffusion"},
        {"attention=by_head"},
        {"attention=by_head", "patterns=0:1 window=1 | 1:2 stride=2"},
        {"heads=4", "kv_heads=2", "attention=by_head", "patterns=1:2 block=2 before=1 | 2:4 globals=1 stride=3"},
    };
    return all;
}

bool has_all(const Config& keys, const Strings& words) {
    return std::all_of(words.begin(), words.end(),
                       [&](const std::string& word) { return keys.has(word.substr(0, word.find('='))); });
}

// Draws words: a family, a kind of attention, an objective, sometimes a mask, and up to seven other settings.
Strings random_words(std::uint32_t number) {
    Sequence random(1, "combinations", number);
    const auto one_of = [&](const auto& all) { return all[random.below(std::uint32_t(all.size()))]; };
    const Family kind = one_of(families());
    Strings words = tiny_words(kind);
    const Strings kinds = names_of(attention_kinds());
    const auto settings = kind.settings();
    Config keys;
    settings->declare(keys);
    if (keys.has("attention")) {
        switch (random.below(4)) {
            case 0: break;
            case 1: words.push_back("attention=A " + one_of(kinds) + "; B " + one_of(kinds)); break;
            case 2: words.push_back("attention=" + one_of(kinds) + " | layers 0:1: " + one_of(kinds)); break;
            default: words.push_back("attention=" + one_of(kinds));
        }
        if (!kind.objectives.empty() && random.below(3) > 0) words.push_back("objective=" + one_of(kind.objectives));
        if (random.below(4) == 0) words.push_back("mask=" + one_of(masks));
    }
    if (const Strings group = one_of(groups_of_settings()); has_all(keys, group) && random.below(2) == 0)
        words.insert(words.end(), group.begin(), group.end());
    for (std::uint32_t n = random.below(8); n > 0; n--) {
        const std::string key = one_of(keys.keys());
        if (key == "attention" || key == "objective" || key == "mask" || key == "keep_tokens") continue;
        Strings values;
        for (const std::string& value : small_values(key, kind.name))
            if (!value.empty() && accepts(keys, key, value)) values.push_back(value);
        const std::vector<Config::Setting> declared = keys.settings();
        const auto setting =
            std::find_if(declared.begin(), declared.end(), [&](const auto& one) { return one.key == key; });
        const std::string list = setting->expected;
        if (key != "task" && list.find('|') != list.npos && list.find(' ') == list.npos) {
            values.clear();
            for (std::size_t from = 0; from <= list.size();) {
                const std::size_t to = std::min(list.find('|', from), list.size());
                values.push_back(list.substr(from, to - from));
                from = to + 1;
            }
        }
        if (!values.empty()) words.push_back(key + "=" + one_of(values));
    }
    return words;
}

// Returns the number of random combinations in COMBINATIONS; 0 if the variable is not set.
int asked() {
    const char* count = std::getenv("COMBINATIONS");
    return count ? std::atoi(count) : 0;
}

std::string in_one_line(const Strings& words) {
    std::string line;
    for (const std::string& word : words)
        line += (line.empty() ? "" : " ") + (word.find(' ') == word.npos ? word : "'" + word + "'");
    return line;
}

// Tries combinations, and counts the results.
class Tried {
  public:
    void operator()(const std::string& name, const Strings& words, std::int64_t steps, bool measures) {
        INFO(name, " ./train ", in_one_line(words));
        Outcome found;
        try {
            found = attempt(words, steps, measures);
        } catch (const std::exception& e) {
            FAIL_CHECK("neither done nor refused: ", std::string(e.what()));
            found.refused = "failed";
        }
        if (!found.refused.empty()) {
            counts_["refused: " + found.refused]++;
        } else {
            counts_["trained"]++;
            counts_[found.writes_not.empty() ? "wrote" : "did not write: " + found.writes_not]++;
        }
        if (!found.measured_not.empty()) counts_["was not measured: " + found.measured_not]++;
        if (asked()) std::printf("%s %s\n  %s\n", name.c_str(), in_one_line(words).c_str(), found.refused.c_str());
    }
    ~Tried() {
        if (!asked()) return;
        for (const auto& [what, times] : counts_) std::printf("%5d %s\n", times, what.c_str());
    }

  private:
    std::map<std::string, int> counts_;
};

}  // namespace

TEST_CASE("combinations: every kind of attention with every objective of every family") {
    Tried tried;
    for (const Family& kind : families()) {
        if (kind.options & Family::of_vectors) continue;  // flows have no attention
        std::vector<Strings> variants;
        for (const std::string& objective : kind.objectives) variants.push_back({"objective=" + objective});
        if (variants.empty()) variants.emplace_back();
        if (kind.options & Family::of_latents) {
            variants.insert(variants.end(), &groups_of_settings()[0], &groups_of_settings()[2]);  // conditional
            variants.push_back({"decoder=diffusion"});
        }
        for (const Strings& variant : variants)
            for (const AttentionKind& attention : attention_kinds()) {
                Strings of_each = {""};
                if (asked()) of_each.insert(of_each.end(), masks.begin(), masks.end());
                for (const std::string& mask : of_each) {
                    Strings words = tiny_words(kind);
                    words.push_back(text("attention=", attention.name));
                    words.insert(words.end(), variant.begin(), variant.end());
                    if (!mask.empty()) words.push_back("mask=" + mask);
                    tried(text(kind.name, " ", attention.name, " ", mask), words, 2, false);
                }
            }
    }
}

TEST_CASE("combinations: random settings of every family") {
    const char* only = std::getenv("COMBINATION");
    const std::uint32_t first = only ? std::uint32_t(std::atoi(only)) : 0,
                        last = only ? first + 1 : std::uint32_t(asked() ? asked() : 12);
    Tried tried;
    for (std::uint32_t number = first; number < last; number++)
        tried(text("COMBINATION=", number), random_words(number), 4, true);
}

TEST_CASE("combinations: one source token that is the whole source does not change the sizes of a bucket") {
    const Strings words = {"unilm",
                           "layers=1",
                           "width=16",
                           "heads=2",
                           "inner=16",
                           "batch_tokens=60",
                           "max_length=12",
                           "max_target=8",
                           "vocabulary=80",
                           "precision=f32",
                           "objective=prefix-lm",
                           "attention=sinkhorn",
                           "mask=A full; B causal sees A[0]"};
    CHECK(attempt(words, 4, false).refused.empty());
}
