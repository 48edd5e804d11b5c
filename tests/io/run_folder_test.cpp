// SPDX-License-Identifier: MIT
#include "engine/io/run_folder.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/base/random.h"
#include "engine/io/file.h"
#include "engine/io/safetensors.h"
#include "tests/train/files.h"

using namespace masquerade;
namespace fs = std::filesystem;

namespace {

// Writes a checkpoint in which every number is the step.
void write_checkpoint(const std::string& folder, std::int64_t step, std::size_t count) {
    std::vector<double> numbers(count, double(step));
    std::vector<std::uint64_t> state = {std::uint64_t(step)};
    write_file(folder + "/config.json", nlohmann::json{{"step", step}}.dump());
    write_safetensors(folder + "/model.safetensors", {stored("w", numbers)});
    write_safetensors(folder + "/state.safetensors", {stored("step", state), stored("m", numbers)});
}

void save(RunFolder& run, std::int64_t step, bool best = false, std::size_t count = 1000) {
    auto write = [&](const std::string& folder) { write_checkpoint(folder, step, count); };
    run.save_step(step, write, best);
}

// Returns the step that all numbers of the checkpoint contain, or -1 if they differ.
std::int64_t step_held_by(const std::string& folder) {
    TensorFile model(folder + "/model.safetensors"), state(folder + "/state.safetensors");
    std::int64_t step = read_json(folder + "/config.json")["step"].get<std::int64_t>();
    for (double x : model.reals("w"))
        if (x != double(step)) return -1;
    for (double x : state.reals("m"))
        if (x != double(step)) return -1;
    return state.integers("step")[0] == std::uint64_t(step) ? step : -1;
}

std::string target_of(const std::string& link) { return fs::read_symlink(link).string(); }

std::vector<std::string> hidden_names(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().filename().string()[0] == '.') names.push_back(entry.path().filename().string());
    return names;
}

// Calls f() while standard error goes to a file, and returns what was written to standard error.
template <class F>
std::string warnings_of(const std::string& path, F f) {
    int old = dup(2);
    FILE* file = std::fopen(path.c_str(), "w");
    dup2(fileno(file), 2);
    f();
    dup2(old, 2);
    ::close(old);
    std::fclose(file);
    return read_file(path);
}

// Runs in a child process. Resumes the run and saves steps until the process is killed. After each step, writes a byte
// to `progress`.
[[noreturn]] void save_until_killed(const std::string& path, int progress) {
    try {
        RunFolder run = RunFolder::resume(path);
        std::int64_t step = run.latest_step();
        run.rewind(step);
        for (bool told = true; told; told = ::write(progress, "+", 1) == 1) {
            step++;
            run.append_log(nlohmann::json{{"step", step}}.dump());
            save(run, step, step % 3 == 0, 20000);
        }
    } catch (...) {
    }
    _exit(9);
}

// Starts such a child, and kills it at a random moment: during its first steps in the folder if `early` is true,
// otherwise during its third save. Returns false if the child failed.
bool save_and_kill(const std::string& path, bool early, Sequence& moments) {
    int progress[2];
    if (pipe(progress) != 0) return false;
    pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
        ::close(progress[0]);
        save_until_killed(path, progress[1]);
    }
    ::close(progress[1]);
    using Clock = std::chrono::steady_clock;
    char byte;
    bool good = true;
    std::chrono::microseconds cycle(4000);
    if (!early) {
        good = good && ::read(progress[0], &byte, 1) == 1;
        Clock::time_point begin = Clock::now();
        good = good && ::read(progress[0], &byte, 1) == 1;
        cycle = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    }
    usleep(moments.below(std::uint32_t(std::min<std::int64_t>(cycle.count(), 500000)) + 1));
    int status = 0;
    kill(child, SIGKILL);
    good = waitpid(child, &status, 0) == child && WIFSIGNALED(status) && good;
    ::close(progress[0]);
    return good;
}

}  // namespace

