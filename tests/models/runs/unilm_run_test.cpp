// SPDX-License-Identifier: MIT
// Tests a run of UniLM: the bits do not depend on the number of threads or on the memory plan, a resumed run equals a
// run without a stop, and a run that is read again writes the same text.
#include <doctest/doctest.h>

#include "tests/models/runs/tiny_training.h"

using namespace masquerade;

namespace {

const char* everything =
    "mlm,lm,lm-target,lm-reverse,prefix-lm,unilm,unilm-reverse,unilm-masked,plm,pmlm,diffusion,block-diffusion,"
    "any-order,k-bert,plm-shuffled";

}  // namespace

TEST_CASE("unilm run: the same bits from a rerun, any threads, any memory, recompute on or off") {
    check_same_bits<UniLmRun>(tiny_unilm(everything), 24);
}

// For every objective, a line in a batch has the same vector as the line alone. If the objective has one of these
// masks, the vector is the mean of the last states under this mask.
TEST_CASE("unilm run: the features of a line are the mean of its last states under the objective's mask") {
    const std::vector<std::string> lines = {"where are you?", "what do you think of it?", "who?"};
    const std::map<std::string, SegmentGraph (*)(const Documents&)> masks = {{"mlm", full_mask},
                                                                             {"lm", causal_mask},
                                                                             {"lm-reverse", anticausal_mask}};
    for (const Objective& o : objectives()) {
        CAPTURE(o.name);
        const UniLmSettings s = tiny_unilm(o.name);
        UniLmRun run(s, train_vocabulary(questions().train, s.vocabulary));
        const std::vector<std::vector<double>> all = run.features(lines);
        REQUIRE(all.size() == 3);
        for (std::size_t i = 0; i < 3; i++) {
            const std::vector<double> alone = run.features({lines[i]}).at(0);
            REQUIRE(int(alone.size()) == s.model.width);
            for (std::size_t c = 0; c < alone.size(); c++) CHECK(std::abs(alone[c] - all[i][c]) <= 1e-6);
        }
        if (masks.count(o.name) == 0) continue;
        const std::vector<int> ids = run.sentences({lines[1]}).at(0).ids;
        TokenRows rows;
        for (int i = 0; i < int(ids.size()); i++) rows.push(ids[std::size_t(i)], s.how.source_type, i, 0);
        Arena arena(Device::cpu, Blocks::loose);
        Tape tape(arena, DType::f32);
        tape.begin("by hand");
        const Backbone& stack = run.model.backbone;
        const std::vector<double> x =
            numbers_of(stack.finish(tape, stack.run(tape, rows, masks.at(o.name)({{rows.count(), 0}})))->view());
        for (std::size_t c = 0; c < all[1].size(); c++) {
            double mean = 0;
            for (std::size_t i = c; i < x.size(); i += all[1].size()) mean += x[i] / rows.count();
            CHECK(std::abs(mean - all[1][c]) <= 1e-6);
        }
    }
}

// Returns the loss of the first training step.
static double first_loss(Task& task) {
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f32);
    task.next_batch(1);
    tape.begin("step", 1, 1, true);
    return number_at(task.loss(tape, 1, 0)->view(), 0);
}

// The loss in training is linear in the smoothing. Held-out losses have no smoothing, so that runs can be compared.
TEST_CASE("unilm run: label smoothing is of the loss that is trained on, not of the one of held-out text") {
    struct Losses {
        double trained, held_out;
    };
    auto losses = [](double label_smoothing) {
        UniLmSettings s = tiny_unilm("unilm");
        s.label_smoothing = label_smoothing;
        const TrainingText text = questions();
        UniLmRun run(s, train_vocabulary(text.train, s.vocabulary));
        const std::unique_ptr<Task> task = run.task(text);
        const double trained = first_loss(*task);
        return Losses{trained, task->validate().at(0).value};
    };
    const Losses none = losses(0), some = losses(0.25), more = losses(0.5);
    const double difference = some.trained - none.trained;
    CHECK(std::abs(difference) > 1e-4);
    CHECK(std::abs(more.trained - none.trained - 2 * difference) <= 5e-6);
    CHECK(some.held_out == none.held_out);
    CHECK(UniLmSettings().label_smoothing == 0.1);
}

