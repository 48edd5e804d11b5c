// SPDX-License-Identifier: MIT
// Tests what the trainer passes on at every step: the step number to the tape's random streams and to AdamW, and weight
// decay for matrices only.
#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>

#include "data/text.h"
#include "engine/nn/functions.h"
#include "engine/ops/cpu/parallel.h"
#include "engine/base/log.h"
#include "engine/train/trainer.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

// The loss is the sum of g . b. So the gradient of the vector b is g in every step, and the matrix w has no gradient.
struct Constant : Task {
    Parameters parameters;
    Tensor *w = parameters.add("w", {2, 2}, {Init::ones, 0}), *b = parameters.add("b", {3}, {Init::zeros, 0});
    std::vector<std::uint32_t> words;  // for each step, a word of its random stream
    double held_out = 1;

    Constant() { parameters.allocate(1); }
    std::string next_batch(std::int64_t) override { return "bucket"; }
    Tensor* loss(Tape& tape, std::int64_t, std::int64_t) override {
        words.push_back(tape.stream("probe").at(0, 0, 0)[0]);
        const double g[] = {1, -2, 0.5};
        return weighted_sum(tape, b, tape.constant("g", {3}, DType::f32, g), "loss");
    }
    std::int64_t batch_tokens() const override { return 1; }
    std::vector<Metric> validate() override { return {{"loss", held_out}}; }
    void save(const std::string& folder) const override { std::ofstream(folder + "/config.json") << "{}\n"; }
    double value(const Tensor* p, int i) { return double(parameters.master(*p).as<float>()[i]); }
};

// The same task with a state, which is doubled in each step: 1, 2, 4 ...
struct Counting : Task {
    Parameters parameters;
    Tensor *b = parameters.add("b", {3}, {Init::zeros, 0}),
           *count = parameters.add_state("count", {2, 2}, {Init::ones, 0});
    double seen = 0;  // the gradient of b after the last backward

    explicit Counting(DType storage) : parameters(storage) { parameters.allocate(1); }
    std::string next_batch(std::int64_t) override { return "bucket"; }
    Tensor* loss(Tape& tape, std::int64_t, std::int64_t) override {
        const double g[] = {1, -2, 0.5};
        return weighted_sum(tape, b, tape.constant("g", {3}, DType::f32, g), "loss");
    }
    void learn(Tape&) override {
        seen = double(static_cast<const float*>(b->grad)[1]);
        add_forward(count->view(), count->view(), count->view());
    }
    std::int64_t batch_tokens() const override { return 1; }
    void save(const std::string& folder) const override { std::ofstream(folder + "/config.json") << "{}\n"; }
};

TrainOptions options(std::int64_t steps) {
    TrainOptions o;
    o.learning_rate = 0.01;
    o.warmup = 0;
    o.clip = 0;
    o.schedule_start = o.schedule_steps = 1000;
    o.minutes = 0;
    o.seed = 5;
    o.steps = steps;
    return o;
}

bool never() { return false; }

}  // namespace

TEST_CASE("trainer: every step has random numbers of its own, those of its number, after a resume as well") {
    const TemporaryFolder folder;
    for (bool again : {false, true}) {
        Constant task;
        RunFolder run = again ? RunFolder::resume(folder.file("run")) : RunFolder::create(folder.file("run"));
        Trainer trainer(task.parameters, task, run, options(again ? 6 : 3));
        trainer.quiet = true;
        if (again) trainer.resume();
        trainer.run(never);
        REQUIRE(task.words.size() == 3);
        for (std::uint32_t i = 0; i < 3; i++)
            CHECK(task.words[i] == make_stream(5, "probe", again ? 3 + i : i).at(0, 0, 0)[0]);
    }
}