TEST_CASE("run folder: new ones are numbered, existing ones refused") {
    TemporaryFolder folder;
    std::string runs = folder.file("a/runs");
    RunFolder first = RunFolder::create_next(runs, "univae"), second = RunFolder::create_next(runs, "univae");
    CHECK(first.path() == runs + "/univae-001");
    CHECK(second.path() == runs + "/univae-002");
    fs::create_directory(runs + "/univae-041");
    fs::create_directory(runs + "/univae-x");
    CHECK(RunFolder::create_next(runs, "univae").path() == runs + "/univae-042");
    CHECK(RunFolder::create_next(runs, "lm").path() == runs + "/lm-001");

    std::string path = folder.file("mine");
    { RunFolder::create(path).write("run.json", "{}"); }
    CHECK(read_file(path + "/run.json") == "{}");
    CHECK_SAYS(message_of<BadInput>([&] { RunFolder::create(path); }),
               "holds something already; continue with --resume " + path);
    CHECK_SAYS(message_of<BadInput>([&] { RunFolder::create(path + "/run.json"); }), "cannot make the folder");
    CHECK_SAYS(message_of<BadInput>([&] { RunFolder::open(folder.file("absent")); }), "there is no run folder");
    CHECK_SAYS(message_of<BadInput>([&] { RunFolder::open(path + "/run.json"); }), "is a file; a run folder");
    CHECK_SAYS(message_of<BadInput>([&] { RunFolder::open(path).latest_step(); }), "holds no checkpoint");
}

TEST_CASE("run folder: steps are kept whole, the last three and the best") {
    TemporaryFolder folder;
    std::string path = folder.file("run");
    RunFolder run = RunFolder::create(path);
    CHECK_SAYS(message_of<BadInput>([&] { RunFolder::resume(path); }), "another program is training into " + path);
    for (std::int64_t step = 100; step <= 600; step += 100) save(run, step, step == 200);
    CHECK(run.steps() == std::vector<std::int64_t>{200, 400, 500, 600});
    CHECK(target_of(path + "/latest") == "step-000600");
    CHECK(target_of(path + "/best") == "step-000200");
    CHECK(hidden_names(path).empty());
    save(run, 700, true);
    CHECK(run.steps() == std::vector<std::int64_t>{500, 600, 700});
    for (std::int64_t step : run.steps()) CHECK(step_held_by(run.step_folder(step)) == step);
    CHECK(RunFolder::step_name(1234567) == "step-1234567");

    for (std::string name : {"", "/", "/latest", "/latest/", "/best", "/step-000700", "/step-000700/", "/../run/."}) {
        RunFolder opened = RunFolder::open(path + name);
        CHECK(opened.latest_step() == 700);
        CHECK(fs::equivalent(opened.path(), path));
    }
    RunFolder chosen = RunFolder::open(path + "/step-000500");
    CHECK(chosen.latest_step() == 500);

    // Links of the user, from another run and from anywhere: the step that they lead to is opened.
    const std::string other = folder.file("other");
    RunFolder beside = RunFolder::create(other);
    save(beside, 500);
    for (const auto& [link, target] :
         {std::pair(other + "/theirs", "../run/step-000500"), std::pair(folder.file("champion"), "run/step-000500"),
          std::pair(folder.file("leader"), "run/best")}) {
        fs::create_symlink(target, link);
        CAPTURE(link);
        RunFolder opened = RunFolder::open(link);
        CHECK(fs::equivalent(opened.path(), path));
        CHECK(opened.latest_step() == (link == folder.file("leader") ? 700 : 500));
    }
    CHECK_THROWS_AS(save(chosen, 800), Error);

    save(run, 700, false, 5);  // saves the step again; the new checkpoint replaces the old one
    CHECK(TensorFile(path + "/latest/model.safetensors").reals("w").size() == 5);
    CHECK(hidden_names(path).empty());
}