// The loss in training need not be a bound; the losses of held-out text are bounds, so that runs can be compared.
TEST_CASE("unilm run: weighting and masked are of the loss that is trained on, not of the one of held-out text") {
    const TrainingText text = questions();
    const Vocabulary words = train_vocabulary(text.train, 200);
    const auto losses = [&](const Strings& given) {
        UniLmSettings s = tiny_unilm("diffusion");
        Config keys;
        s.declare(keys);
        for (const std::string& pair : given) keys.set(pair);
        UniLmRun run(s, words);
        const std::unique_ptr<Task> task = run.task(text);
        const double trained = first_loss(*task);
        const std::vector<Sentence> held_out = run.sentences(text.held_out, text.held_out_targets);
        const double bound = run.bound(find_objective("diffusion"), pointers_to(held_out), 1).per_token.mean;
        return std::vector<double>{trained, task->validate().at(0).value, bound};
    };
    const std::vector<double> usual = losses({});
    for (const Strings& given :
         {Strings{"weighting=tokens"}, {"masked=0.2:0.4"}, {"masked=0.2:0.4", "weighting=tokens"}}) {
        const std::vector<double> found = losses(given);
        CHECK(std::abs(found[0] - usual[0]) > 1e-3);
        CHECK(found[1] == usual[1]);
        CHECK(found[2] == usual[2]);
    }
    for (const char* wrong : {"0.8:0.2", "0.5:0.5", "-0.1:1", "0:1.5", "0.5", "", "a:b", "0.1:0.5x"})
        CHECK_SAYS(message_of<BadUsage>([&] { losses({std::string("masked=") + wrong}); }),
                   "expected LOW:HIGH with 0 <= LOW < HIGH <= 1");
}

TEST_CASE("unilm run: 30 steps == 15 and 15 more after a resume, and what is loaded writes the same") {
    TemporaryFolder folder;
    const auto loaded = check_resume<UniLmRun>(tiny_unilm(everything), 30, folder);
    CHECK(loaded->settings.objective == everything);
    CHECK(std::string(family_of_run(folder.file("straight")).name) == "unilm");
    CHECK_SAYS(message_of<BadInput>([&] { load_run<UniVaeRun>(folder.file("straight")); }),
               "describes a model of type unilm, expected univae");
}

TEST_CASE("unilm run: masks in words are refused before there is a run, and say what can be written") {
    const Vocabulary words = train_vocabulary(questions().train, 200);
    auto run = [&](const char* objective, const char* mask) {
        UniLmSettings s = tiny_unilm(objective);
        s.mask = mask;
        return std::make_unique<UniLmRun>(s, words);
    };
    CHECK_SAYS(message_of<BadUsage>([&] { run("unilm", "A ful"); }), "\"ful\" is no rule");
    for (const char* objective : {"lm,plm", "pmlm", "block-diffusion"})
        CHECK_SAYS(message_of<BadUsage>([&] { run(objective, "AB full"); }),
                   text("objective ", objective, " needs a mask of its own: leave out mask="));
    CHECK(run("unilm", "A full; B causal sees A[0]")->writes());
    CHECK(run("lm", "A causal")->writes());
    for (const auto& [objective, mask] : {std::pair("unilm", "A full; B full sees A"), std::pair("lm", "A full")}) {
        const auto deaf = run(objective, mask);
        CHECK_FALSE(deaf->writes());
        CHECK_SAYS(message_of<BadUsage>([&] { deaf->expect_to_write(false); }),
                   "nothing can be written token by token");
        CHECK(deaf->writing_command("folder").empty());
    }
}