TEST_CASE("trainer: a state learns after each backward, is kept by checkpoints, and no optimiser moves it") {
    for (DType storage : {DType::f32, DType::bf16}) {
        const TemporaryFolder folder;
        for (bool again : {false, true}) {
            Counting task(storage);
            RunFolder run = again ? RunFolder::resume(folder.file("run")) : RunFolder::create(folder.file("run"));
            TrainOptions o = options(again ? 5 : 3);
            o.weight_decay = 0.1;
            Trainer trainer(task.parameters, task, run, o);
            trainer.quiet = true;
            if (again) trainer.resume();
            trainer.run(never);
            CHECK(task.seen == -2);  // the gradient was complete when the state was updated
            const float* count = static_cast<const float*>(task.count->value);
            for (int i = 0; i < 4; i++) CHECK(count[i] == (again ? 32 : 8));
            CHECK(task.parameters.count() == 3);
            CHECK(static_cast<const float*>(task.b->value)[1] > 0.02f);
        }
    }
}

TEST_CASE("trainer: AdamW counts the steps, so that a gradient that stays moves by the learning rate") {
    const TemporaryFolder folder;
    for (bool again : {false, true}) {
        Constant task;
        RunFolder run = again ? RunFolder::resume(folder.file("run")) : RunFolder::create(folder.file("run"));
        Trainer trainer(task.parameters, task, run, options(again ? 9 : 4));
        trainer.quiet = true;
        if (again) trainer.resume();
        trainer.run(never);
        const double moved = 0.01 * (again ? 9 : 4);
        CHECK(std::abs(task.value(task.b, 0) + moved) <= 1e-5);
        CHECK(std::abs(task.value(task.b, 1) - moved) <= 1e-5);
        CHECK(std::abs(task.value(task.b, 2) + moved) <= 1e-5);
        CHECK(task.value(task.w, 0) == 1);
    }
}

TEST_CASE("trainer: weight decay shrinks matrices and leaves vectors alone") {
    const TemporaryFolder folder;
    Constant task;
    RunFolder run = RunFolder::create(folder.file("run"));
    TrainOptions o = options(3);
    o.weight_decay = 0.5;
    Trainer trainer(task.parameters, task, run, o);
    trainer.quiet = true;
    trainer.run(never);
    CHECK(std::abs(task.value(task.w, 3) - std::pow(1 - 0.01 * 0.5, 3)) <= 1e-6);
    CHECK(std::abs(task.value(task.b, 0) + 0.03) <= 1e-5);
}

TEST_CASE("trainer: a held-out loss that is not finite ends the run; the last healthy checkpoint stays") {
    const TemporaryFolder folder;
    Constant task;
    RunFolder run = RunFolder::create(folder.file("run"));
    TrainOptions o = options(9);
    o.save_every = 2;
    Trainer trainer(task.parameters, task, run, o);
    trainer.quiet = true;
    std::string said;
    try {
        trainer.run([&] {
            if (trainer.step() == 4) task.held_out = std::nan("");
            return false;
        });
    } catch (const Error& e) {
        said = e.what();
    }
    CHECK_SAYS(said, "step 6: the held-out loss is nan; resume an earlier checkpoint with a lower learning rate: " +
                         std::string("./train --resume ") + folder.file("run/step-000004") + " learning_rate=0.005");
    CHECK(run.steps().back() == 4);
    CHECK(RunFolder::open(folder.file("run")).latest_step() == 4);
}

TEST_CASE("trainer: a weight that is not finite ends the run, though there is no held-out text; nothing is saved") {
    struct Unmeasured : Constant {
        std::vector<Metric> validate() override { return {}; }
    } task;
    const TemporaryFolder folder;
    RunFolder run = RunFolder::create(folder.file("run"));
    TrainOptions o = options(9);
    o.save_every = o.keep = 1;
    Trainer trainer(task.parameters, task, run, o);
    trainer.quiet = true;
    trainer.after_step = [&](std::int64_t step, double) {
        if (step == 3) task.parameters.master(*task.b).as<float>()[1] = NAN;
    };
    CHECK_SAYS(message_of<Error>([&] { trainer.run(never); }),
               "step 3: b contains a weight that is nan; resume an earlier checkpoint with a lower learning rate: " +
                   std::string("./train --resume ") + folder.file("run/step-000002") + " learning_rate=0.005");
    CHECK(run.steps() == std::vector<std::int64_t>{2});
}