TEST_CASE("run folder: before its first checkpoint a run is in nobody's way") {
    TemporaryFolder folder;
    std::string path = folder.file("run");
    const auto refusal = [&] { return message_of<BadInput>([&] { RunFolder::create(path); }); };
    for (int i = 0; i < 2; i++) {
        RunFolder run = RunFolder::create(path);
        CHECK(fs::is_empty(path));
        run.begin(text("{\"i\":", i, "}"));
        run.write("vocab.txt", "a\n");
        run.append_log("{\"step\":1}");
        run.append_samples(1, "a");
        fs::create_directories(path + "/.new-step-000040/x");
        CHECK_SAYS(refusal(), "another program is training into");
    }
    CHECK_SAYS(message_of<BadInput>([&] { RunFolder::resume(path).latest_step(); }),
               "was the run stopped before its first? Start it again; --out may name this folder");
    write_file(path + "/mine", "");
    CHECK_SAYS(refusal(), "holds something already");
    CHECK(read_file(path + "/vocab.txt") == "a\n");
    fs::remove(path + "/mine");
    {
        RunFolder run = RunFolder::create(path);
        run.begin("{}");
        CHECK(!fs::exists(path + "/run.json"));
        save(run, 1);
        CHECK(hidden_names(path).empty());
        CHECK(read_file(path + "/run.json") == "{}");
    }
    CHECK_SAYS(refusal(), "holds something already; continue with --resume");
    // The state after a crash between saving the step and writing its record.
    fs::rename(path + "/run.json", path + "/.run.json");
    CHECK_SAYS(refusal(), "holds something already; continue with --resume");
    CHECK(RunFolder::open(path).latest_step() == 1);
    CHECK(RunFolder::open(path).record_file() == path + "/.run.json");
    CHECK(RunFolder::resume(path).latest_step() == 1);
    CHECK(RunFolder::open(path).record_file() == path + "/run.json");
    CHECK(read_file(path + "/run.json") == "{}");
    fs::remove_all(path);
    fs::create_directories(path + "/.old-notes");
    CHECK_SAYS(refusal(), "holds something already");  // the folder was not made by a run
    fs::rename(path + "/.old-notes", path + "/.new-o.tsv");
    write_file(path + "/mine", "");
    CHECK_SAYS(refusal(), "holds something already");
    fs::remove_all(path);
    write_file(path, "");
    CHECK_SAYS(message_of<BadInput>([&] { RunFolder::expect_free(path); }), "a file has that name");
    write_file(folder.file("vocab.txt"), "");  // a file that belongs to no run
    CHECK_SAYS(message_of<BadInput>([&] { RunFolder::create(folder.path); }), "holds something already");
    for (const char* name : {"step-000010", "step-000010/", "step-1234567", "latest", "best"})
        CHECK_SAYS(message_of<BadInput>([&] { RunFolder::create(folder.file(name)); }),
                   "is the name of a checkpoint in a run folder");
    CHECK(!fs::exists(folder.file("step-000010")));
}

TEST_CASE("run folder: a copy whose links have become folders is the same run") {
    TemporaryFolder folder;
    const std::string original = folder.file("run"), path = folder.file("copy");
    {
        RunFolder run = RunFolder::create(original);
        for (std::int64_t step = 100; step <= 500; step += 100) save(run, step, step == 200);
    }
    { RunFolder::resume(original).rewind(400); }  // now `latest` is not the newest step
    // Copies the targets of links, so that `latest` becomes a folder.
    fs::copy(original, path, fs::copy_options::recursive);
    REQUIRE(fs::is_directory(fs::symlink_status(path + "/latest")));
    const auto says = [&](const std::string& which, std::int64_t step) {
        std::int64_t found = -1;
        const std::string warning =
            warnings_of(folder.file("stderr"), [&] { found = RunFolder::open(path + which).latest_step(); });
        CHECK(found == step);
        CHECK(warning.empty());
    };
    says("", 400);
    says("/latest", 400);
    says("/best/", 200);
    REQUIRE(fs::is_directory(fs::symlink_status(path + "/latest")));  // opening a run for reading changes nothing
    {
        RunFolder run = RunFolder::resume(path);
        CHECK(run.latest_step() == 400);
        CHECK(target_of(path + "/latest") == "step-000400");
        CHECK(target_of(path + "/best") == "step-000200");
        run.rewind(400);
        for (std::int64_t step : {600, 700, 800}) save(run, step);
        CHECK(run.steps() == std::vector<std::int64_t>{200, 600, 700, 800});
    }
    fs::remove(path + "/latest");
    fs::copy(original + "/step-000300", path + "/latest");  // now `latest` is not a copy of any step of this run
    CHECK_SAYS(message_of<BadInput>([&] { RunFolder::resume(path); }),
               "latest is a folder, but its files belong to no step beside it");
    CHECK_SAYS(message_of<BadInput>([&] { RunFolder::open(path + "/latest"); }),
               "latest is a folder, but its files belong to no step beside it");
    fs::remove_all(path + "/latest");
    CHECK(RunFolder::resume(path).latest_step() == 800);

    // A run folder may itself be named `best`.
    fs::rename(original, folder.file("best"));
    write_file(folder.file("best/run.json"), "{}");
    CHECK(RunFolder::open(folder.file("best")).latest_step() == 400);
}