TEST_CASE("unilm run: lm-reverse writes under a mask in words that shows a row what follows it, and under no other") {
    const Vocabulary words = train_vocabulary(questions().train, 200);
    const auto written = [&](const char* mask, std::string* refused) {
        UniLmSettings s = tiny_unilm("lm-reverse");
        s.mask = mask;
        s.model.deviation = 0.3;
        const UniLmRun run(s, words);
        *refused = message_of<BadUsage>([&] { run.expect_to_write(true); });
        CHECK(run.writes_backward() == refused->empty());
        CHECK(run.writing_command("r").empty() == !refused->empty());
        if (!refused->empty()) return std::vector<int>();
        const std::vector<Sentence> ends = run.endings({"the end"});
        return run.write_before({&ends[0]}, {}, 1).at(0).at(0).tokens;
    };
    std::string refused;
    const std::vector<int> own = written("", &refused);
    CHECK_FALSE(own.empty());
    for (const char* mask :
         {"A anticausal", "AB anticausal", "A anticausal; B causal sees A", "layers 1: A anticausal"})
        CHECK(written(mask, &refused) == own);
    for (const char* mask : {"A full", "A causal", "A none", "B causal", "A anticausal | layers -1: A full"}) {
        written(mask, &refused);
        CHECK_SAYS(refused, "a row that predicts the token before it must not see this token; expected A anticausal");
    }
    for (const char* mask : {"A anticausal window=2", "A anticausal sees B; B causal"}) {
        written(mask, &refused);
        CHECK_SAYS(refused, "only rows that see all later rows");
    }
}

TEST_CASE("unilm run: a target that was generated from its last token to its first is returned in reading order") {
    const Vocabulary words = train_vocabulary(questions().train, 200);
    for (const bool two_stacks : {false, true}) {
        const auto written = [&](const char* objective) {
            std::unique_ptr<TargetRun> run;
            if (two_stacks) {
                Seq2SeqSettings s = tiny_seq2seq(objective);
                s.model.stack.deviation = 0.4;
                run = std::make_unique<Seq2SeqRun>(s, words);
            } else {
                UniLmSettings s = tiny_unilm(objective);
                s.model.deviation = 0.4;
                run = std::make_unique<UniLmRun>(s, words);
            }
            const std::vector<Sentence> sources = run->sentences({"where are you?", "who?"});
            SearchOptions o;
            o.samples = 20;
            std::vector<Tokens> all;
            for (const Hypotheses& samples : run->write(pointers_to(sources), o, 1))
                for (const Hypothesis& h : samples) all.push_back(h.tokens);
            return all;
        };
        std::vector<Tokens> usual = written(two_stacks ? "seq2seq" : "unilm");
        const std::vector<Tokens> turned = written(two_stacks ? "seq2seq-reverse" : "unilm-reverse");
        CHECK(usual != turned);
        for (Tokens& each : usual) std::reverse(each.begin(), each.end());
        CHECK(usual == turned);
    }
}