TEST_CASE("trainer: the advice after a loss that is not finite names no checkpoint that would fail again") {
    struct Failing : Constant {
        std::int64_t bad = 0;  // the first step whose loss is not finite
        Tensor* loss(Tape& tape, std::int64_t step, std::int64_t) override {
            const double g[] = {1, -2, step < bad ? 0.5 : double(NAN)};
            return weighted_sum(tape, b, tape.constant("g", {3}, DType::f32, g), "loss");
        }
    };
    const auto said = [](const TemporaryFolder& folder, std::int64_t bad, const char* from = nullptr) {
        Failing task;
        task.bad = bad;
        RunFolder run = from ? RunFolder::resume(folder.file(from)) : RunFolder::create(folder.file("run"));
        TrainOptions o = options(9);
        o.save_every = from ? 9 : 1;
        Trainer trainer(task.parameters, task, run, o);
        trainer.quiet = true;
        if (from) trainer.resume();
        return message_of<Error>([&] { trainer.run(never); });
    };
    {
        const TemporaryFolder folder;
        const std::string message = said(folder, 0);
        CHECK_SAYS(message, "step 0: the loss is ");
        CHECK_SAYS(message, "; no update has been made yet, so the learning rate is not the cause");
        CHECK(message.find("learning_rate") == message.npos);
    }
    {
        const TemporaryFolder folder;
        CHECK_SAYS(said(folder, 1), "there is no earlier checkpoint: start again with a lower learning_rate than 0.01");
    }
    const TemporaryFolder folder;
    CHECK_SAYS(said(folder, 3), "resume an earlier checkpoint with a lower learning rate: ./train --resume " +
                                    folder.file("run/step-000002") + " learning_rate=0.005");
    // Step 2 belongs to the training before this resume.
    CHECK_SAYS(said(folder, 3, "run/step-000001"), "./train --resume " + folder.file("run/step-000001"));
}

TEST_CASE("trainer: a checkpoint is saved before samples are shown, so that samples that fail lose no training") {
    struct Mute : Constant {
        std::string show(std::int64_t) override { throw Error("no samples"); }
    } task;
    const TemporaryFolder folder;
    RunFolder run = RunFolder::create(folder.file("run"));
    Trainer trainer(task.parameters, task, run, options(2));
    trainer.quiet = true;
    trainer.seconds_before = 61;  // after the first step, samples and a checkpoint are due
    CHECK_THROWS_WITH_AS(trainer.run(never), "no samples", Error);
    CHECK(run.steps() == std::vector<std::int64_t>{1});
}

TEST_CASE("trainer: a resume that fails in its first step, or has no step to do, leaves the later steps") {
    struct Failing : Constant {
        bool fails = false;
        Tensor* loss(Tape& tape, std::int64_t step, std::int64_t steps) override {
            if (fails) throw Error("this step fails");
            return Constant::loss(tape, step, steps);
        }
    };
    const TemporaryFolder folder;
    const std::string path = folder.file("run");
    const auto train = [&](const std::string& from, std::int64_t steps, bool fails) {
        Failing task;
        task.fails = fails;
        RunFolder run = from.empty() ? RunFolder::create(path) : RunFolder::resume(from);
        TrainOptions o = options(steps);
        o.save_every = 10;
        Trainer trainer(task.parameters, task, run, o);
        trainer.quiet = true;
        trainer.after_step = [&](std::int64_t step, double) { task.held_out = 1.0 / double(step); };
        if (!from.empty()) trainer.resume();
        return fails ? message_of<Error>([&] { trainer.run(never); }) : (trainer.run(never), "");
    };
    const auto link = [&](const char* name) {
        return std::filesystem::read_symlink(path + "/" + name).filename().string();
    };
    train("", 40, false);
    const std::string log = read_bytes(path + "/log.jsonl");
    CHECK(train(path + "/step-000020", 40, true) == "this step fails");
    CHECK(train(path + "/step-000020", 15, false).empty());
    for (const char* name : {"latest", "best"}) CHECK(link(name) == "step-000040");
    CHECK(read_bytes(path + "/log.jsonl") == log);
    // A run that goes on is rewound. Without a step to do, the newest step becomes `latest` again.
    std::filesystem::remove(path + "/latest");
    train(path + "/step-000040", 40, false);
    CHECK(link("latest") == "step-000040");
    train(path + "/step-000020", 25, false);
    for (const char* name : {"latest", "best"}) CHECK(link(name) == "step-000025");
    CHECK(RunFolder::open(path).steps() == std::vector<std::int64_t>{20, 25});
}