TEST_CASE("run folder: without a latest the newest complete step, with one warning; a damaged latest is refused") {
    TemporaryFolder folder;
    std::string path = folder.file("run");
    {
        RunFolder run = RunFolder::create(path);
        for (std::int64_t step : {1, 2, 3}) save(run, step);
    }
    auto latest = [&](std::int64_t expected, const std::string& because) {
        RunFolder run = RunFolder::open(path);
        std::int64_t found = -1;
        std::string warning = warnings_of(folder.file("stderr"), [&] { found = run.latest_step(); });
        CHECK(found == expected);
        CHECK_SAYS(warning.substr(0, warning.find('\n')), because);
        CHECK_SAYS(warning.substr(0, warning.find('\n')), "; using " + run.step_folder(expected));
        CHECK(std::count(warning.begin(), warning.end(), '\n') == 1);
    };
    fs::remove(path + "/latest");
    latest(3, "warning: " + path + "/latest is missing or no link");
    fs::create_symlink("step-000009", path + "/latest");
    latest(3, "leads to step-000009, which is no step");
    fs::remove(path + "/latest");
    fs::create_symlink("somewhere", path + "/latest");
    latest(3, "leads to somewhere, which is no step");
    fs::remove(path + "/latest");
    fs::create_symlink("step-000003", path + "/latest");
    fs::resize_file(path + "/step-000003/model.safetensors", 500);
    auto damaged = [&] { return message_of<BadInput>([&] { RunFolder::open(path).latest_step(); }); };
    CHECK_SAYS(damaged(), "step-000003/model.safetensors is not a whole safetensors file");
    CHECK_SAYS(damaged(), "An earlier one is complete: " + path + "/step-000002");
    CHECK(RunFolder::open(path + "/step-000002").latest_step() == 2);

    // Only a resumed run needs the state, so a run without it can still be opened.
    fs::remove(path + "/step-000002/state.safetensors");
    CHECK_SAYS(damaged(), "An earlier one is complete: " + path + "/step-000002");
    std::string going_on = message_of<BadInput>([&] { RunFolder::resume(path).latest_step(); });
    CHECK_SAYS(going_on, "An earlier one is complete: " + path + "/step-000001");

    std::string chosen = path + "/step-000003";
    auto refusal = [&] { return message_of<BadInput>([&] { RunFolder::open(chosen).latest_step(); }); };
    CHECK_SAYS(refusal(), "It was cut off");
    fs::resize_file(chosen + "/model.safetensors", 0);
    CHECK_SAYS(refusal(), chosen + "/model.safetensors is not a whole safetensors file: it is empty");
    fs::remove(chosen + "/model.safetensors");
    CHECK_SAYS(refusal(), "cannot open " + chosen + "/model.safetensors: No such file or directory");
    write_file(chosen + "/config.json", "{\"a\": ");
    CHECK_SAYS(refusal(), chosen + "/config.json is not JSON: it ends in the middle");
    write_file(chosen + "/config.json", "");
    CHECK_SAYS(refusal(), chosen + "/config.json is empty");
    write_file(chosen + "/config.json", "[]");
    CHECK_SAYS(refusal(), "config.json is a list of 0; an object is expected");
    for (std::int64_t step : {1, 2}) fs::remove_all(path + "/" + RunFolder::step_name(step));
    CHECK_SAYS(message_of<BadInput>([&] { RunFolder::open(path).latest_step(); }), "holds no complete checkpoint");
}

