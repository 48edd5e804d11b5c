// SPDX-License-Identifier: MIT
// Tests that no setting is ignored. For every setting of every family, two values are tried in a run in which the
// setting acts. The two runs must differ: in their weights or, for the settings in the table `elsewhere`, in the result
// that the table names. If a help text begins with kinds ("luna, linformer: ..."), the setting must act with these
// kinds of attention, latents, optimisers, objectives and tasks, and with no other kind of the same table. Settings and
// kinds come from their tables, so a new one is tested as soon as it is declared.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <sstream>

#include "data/text.h"
#include "models/latent/latent.h"
#include "models/runs/target_run.h"
#include "tests/folder.h"
#include "tests/models/runs/other_value.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/tiny_run.h"
#include "models/runs/training.h"

using namespace masquerade;

namespace {

using Names = std::vector<std::string>;
using Values = std::vector<std::pair<std::string, std::string>>;  // key and value

// The results of a run, by name: "weight PATH" for each parameter, "held-out", "files", "memory".
using Traces = std::map<std::string, std::string>;

// Forwards all calls to a task, and records what the trainer does with the task and the tape.
class Watched : public Task, public Observer {
  public:
    Watched(Task& task, bool validates) : task_(task), validates_(validates) {}
    std::string next_batch(std::int64_t step) override { return task_.next_batch(step); }
    int parts() const override { return task_.parts(); }
    std::string next_part() override { return task_.next_part(); }
    Tensor* loss(Tape& tape, std::int64_t step, std::int64_t schedule_steps) override {
        planned += tape.planned();
        return task_.loss(tape, step, schedule_steps);
    }
    void keep() override { task_.keep(); }
    void learn(Tape& tape) override { task_.learn(tape); }
    std::int64_t batch_tokens() const override { return task_.batch_tokens(); }
    std::function<std::vector<Metric>()> metrics() override { return task_.metrics(); }
    std::vector<Metric> validate() override {
        const std::vector<Metric> all = validates_ ? task_.validate() : std::vector<Metric>();
        for (const Metric& m : all) held_out += text(m.name, " ", m.value, "\n");
        return all;
    }
    void finish(const std::string& folder) override { task_.finish(folder); }
    std::vector<std::uint64_t> place() const override { return task_.place(); }
    void save(const std::string& folder) const override { task_.save(folder); }
    void before(const Record&, bool backward) override { forwards += !backward; }

    std::string held_out;
    long planned = 0, forwards = 0;