TEST_CASE("unilm run: what it was trained on says how it reads and what it can write") {
    const Vocabulary words = train_vocabulary(questions().train, 200);
    for (const char* objective : {"unilm-masked", "mlm,unilm-masked", "unilm,unilm-masked", "unilm"}) {
        // Writes at a [MASK], unless an objective trains to predict without one.
        const UniLmRun run(tiny_unilm(objective), words);
        CHECK(run.reading_options().mask ==
              (text(objective).find("unilm,") == 0 || text(objective) == "unilm" ? -1 : words.mask()));
    }
    struct {
        const char* objective;
        bool writes, backward, continues, causal;
    } rows[] = {{"unilm", true, false, false, false},         {"unilm-masked", true, false, false, false},
                {"unilm-reverse", true, false, false, false}, {"any-order", false, false, true, false},
                {"lm-target", true, false, false, true},      {"lm", true, false, true, true},
                {"prefix-lm", true, false, true, false},      {"mlm", false, false, false, false},
                {"mlm,unilm", true, false, false, false},     {"plm", false, false, false, false},
                {"pmlm", false, false, false, false},         {"k-bert", false, false, false, false},
                {"plm-shuffled", false, false, false, false}, {"lm-reverse", false, true, false, false},
                {"lm:3,lm-reverse", true, true, true, true},  {"mlm,lm", true, false, true, true},
                {"lm,unilm", true, false, false, false}};
    for (const auto& row : rows) {
        CAPTURE(std::string(row.objective));
        const UniLmRun run(tiny_unilm(row.objective), words);
        CHECK(run.writes() == row.writes);
        CHECK(run.writes_backward() == row.backward);
        const bool reads = row.writes && !row.continues;
        CHECK(run.writing_command("r") == (reads                        ? "./generate r < SOURCES"
                                           : row.writes || row.backward ? "./generate r --count 10"
                                                                        : ""));
        for (bool backward : {false, true}) {
            const std::string said = message_of<BadUsage>([&] { run.expect_to_write(backward); });
            CHECK(said.empty() == (backward ? row.backward : row.writes));
        }
        CHECK(run.continues() == row.continues);
        if (row.writes) CHECK(run.reading_options().causal == row.causal);
    }
    // If these objectives are trained on pairs, the run writes targets.
    for (const char* objective : {"lm", "prefix-lm", "mlm,lm"}) {
        UniLmRun run(tiny_unilm(objective), words);
        const int source = run.settings.how.source_type, target = run.settings.how.target_type;
        const bool prefix = objective == std::string("prefix-lm");
        CHECK(run.reading_options().target_type == (prefix ? target : source));
        CHECK(run.reading_options().longest == run.settings.max_length);
        run.task(questions());
        CHECK_FALSE(run.continues());
        CHECK(run.reading_options().target_type == target);
        CHECK(run.reading_options().longest == run.settings.max_target);
        CHECK(run.reading_options().causal != prefix);
        // A trained run that reads another text, as for a map of its attention, stays what it was trained to be.
        TrainingText texts = questions();
        texts.train_targets.clear(), texts.held_out_targets.clear();
        run.run_json = "{}";
        run.task(texts);
        CHECK_FALSE(run.continues());
    }
    UniLmRun run(tiny_unilm("unilm"), words);
    TrainingText text = questions();
    text.train_targets.clear();
    CHECK_SAYS(message_of<BadInput>([&] { run.task(text); }), "objective unilm needs pairs");
}

TEST_CASE("unilm run: a language model goes on from [CLS], from a text, and no further than it has positions") {
    const Vocabulary words = train_vocabulary(questions().train, 200);
    UniLmRun run(tiny_unilm("lm"), words);
    std::vector<Sentence> begun =
        run.beginnings({"", "what is", "what is the longest of all the rivers that there are in the world today"});
    CHECK(begun[0].ids == std::vector<int>{words.cls()});
    std::vector<const Sentence*> all;
    for (Sentence& s : begun) {
        s.name = int(all.size());
        all.push_back(&s);
    }
    SearchOptions draw;
    draw.samples = 2;
    draw.minimum = 30;  // so that no text ends before it has the maximum length
    const auto drawn = run.write(all, draw, 3);
    for (std::size_t i = 0; i < drawn.size(); i++) {
        const auto& written = drawn[i];
        REQUIRE(written.size() == 2);
        for (const Hypothesis& h : written)
            CHECK(h.tokens.size() == std::size_t(std::max(1, run.settings.max_length - int(begun[i].ids.size()))));
    }
    draw.maximum = 3;
    for (const auto& written : run.write(all, draw, 3))
        for (const Hypothesis& h : written) CHECK(h.tokens.size() == 3);
}

TEST_CASE("unilm run: a line draws by its own name, whatever stands beside it") {
    const UniLmRun run(tiny_unilm("lm"), train_vocabulary(questions().train, 200));
    std::vector<Sentence> begun = run.beginnings({"what is", "what is", "what is"});
    begun[0].name = begun[2].name = 7;
    begun[1].name = 8;
    SearchOptions draw;
    draw.samples = 1;
    draw.minimum = 30;
    const auto drawn = run.write(pointers_to(begun), draw, 3);
    CHECK(drawn[0][0].tokens == drawn[2][0].tokens);
    CHECK(drawn[0][0].tokens != drawn[1][0].tokens);
}