TEST_CASE("run folder: a full disk loses nothing") {
    TemporaryFolder folder;
    std::string path = folder.file("run");
    RunFolder run = RunFolder::create(path);
    std::string says;
    auto full_at = [&](const std::string& name) {
        auto write = [&](const std::string& where) {
            fs::create_symlink("/dev/full", where + "/" + name);
            write_checkpoint(where, 200, 10);
        };
        says = message_of<BadInput>([&] { run.save_step(200, write, true); });
    };
    const bool full_disk = has_full_disk();
    if (full_disk) {
        full_at("model.safetensors");
        CHECK_SAYS(says, "No space left on device; there is no earlier checkpoint");
        CHECK(hidden_names(path).empty());
    }
    save(run, 100, true);
    for (const char* name : {"config.json", "model.safetensors", "state.safetensors"}) {
        if (!full_disk) break;
        full_at(name);
        CHECK_SAYS(says, "cannot write " + path + "/step-000200/" + name + ": No space left on device");
        CHECK_SAYS(says,
                   "; the earlier checkpoint step-000100 is intact: make room and continue with --resume " + path);
        CHECK(run.steps() == std::vector<std::int64_t>{100});
        CHECK(target_of(path + "/latest") == "step-000100");
        CHECK(target_of(path + "/best") == "step-000100");
        CHECK(hidden_names(path).empty());
        CHECK(step_held_by(path + "/latest") == 100);
    }

    // Limits the size of files to several values, so that writing stops at different places, as on a full disk. Both
    // the checkpoint and the log must report it.
    auto before = std::signal(SIGXFSZ, SIG_IGN);
    rlimit old{}, small{};
    getrlimit(RLIMIT_FSIZE, &old);
    run.append_log("{\"step\":1}");
    const std::string long_line = "{" + std::string(10000, ' ') + "\"step\":2}";
    for (std::size_t limit = 0; limit < 8000; limit += 601) {
        small = old;
        small.rlim_cur = limit;
        setrlimit(RLIMIT_FSIZE, &small);
        std::string save_says = message_of<BadInput>([&] { save(run, 200); });
        std::string log_says = message_of<BadInput>([&] { run.append_log(long_line); });
        setrlimit(RLIMIT_FSIZE, &old);
        CHECK_SAYS(save_says, "File too large; the earlier checkpoint step-000100 is intact");
        CHECK_SAYS(log_says, "cannot write " + path + "/log.jsonl: File too large");
        CHECK(step_held_by(path + "/latest") == 100);
        CHECK(hidden_names(path).empty());
        CHECK(read_file(path + "/log.jsonl") == "{\"step\":1}\n");
    }
    std::signal(SIGXFSZ, before);
    save(run, 200);
    CHECK(step_held_by(path + "/latest") == 200);

    // If one of the last renames fails, the links are unchanged, because they are swapped after the renames.
    write_file(path + "/step-000300", "a file");
    CHECK_SAYS(message_of<BadInput>([&] { save(run, 300, true); }), "checkpoint step-000200 is intact");
    CHECK(target_of(path + "/latest") == "step-000200");
    CHECK(target_of(path + "/best") == "step-000100");
    fs::remove(path + "/step-000300");
    fs::remove(path + "/best");
    fs::create_directories(path + "/best/of");
    CHECK_SAYS(message_of<BadInput>([&] { save(run, 300, true); }), "cannot link " + path + "/best: ");
    CHECK(target_of(path + "/latest") == "step-000200");

    CHECK_SAYS(message_of<BadInput>([&] { run.save_step(300, [](const std::string&) {}); }),
               "config.json: No such file");
    CHECK_THROWS_AS(run.save_step(300, [](const std::string&) { throw std::runtime_error("of the caller"); }),
                    std::runtime_error);
    CHECK(hidden_names(path).empty());
    CHECK(target_of(path + "/latest") == "step-000200");
}