TEST_CASE("trainer: warmup takes the first steps at a share of the rate") {
    const TemporaryFolder folder;
    Constant task;
    TrainOptions o = options(2);
    o.warmup = 4;
    RunFolder run = RunFolder::create(folder.file("run"));
    Trainer trainer(task.parameters, task, run, o);
    trainer.quiet = true;
    trainer.run(never);
    // If the gradient is constant, AdamW moves b by the learning rate. The rate is a quarter of the full rate, then a
    // half.
    CHECK(task.value(task.b, 0) == doctest::Approx(-0.01 * (0.25 + 0.5)).epsilon(1e-4));
}

TEST_CASE("trainer: the best checkpoint is that of the lowest held-out loss, after a resume as well") {
    const TemporaryFolder folder;
    auto best_after = [&](double held_out, std::int64_t steps) {
        Constant task;
        task.held_out = held_out;
        const bool again = steps > 1;
        RunFolder run = again ? RunFolder::resume(folder.file("run")) : RunFolder::create(folder.file("run"));
        Trainer trainer(task.parameters, task, run, options(steps));
        trainer.quiet = true;
        if (again) trainer.resume();
        trainer.run(never);
        return std::filesystem::read_symlink(folder.file("run/best")).filename().string();
    };
    CHECK(best_after(3, 1) == "step-000001");
    CHECK(best_after(2, 2) == "step-000002");
    CHECK(best_after(2.5, 3) == "step-000002");
    CHECK(best_after(2.25, 4) == "step-000002");
    CHECK(best_after(1, 5) == "step-000005");
}

TEST_CASE("trainer: a run that is resumed from an older step has its best checkpoint among the steps up to there") {
    const TemporaryFolder folder;
    const std::string path = folder.file("run");
    // Trains up to a step, with a checkpoint of each step; the held-out loss is losses[step - 1].
    const auto train = [&](const std::string& from, std::int64_t steps, std::int64_t keep, const Numbers& losses) {
        Constant task;
        RunFolder run = from.empty() ? RunFolder::create(path) : RunFolder::resume(from);
        TrainOptions o = options(steps);
        o.save_every = 1, o.keep = keep;
        Trainer trainer(task.parameters, task, run, o);
        trainer.quiet = true;
        trainer.after_step = [&](std::int64_t step, double) { task.held_out = losses.at(std::size_t(step) - 1); };
        if (!from.empty()) trainer.resume();
        trainer.run(never);
        return std::filesystem::read_symlink(path + "/best").filename().string();
    };
    CHECK(train("", 4, 4, {3, 5, 4, 2}) == "step-000004");
    CHECK(train(path + "/step-000003", 5, 4, {0, 0, 0, 3.5, 9}) == "step-000001");
    CHECK(train(path + "/step-000004", 5, 4, {0, 0, 0, 0, 2.5}) == "step-000005");
    CHECK(train(path + "/step-000004", 6, 1, {0, 0, 0, 0, 8, 9}) == "step-000004");  // step 1 is gone
    CHECK(RunFolder::open(path).steps() == std::vector<std::int64_t>{4, 6});
    std::filesystem::remove_all(path + "/step-000004");  // the best one of all
    CHECK(train(path + "/step-000006", 7, 2, {0, 0, 0, 0, 0, 0, 8.5}) == "step-000007");
}