TEST_CASE("unilm run: the held-out loss of a mixture is the mean of its parts by weight") {
    const Vocabulary words = train_vocabulary(questions().train, 200);
    UniLmRun run(tiny_unilm("mlm:3,lm:1"), words);
    TrainingText text;
    text.train = text.held_out = {"how long is the river", "who painted the small door of the old house"};
    const std::vector<Metric> metrics = run.task(text)->validate();
    REQUIRE(metrics.size() == 3);
    CHECK(std::abs(metrics[1].value - metrics[2].value) > 1e-4);
    CHECK(metrics[0].value == doctest::Approx(0.75 * metrics[1].value + 0.25 * metrics[2].value).epsilon(1e-9));
}

TEST_CASE("unilm run: settings of reading and hiding reach the objective") {
    const Vocabulary words = train_vocabulary(questions().train, 200);
    UniLmSettings s = tiny_unilm("unilm");
    s.fixed_target_start = true;
    s.how.hidden = 0.37;
    CHECK(UniLmRun(s, words).objective_options().target_start == s.max_length);
    CHECK(UniLmRun(s, words).objective_options().hidden == 0.37);
    s.fixed_target_start = false;
    CHECK(UniLmRun(s, words).objective_options().target_start == -1);
}

TEST_CASE("unilm run: trained in reverse it writes what comes before an ending, in reading order") {
    UniLmSettings s = tiny_unilm("lm-reverse");
    s.model.width = 32;
    s.model.dropout = s.model.attention_dropout = 0;
    s.model.rotary = false;  // so that the positions matter
    s.max_length = 64;
    s.train.learning_rate = 1e-2;
    s.train.schedule_start = 200;
    s.train.schedule_steps = 400;
    TrainingText two;
    two.train = {"how long is the river that runs past the mill", "who painted the small door of the old house"};
    // Otherwise, rare words would not be tokens.
    for (int i = 0; i < 6; i++) two.train.push_back(two.train[std::size_t(i)]);
    TemporaryFolder folder;
    TinyTraining<UniLmRun> training(s, RunFolder::create(folder.file("run")), 200, two);
    training.trainer.run(never);
    UniLmRun& run = training.run;
    auto written = [&](const std::vector<std::string>& lines, int maximum) {
        const std::vector<Sentence> endings = run.endings(lines);
        SearchOptions options;
        options.maximum = maximum;
        std::vector<std::string> all;
        for (const auto& hypotheses : run.write_before(pointers_to(endings), options, 1))
            all.push_back(run.decode(hypotheses.at(0).tokens));
        return all;
    };
    // If as many tokens are written as are missing, [CLS] included, every position is the same as in training.
    const int words = int(run.sentences({"how long is the river"})[0].ids.size()) - 1;
    CHECK(written({"that runs past the mill"}, words).at(0) == "how long is the river");
    CHECK(written({two.train[1]}, 1).at(0) == "");
    // Writing stops at [CLS], position 0. If an ending is too long, only its last tokens are used.
    std::string much = "it is old";
    for (int i = 0; i < 30; i++) much += " and small";
    const std::vector<Sentence> endings = run.endings({"", "the mill", much});
    const Vocabulary& words_of = run.tokenizer.vocabulary();
    CHECK(endings[0].ids == std::vector<int>{words_of.sep()});
    CHECK(int(endings[2].ids.size()) == run.settings.max_length - 1);
    CHECK(run.decode(endings[2].ids).find("it is old") == std::string::npos);
    SearchOptions draw;
    draw.samples = 2;
    draw.minimum = 100;  // so that no text ends before it has the maximum length
    const auto full = run.write_before(pointers_to(endings), draw, 3);
    for (std::size_t i = 0; i < full.size(); i++)
        for (const Hypothesis& h : full[i]) {
            CHECK(int(h.tokens.size()) == run.settings.max_length - int(endings[i].ids.size()));
            for (int id : run.special_tokens())
                if (id != words_of.unk()) CHECK(std::count(h.tokens.begin(), h.tokens.end(), id) == 0);
        }
}