TEST_CASE("run folder: the log of a resumed run is whole") {
    TemporaryFolder folder;
    std::string path = folder.file("run");
    {
        RunFolder run = RunFolder::create(path);
        run.append_log("{\"note\":\"begin\"}");
        for (std::int64_t step : {10, 20, 30}) {
            run.append_log(nlohmann::json{{"step", step}, {"loss", 1.0 / double(step)}}.dump());
            run.append_samples(step, "step 99 is what a model may say\n\nlast");
            save(run, step);
        }
        CHECK_THROWS_AS(run.append_log("{\n}"), Error);
    }
    std::string log = read_file(path + "/log.jsonl"), samples = read_file(path + "/samples.txt");
    CHECK(samples.substr(0, 51) == "step 10\n  step 99 is what a model may say\n\n  last\ns");
    fs::create_directories(path + "/.new-step-000040/x");
    fs::create_symlink("step-000040", path + "/.new-latest");
    write_file(path + "/log.jsonl", log + "{\"step\":31}\n{\"step\":3");
    write_file(path + "/samples.txt", samples + "step 31\n  lost\nst");

    {
        RunFolder run = RunFolder::resume(path);
        CHECK(hidden_names(path).empty());
        run.rewind(run.latest_step());
        CHECK(read_file(path + "/log.jsonl") == log);
        CHECK(read_file(path + "/samples.txt") == samples);
    }
    write_file(path + "/log.jsonl", log.substr(0, 17) + std::string("\0\0\0\n", 4) + log.substr(17));
    {
        RunFolder run = RunFolder::resume(path + "/step-000010");
        CHECK(run.latest_step() == 10);
        std::string warning = warnings_of(folder.file("stderr"), [&] { run.rewind(10); });
        CHECK(warning == "warning: " + path + "/log.jsonl: 1 lines that are not JSON were dropped\n");
        CHECK(target_of(path + "/latest") == "step-000010");
        CHECK(read_file(path + "/log.jsonl") == "{\"note\":\"begin\"}\n{\"loss\":0.1,\"step\":10}\n");
        CHECK(read_file(path + "/samples.txt") == "step 10\n  step 99 is what a model may say\n\n  last\n");
        save(run, 15);  // this deletes the later steps, which were saved before the rewind
        CHECK(run.steps() == std::vector<std::int64_t>{10, 15});
        CHECK(target_of(path + "/latest") == "step-000015");
        CHECK(run.latest_step() == 15);
    }
    CHECK_THROWS_AS(RunFolder::open(path).rewind(10), Error);
}

TEST_CASE("run folder: killed at any moment, latest is complete") {
    TemporaryFolder folder;
    std::string path = folder.file("run");
    {
        RunFolder run = RunFolder::create(path);
        save(run, 1);
    }
    Sequence moments(7, "kill");
    std::int64_t last = 1, leftovers = 0;
    for (int round = 0; round < 30; round++) {
        REQUIRE(save_and_kill(path, round % 3 == 0, moments));
        leftovers += std::int64_t(hidden_names(path).size());

        RunFolder run = RunFolder::open(path);
        std::int64_t step = -1;
        std::string warning = warnings_of(folder.file("stderr"), [&] { step = run.latest_step(); });
        CHECK(warning.empty());
        CHECK(step >= last);
        CHECK(step_held_by(run.step_folder(step)) == step);
        CHECK(step_held_by(path + "/latest") == step);
        if (fs::is_symlink(path + "/best")) CHECK(step_held_by(path + "/best") % 3 == 0);
        for (std::int64_t other : run.steps()) CHECK(step_held_by(run.step_folder(other)) == other);
        last = step;
    }
    CHECK(last > 40);      // steps were saved between the kills
    CHECK(leftovers > 5);  // some kills hit in the middle of a save
    RunFolder run = RunFolder::resume(path);
    CHECK(hidden_names(path).empty());
    run.rewind(last);
    std::int64_t expected = 2;
    std::string log = read_file(path + "/log.jsonl");
    for (std::size_t begin = 0, end; (end = log.find('\n', begin)) != log.npos; begin = end + 1, expected++)
        CHECK(nlohmann::json::parse(log.substr(begin, end - begin))["step"] == expected);
    CHECK(expected == last + 1);
}