TEST_CASE("trainer: a resumed run keeps the schedule that it had") {
    auto moved = [](std::int64_t first_start, std::int64_t first_steps, std::int64_t until, std::int64_t then) {
        const TemporaryFolder folder;
        double value = 0;
        for (bool again : {false, true}) {
            Constant task;
            RunFolder run = again ? RunFolder::resume(folder.file("run")) : RunFolder::create(folder.file("run"));
            TrainOptions o = options(again ? then : until);
            o.schedule_start = again ? 0 : first_start;
            o.schedule_steps = again ? 0 : first_steps;
            Trainer trainer(task.parameters, task, run, o);
            trainer.quiet = true;
            if (again) trainer.resume();
            trainer.run(never);
            value = task.value(task.b, 0);
        }
        return value;
    };
    // --steps 3 sets the end of the schedule. The rate falls by a third per step, and stays at its minimum after the
    // resume.
    CHECK(moved(0, 0, 3, 6) == doctest::Approx(-0.01 * (1 + 2.0 / 3 + 1.0 / 3 + 3 * 0.03)).epsilon(2e-5));
    for (double minutes : {0.0, 5.0}) {  // a limit of time as well does not change the end
        const TemporaryFolder folder;
        Constant task;
        RunFolder run = RunFolder::create(folder.file("run"));
        TrainOptions o = options(3);
        o.schedule_start = o.schedule_steps = 0;
        o.minutes = minutes;
        Trainer trainer(task.parameters, task, run, o);
        trainer.quiet = true;
        trainer.run(never);
        CHECK(task.value(task.b, 0) == doctest::Approx(-0.01 * (1 + 2.0 / 3 + 1.0 / 3)).epsilon(2e-5));
    }
    // From step 2 on, the rate falls, and it is 0 at step 4.
    CHECK(moved(2, 4, 1, 3) == doctest::Approx(-0.01 * (1 + 1 + 1)).epsilon(2e-5));
    CHECK(moved(2, 4, 1, 4) == doctest::Approx(-0.01 * (1 + 1 + 1 + 0.5)).epsilon(2e-5));
}

TEST_CASE("trainer: a gradient whose norm is not finite ends the run, though the loss is") {
    struct Steep : Constant {
        Tensor* loss(Tape& tape, std::int64_t, std::int64_t) override {
            const double g[] = {1e30, 1e30, 1e30};  // b is 0, so the loss is 0, too
            return weighted_sum(tape, b, tape.constant("g", {3}, DType::f32, g), "loss");
        }
    } task;
    const TemporaryFolder folder;
    RunFolder run = RunFolder::create(folder.file("run"));
    Trainer trainer(task.parameters, task, run, options(3));
    trainer.quiet = true;
    CHECK_THROWS_WITH_AS(trainer.run(never), doctest::Contains("the norm of the gradient inf"), Error);
}

TEST_CASE("trainer: a parameter that a step does not use has no gradient in it, whatever it had before") {
    struct Once : Constant {
        Tensor* loss(Tape& tape, std::int64_t step, std::int64_t) override {
            const double g[] = {1, -2, 0.5}, one = 1;
            Tensor* of_b = weighted_sum(tape, b, tape.constant("g", {3}, DType::f32, g), "of_b");
            if (step > 0) return of_b;
            return add(tape, of_b, weighted_sum(tape, c, tape.constant("one", {1}, DType::f32, &one), "of_c"), "loss");
        }
        std::string next_batch(std::int64_t step) override { return step > 0 ? "without" : "with"; }
        Tensor* c = parameters.add("c", {1}, {Init::zeros, 0});
        Once() { parameters.allocate(1); }
    } task;
    const TemporaryFolder folder;
    RunFolder run = RunFolder::create(folder.file("run"));
    TrainOptions o = options(2);
    Trainer trainer(task.parameters, task, run, o);
    trainer.quiet = true;
    trainer.run(never);
    // In the second step, only the moments move c.
    const double m = o.beta1 * (1 - o.beta1) / (1 - o.beta1 * o.beta1),
                 v = o.beta2 * (1 - o.beta2) / (1 - o.beta2 * o.beta2);
    CHECK(task.value(task.c, 0) == doctest::Approx(-0.01 * (1 + m / std::sqrt(v))).epsilon(2e-5));
}