  private:
    Task& task_;
    bool validates_;
};

constexpr int steps = 3;
const std::string weight = "weight ";

// Returns questions, some of them in capitals, or the pairs of a task.
TrainingText some_text(TextKind wanted, const PairOptions* made) {
    TrainingText t;
    for (std::uint64_t i = 0; made && i < 64; i++) {
        const bool held_out = i >= 60;
        auto [source, target] = made_pair(*made, i, held_out);
        (held_out ? t.held_out : t.train).push_back(std::move(source));
        (held_out ? t.held_out_targets : t.train_targets).push_back(std::move(target));
    }
    if (made) return t;
    t = text_for(wanted);
    for (std::size_t i = 0; i < t.train.size(); i += 2)
        for (char& c : t.train[i]) c = char(std::toupper(static_cast<unsigned char>(c)));
    for (std::vector<std::string>* lines : {&t.held_out, &t.held_out_targets})
        lines->resize(std::min<std::size_t>(lines->size(), 4));
    return t;
}

// Returns a vocabulary for these settings. It is learned only once for each size and way of reading text.
Vocabulary vocabulary_for(const RunSettings& s, TextKind wanted, const TrainingText& text) {
    static std::map<std::tuple<int, bool, TextKind>, Vocabulary> learned;
    if (!s.words().empty() || !s.answers().empty()) return vocabulary_of(s, text);
    const auto key = std::make_tuple(s.vocabulary, s.cased, wanted);
    return learned.emplace(key, learned.count(key) ? learned.at(key) : learn_vocabulary(s, text)).first->second;
}

Traces traces_of(const Family& kind, RunSettings& settings, bool validates) {
    const TextKind wanted = settings.wants(kind.reads);
    const TrainingText text = some_text(wanted, settings.made.any() ? &settings.made : nullptr);
    const auto run = kind.fresh(settings, vocabulary_for(settings, wanted, text), settings.precision, Device::cpu);
    const TemporaryFolder place;
    RunFolder folder = RunFolder::create(place.file("run"));
    const std::unique_ptr<Task> task = run->task(text);
    Watched watched(*task, validates);
    TrainOptions options = run->common().train;
    options.steps = steps;
    options.minutes = 0;
    Trainer trainer(run->parameters, watched, folder, options);
    trainer.observe(&watched);
    trainer.quiet = true;
    trainer.run(never);
    Traces all;
    for (const Tensor& p : run->parameters.all()) {
        const std::vector<char> bits = bits_of(run->parameters.master(p));
        all[weight + p.path] = masquerade::text(p.shape, "\n") + std::string(bits.begin(), bits.end());
    }
    all["held-out"] = watched.held_out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
        all["files"] += entry.path().string().substr(folder.path().size()) + "\n";
    std::vector<std::string> files;
    std::istringstream lines(all["files"]);
    for (std::string line; std::getline(lines, line);) files.push_back(line);
    std::sort(files.begin(), files.end());
    all["files"] = joined(files, "\n");
    all["average"] = "";
    const std::string state = folder.step_folder(steps) + "/state.safetensors";
    for (const StoredTensor& t : TensorFile(state).tensors())
        if (t.name == std::string(average_of_weights)) all["average"] = "kept";
    all["memory"] = masquerade::text(watched.planned, " ", watched.forwards);
    return all;
}

std::string help_of(const Config& keys, const std::string& key) {
    for (const Config::Setting& s : keys.settings())
        if (s.key == key) return s.help;
    FAIL("there is no setting ", key);
    return "";
}

// Returns the kinds that a clause of a help text begins with: {luna, linformer} for "luna, linformer: rows".
Names begins_with(std::string clause) {
    const std::size_t colon = clause.find(':');
    if (colon == std::string::npos) return {};
    clause.resize(colon);
    Names all;
    for (std::size_t begin = 0, end; begin <= clause.size(); begin = end + 2) {
        end = std::min(clause.find(", ", begin), clause.size());
        all.push_back(clause.substr(begin, end - begin));
    }
    return all;
}

// A setting that chooses a kind, and the names of the kinds.
struct Choice {
    std::string key;
    Names kinds;
};

std::vector<Choice> choices_of(const Family& kind) {
    std::vector<Choice> all = {{"attention", names_of(attention_kinds())},
                               {"latent", names_of(latent_kinds())},
                               {"optimiser", names_of(optimiser_kinds())},
                               {"objective", kind.objectives}};
    const bool answers = std::string(kind.name) == "classify";
    all.push_back({"task", answers ? names_of(task_kinds()) : names_of(pair_tasks())});
    return all;
}

// Returns the kinds to which the help text of a setting limits the setting. The key is "" if the setting is for all
// kinds.
Choice named_kinds(const std::vector<Choice>& choices, const std::string& help) {
    Choice found;
    for (std::size_t begin = 0, end; begin <= help.size(); begin = end + 2) {
        end = std::min(help.find("; ", begin), help.size());
        const Names words = begins_with(help.substr(begin, end - begin));
        for (const Choice& choice : choices) {
            const auto known = [&](const std::string& word) {
                return std::count(choice.kinds.begin(), choice.kinds.end(), word) > 0;
            };
            if (words.empty() || !std::all_of(words.begin(), words.end(), known)) continue;
            found.key = choice.key;
            found.kinds.insert(found.kinds.end(), words.begin(), words.end());
            break;
        }
    }
    return found;
}

// Returns other settings that are needed for a setting to act, in addition to the kinds in its help.
Values context_of(const std::string& key) {
    static const std::map<std::string, Values> all = {
        {"apollo_eps", {{"learning_rate", "0.1"}}},
        {"schedule_start", {{"warmup", "1"}, {"schedule_start", "1"}, {"schedule_steps", "6"}}},
        {"schedule_steps", {{"warmup", "1"}, {"schedule_start", "1"}, {"schedule_steps", "3"}}},
        {"clip", {{"clip", "0.01"}}},
        {"tied", {{"rotary", "false"}}},
        {"window", {{"window", "2"}}},
        {"dilation", {{"window", "2"}}},
        {"globals", {{"window", "1"}, {"stride", "3"}}},
        {"stride", {{"stride", "3"}}},
        {"chunk", {{"chunk", "3"}}},
        {"buckets", {{"buckets", "4"}, {"chunk", "2"}}},
        {"rounds", {{"rounds", "1"}, {"chunk", "2"}}},
        {"iterations", {{"iterations", "1"}, {"chunk", "3"}}},
        {"temperature", {{"chunk", "3"}}},
        {"latent_projection", {{"latent_size", "16"}}},
        {"free_bits", {{"latent", "gaussian"}, {"free_bits", "1"}}},
        {"free_bits_of", {{"latent", "gaussian"}, {"free_bits", "2"}}},
        {"kl_schedule", {{"schedule_steps", "4"}}},
        {"noise_from", {{"schedule_steps", "4"}}},
        {"noise_over", {{"schedule_steps", "4"}}},
        {"commitment", {{"codes", "8"}}},
        {"conditional", {{"pairs", "true"}}},
        {"source_prior", {{"pairs", "true"}, {"conditional", "true"}}},
        {"positions", {{"rotary", "false"}}},
        {"head_bias", {{"bias", "false"}}},
        {"span_stop", {{"masking", "spans"}}},
        {"span_longest", {{"masking", "spans"}}},
        {"held_out", {{"held_out", "2"}}},
        {"save_every", {{"save_every", "1"}, {"keep", "9"}}},
        {"keep", {{"save_every", "1"}, {"keep", "1"}}},
    };
    const auto found = all.find(key);
    return found == all.end() ? Values{} : found->second;
}

// Returns the result in which a setting shows. For most settings, these are the weights. For the settings in the table,
// the weights stay the same, and another result differs.
std::string shows_in(const std::string& key) {
    static const std::map<std::string, std::string> elsewhere = {
        {"save_every", "files"},      {"keep", "files"},   {"prior_sentences", "files"},
        {"held_out", "held-out"},     {"ema", "average"},  {"recompute", "memory"},
        {"plan_memory", "memory"},    {"tf32", "nothing"},  // acts only on a GPU: tests/cuda
        {"deterministic", "nothing"},                       // acts only on a GPU
        {"graph", "nothing"},                               // acts only on a GPU
        {"keep_tokens", "nothing"},                         // only ./train --init reads it: tests/targets.sh
    };
    const auto found = elsewhere.find(key);
    return found == elsewhere.end() ? "weights" : found->second;
}

// The results of runs of a family. Each run is trained only once. If a run is refused, its only result is "refused",
// with the message.
class Runs {
  public:
    explicit Runs(const Family& kind) : kind_(kind) {}
    const Traces& operator()(const Values& given) {
        std::string name;
        for (const auto& [key, value] : given) name += text(key, "=", value, " ");
        if (const auto found = known_.find(name); found != known_.end()) return found->second;
        const auto settings = tiny(kind_);
        Config keys;
        settings->declare(keys);
        Traces& traces = known_[name];
        try {
            for (const auto& [key, value] : given)
                if (key == "task") keys.set("layers", "1"), keys.set("width", "8");  // some tasks have long examples
            for (const auto& [key, value] : given) keys.set(key, value);
            traces = traces_of(kind_, *settings, name.find("held_out=") != std::string::npos);
        } catch (const BadUsage& refusal) {
            traces = {{"refused", refusal.what()}};
        }
        return traces;
    }
    // Returns the settings `given` with another value for `key`.
    Values changed(Values given, const std::string& key) const {
        const auto settings = tiny(kind_);
        Config keys;
        settings->declare(keys);
        for (const auto& [one, value] : given) keys.set(one, value);
        change(keys, kind_.name, key);
        given.emplace_back(key, keys.value(key));
        return given;
    }