TEST_CASE("trainer: the tape knows that it trains") {
    struct Asking : Constant {
        bool training = false;
        Tensor* loss(Tape& tape, std::int64_t step, std::int64_t steps) override {
            training = tape.training();
            return Constant::loss(tape, step, steps);
        }
    } task;
    const TemporaryFolder folder;
    RunFolder run = RunFolder::create(folder.file("run"));
    Trainer trainer(task.parameters, task, run, options(1));
    trainer.quiet = true;
    trainer.run(never);
    CHECK(task.training);
}

TEST_CASE("trainer: a pattern of recompute= that names no scope is refused") {
    const TemporaryFolder folder;
    Constant task;
    RunFolder run = RunFolder::create(folder.file("run"));
    TrainOptions o = options(1);
    o.recompute = "nonsense*";
    Trainer trainer(task.parameters, task, run, o);
    trainer.quiet = true;
    CHECK_THROWS_WITH_AS(trainer.run(never), doctest::Contains("recompute=nonsense*: no scope"), BadUsage);
}

TEST_CASE("threads: a child of fork() ends, although the threads of the pool are not in it") {
    const int before = threads();
    set_threads(4);
    parallel_for(1000, 1, [](std::int64_t, std::int64_t) {});
    usleep(100000);  // the threads sleep
    const pid_t child = fork();
    if (child == 0) std::exit(0);
    int status = -1;
    for (int i = 0; i < 500 && waitpid(child, &status, WNOHANG) == 0; i++) usleep(10000);
    const bool ended = WIFEXITED(status);
    if (!ended) kill(child, SIGKILL), waitpid(child, nullptr, 0);
    CHECK(ended);
    set_threads(before);
}

#ifndef __SANITIZE_THREAD__  // ends a child of fork() that creates threads
TEST_CASE("threads: if the system refuses to create a thread, the threads that exist do the work") {
    const int before = threads();
    usleep(100000);  // the threads of the pool sleep
    const pid_t child = fork();
    if (child == 0) {
        pthread_attr_t huge;  // no thread can be created with a stack of this size
        bool good = pthread_attr_init(&huge) == 0 && pthread_attr_setstacksize(&huge, std::size_t(1) << 46) == 0 &&
                    pthread_setattr_default_np(&huge) == 0;
        int warnings = 0;
        static int* counted = &warnings;
        log_sink = [](const char*) { ++*counted; };
        set_threads(200);
        try {
            for (int again = 0; again < 2; again++) {
                std::atomic<std::int64_t> many{0};
                parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t end) { many += end - begin; });
                good = good && many == 1000;
            }
        } catch (...) {
            good = false;
        }
        std::_Exit(good && warnings == 1 ? 0 : 1);
    }
    int status = -1;
    for (int i = 0; i < 500 && waitpid(child, &status, WNOHANG) == 0; i++) usleep(10000);
    const bool ended = WIFEXITED(status);
    if (!ended) kill(child, SIGKILL), waitpid(child, nullptr, 0);
    CHECK(ended);
    CHECK(WEXITSTATUS(status) == 0);
    set_threads(before);
}
#endif

TEST_CASE("threads: what a piece throws comes to who asked, whichever piece it was") {
    const int before = threads();
    for (int count : {1, 2, 4})
        for (std::int64_t bad : {0, 250, 499, 999}) {
            set_threads(count);
            auto work = [&](std::int64_t begin, std::int64_t end) {
                if (begin <= bad && bad < end) throw Error("this piece");
            };
            CHECK_THROWS_WITH_AS(parallel_for(1000, 1, work), "this piece", Error);
            std::int64_t sum = 0;  // the pool of threads still works
            parallel_for(1, 1, [&](std::int64_t, std::int64_t) { sum++; });
            CHECK(sum == 1);
            std::atomic<std::int64_t> many{0};
            parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t end) { many += end - begin; });
            CHECK(many == 1000);
        }
    set_threads(before);
}