  private:
    const Family& kind_;
    std::map<std::string, Traces> known_;
};

struct Acts {
    std::string where;  // names of the results that differ; "weights" if a parameter that both runs have differs
    bool refused = false;
};

Acts acts(Runs& runs, Values context, const std::string& key) {
    const Traces &one = runs(context), &other = runs(runs.changed(context, key));
    Acts found;
    found.refused = one.count("refused") || other.count("refused");
    if (found.refused) return found;
    // A parameter that only one of the runs has does not count, because a setting may add a layer norm that nothing
    // reads.
    std::set<std::string> parts;
    for (const auto& [part, left] : one)
        if (const auto right = other.find(part); right != other.end() && left != right->second)
            parts.insert(part.rfind(weight, 0) == 0 ? "weights" : part);
    for (const std::string& part : parts) found.where += (found.where.empty() ? "" : " ") + part;
    return found;
}

bool has(const std::string& words, const std::string& word) {
    return (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

// Returns the setting with which a help text begins: {{"decoder", "insertion"}} for "decoder=insertion: which slots
// ..".
Values condition_in(const std::string& help) {
    const std::string word = help.substr(0, std::min(help.find_first_of(" ;"), help.size()));
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || word.back() != ':') return {};
    return {{word.substr(0, equals), word.substr(equals + 1, word.size() - equals - 2)}};
}

// Returns the context of a setting: the kind and the setting that its help names, and the other settings that it needs,
// as far as the family has them.
Values in_context(const Config& keys, const std::string& key, const Choice& choice, const std::string& kind) {
    Values all;
    if (!choice.key.empty() && keys.has(choice.key)) all.emplace_back(choice.key, kind);
    for (const Values& needed : {condition_in(help_of(keys, key)), context_of(key)})
        for (const auto& given : needed)
            if (keys.has(given.first)) all.push_back(given);
    if ((key == "max_length" || key == "tokens" || key == "cased" || key == "paired") && keys.has("dashes"))
        all.emplace_back("task", folder_of_files());
    if (key == "cased" && keys.has("tokens")) all.emplace_back("tokens", "words");
    return all;
}

}  // namespace

TEST_CASE("settings: every one of every family acts where its help says that it does") {
    for (const Family& kind : families()) {
        const auto settings = tiny(kind);
        Config keys;
        settings->declare(keys);
        const std::vector<Choice> choices = choices_of(kind);
        Runs runs(kind);
        for (const std::string& key : keys.keys()) {
            INFO(std::string(kind.name), " ", key);
            // The weights of a flow are stored as vectors, but only matrices decay.
            if (key == "weight_decay" && kind.options == Family::of_vectors) continue;
            Choice named = named_kinds(choices, help_of(keys, key));
            if (named.kinds.empty()) named.kinds.push_back("");
            int acted = 0, refused = 0;
            std::string where;
            for (const std::string& one : named.kinds) {
                const Acts found = acts(runs, in_context(keys, key, named, one), key);
                refused += found.refused;
                acted += !found.refused;
                where = found.where;
                if (!found.refused) break;
            }
            INFO("it shows in: ", where);
            if (acted == 0) {
                // None of the kinds of attention to which the setting belongs honours the masks of the family.
                CHECK(named.key == "attention");
                CHECK(refused > 0);
                continue;
            }
            const std::string expected = shows_in(key);
            CHECK(has(where, "weights") == (expected == "weights"));
            if (expected == "nothing")
                CHECK(where == "");
            else
                CHECK(has(where, expected));
        }
    }
}

// The test above finds kinds that ignore their settings. This test finds kinds that use settings of other kinds, and
// help texts that leave out a kind. The masks of mlm are full, so every kind of attention honours them.
TEST_CASE("settings: those of some kinds act with these alone, those of all with every one") {
    const std::set<std::string> of_all = {"dropout", "heads", "pre_norm", "rotary_value"};
    const std::map<std::string, Names> families = {{"attention", {"unilm"}},
                                                   {"latent", {"univae"}},
                                                   {"optimiser", {"unilm"}},
                                                   {"objective", {"unilm", "seq2seq"}},
                                                   {"task", {"unilm", "classify"}}};
    for (const auto& [key_of_kinds, names] : families)
        for (const std::string& family : names) {
            const std::string& chooses = key_of_kinds;
            const Family& kind = find_family(family);
            const auto settings = tiny(kind);
            Config keys;
            settings->declare(keys);
            const std::vector<Choice> choices = choices_of(kind);
            const auto choice =
                std::find_if(choices.begin(), choices.end(), [&](const Choice& c) { return c.key == chooses; });
            Runs runs(kind);
            int acted = 0;
            for (const std::string& key : keys.keys()) {
                const Choice named = named_kinds(choices, help_of(keys, key));
                const bool all = chooses == "attention" && of_all.count(key) > 0;
                if (key == chooses || (named.key != chooses && !all)) continue;
                for (const std::string& one : choice->kinds) {
                    if (one == "pathfinder") continue;  // its pictures take a second; the test above tries them
                    INFO(family, " ", key, " with ", chooses, "=", one);
                    Values context = in_context(keys, key, {chooses, {}}, one);
                    if (chooses == "attention")
                        context.insert(context.end(), {{"objective", "mlm"}, {"layers", "2"}, {"inner", "8"}});
                    const Acts found = acts(runs, context, key);
                    INFO("it shows in: ", found.where);
                    const bool own = all || std::count(named.kinds.begin(), named.kinds.end(), one) > 0;
                    if (own && key != "rotary_value") CHECK(!found.refused);
                    if (!found.refused) CHECK(has(found.where, "weights") == own);
                    acted += !found.refused && own;
                }
            }
            CHECK(acted > 0);
        }
}
