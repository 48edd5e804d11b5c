// SPDX-License-Identifier: MIT
// Tests ./train as users stop it and resume it. Every option that changes a run must be restored from the disk.
#include <cstring>
#include <doctest/doctest.h>

#include <sys/wait.h>

#include "data/grammar.h"
#include "data/text.h"
#include "tests/cuda/fake_device.h"
#include "tests/train/files.h"

using namespace masquerade;
namespace fs = std::filesystem;

namespace {

const bool programs = fs::exists(beside_the_tests("train"));

// A folder in which programs run, with its own texts, pairs and settings.
struct Place : TemporaryFolder {
    Place() {
        std::string lines, pairs, held_out;
        for (const std::string& line : grammar_questions(3, 300))
            lines += line + "\n", pairs += line + "\t" + line + " !\n";
        for (const std::string& line : grammar_questions(4, 20)) held_out += line + "\n";
        write("text", lines);
        write("pairs", pairs);
        write("held_out", held_out);
        write("settings", "dropout = 0.2\nseed = 11\n");
    }
    struct Ended {
        int status;
        std::string error;          // all of standard error
        std::string line() const {  // the line that begins with "error: "
            const std::size_t begin = std::min(error.find("error: "), error.size());
            return error.substr(begin, error.find('\n', begin) - begin);
        }
    };
    Ended run(const std::string& program, const std::string& arguments) const {
        const std::string command = "cd '" + path + "' && '" + beside_the_tests(program) + "' " + arguments +
                                    (arguments.find('<') == arguments.npos ? " < /dev/null" : "") +
                                    " > report 2> error";
        const int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_bytes(file("error"))};
    }
    void expect(const std::string& program, const std::string& arguments) const {
        const Ended ended = run(program, arguments);
        INFO(program, " ", arguments, "\n", ended.error);
        REQUIRE(ended.status == 0);
    }
    // Returns the numbers of all weights of a step: the file without its header, which contains the settings of the
    // run.
    std::string weights(const std::string& step) const {
        const std::string all = read_bytes(file(step + "/model.safetensors"));
        std::uint64_t header = 0;
        REQUIRE(all.size() > sizeof header);
        std::memcpy(&header, all.data(), sizeof header);
        REQUIRE(all.size() > sizeof header + header);
        return all.substr(sizeof header + header);
    }
    // Whether two files have the same bytes. Both files must exist.
    bool same(const std::string& a, const std::string& b) const { return read_bytes(file(a)) == read_bytes(file(b)); }
};

const std::string small =
    "layers=3 width=16 heads=2 inner=32 vocabulary=150 batch_tokens=90 warmup=2 save_every=3 --threads 1 ";
const std::string latents = "latent_layers=2 latent_size=8 prior_sentences=60 max_length=20 ";
const std::string six = small + "--steps 6 ", of_univae = six + latents;

// Trains six steps without a stop, and in a copy of the folder, from the checkpoint of step 3 on. Checks that every
// file of step 6 is the same. The run's own schedule also ends at step 6, so `limit` may be empty.
void check(const Place& place, const std::string& arguments, const std::string& limit = " --steps 6") {
    INFO("./train ", arguments);
    fs::remove_all(place.file("straight"));
    fs::remove_all(place.file("halves"));
    place.expect("train", arguments + " --out straight");
    fs::copy(place.file("straight"), place.file("halves"),
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::remove_all(place.file("halves/step-000006"));
    place.expect("train", "--resume halves/step-000003 --threads 2" + limit);
    int files = 0;
    for (const auto& entry : fs::directory_iterator(place.file("straight/step-000006"))) {
        const std::string name = entry.path().filename().string();
        INFO(name);
        CHECK(place.same("straight/step-000006/" + name, "halves/step-000006/" + name));
        files++;
    }
    CHECK(files >= 3);
    CHECK(place.same("straight/samples.txt", "halves/samples.txt"));
}

}  // namespace

#define PROGRAM_CASE(name) \
    TEST_CASE(name* doctest::skip(!programs) * doctest::description("needs the programs beside the tests"))

PROGRAM_CASE("resume: every option of ./train that shapes a run") {
    const Place place;
    for (const char* options :
         {"--data text --seed 7", "--data text --precision f32", "--data text --precision bf16 cased=true",
          "--data text --config settings", "--data text --dev held_out --seed 3", "--dev held_out",
          "--data text latent=gaussian beta=2 kl_schedule=cyclical", "--data pairs pairs=true conditional=true"})
        check(place, of_univae + options);
    place.expect("tokenize", "--train 120 --vocab vocabulary < text");
    check(place, of_univae + "--data text --vocab vocabulary --seed 5");
    for (const std::string model : {"unilm ", "seq2seq "}) {
        check(place, model + six + "--data pairs --seed 7 max_target=15");
        place.expect("train", model + six + "--data pairs --seed 9 cased=true max_target=11 --out first");
        check(place, model + "--init first --data pairs save_every=3 --threads 1 --steps 6 --seed 2 batch_tokens=90");
        fs::remove_all(place.file("first"));
    }
}

PROGRAM_CASE("resume: the tokenizer that --init brings stays with the run") {
    const Place place;
    place.expect("train", "unilm " + six + "--data pairs --out first");
    place.expect("inspect", "checkpoint first --save folder");
    fs::remove(place.file("folder/tokenizer.json"));  // the other files must be enough to find the difference
    place.write("folder/tokenizer_config.json",
                "{\"do_lower_case\": true, \"strip_accents\": false, \"tokenize_chinese_chars\": false, "
                "\"tokenizer_class\": \"BertTokenizer\"}");
    const std::string started = "unilm --init folder --data pairs save_every=3 --threads 1 --steps 6 batch_tokens=90 ";
    check(place, started);
    for (const char* run : {"straight", "halves"}) {
        const std::string kept = read_bytes(place.file(std::string(run) + "/tokenizer.json"));
        for (const char* option :
             {"\"strip_accents\": false", "\"handle_chinese_chars\": false", "\"lowercase\": true"})
            CHECK(kept.find(option) != std::string::npos);
    }
    place.expect("train",
                 "unilm --init straight --data pairs --steps 1 --out next");  // a run that starts from it keeps it
    CHECK(place.same("next/tokenizer.json", "straight/tokenizer.json"));
}

PROGRAM_CASE("resume: --fit-prior gives the prior that the run ended with, whatever its seed") {
    const Place place;
    place.expect("train", of_univae + "--data text --seed 7 --out run");
    const std::string prior = place.file("run/step-000006/prior.safetensors"), first = read_bytes(prior);
    fs::remove(prior);
    place.expect("train", "--fit-prior run");
    const bool same_prior = read_bytes(prior) == first;
    CHECK(same_prior);
}

PROGRAM_CASE("resume: --steps alone sets the schedule, so that the rate falls and a Gaussian's KL gets its weight") {
    const Place place;
    for (const char* beta : {"0", "1000"})
        place.expect("train",
                     of_univae + "--data text latent=gaussian kl_schedule=linear beta=" + beta + " --out beta" + beta);
    CHECK(place.weights("beta0/step-000006") != place.weights("beta1000/step-000006"));
}

PROGRAM_CASE("resume: without a limit a run goes on to the end of its schedule, as if nobody had stopped it") {
    const Place place;
    // With a schedule from the checkpoint; below, with a schedule from the settings.
    check(place, of_univae + "--data text", "");
    const std::string nine = small + latents + "--data text schedule_steps=9 ";
    place.expect("train", nine + "--steps 9 --out whole");
    place.expect("train", nine + "--steps 5 --out stopped");
    place.expect("train", "--resume stopped");
    CHECK(place.same("whole/step-000009/model.safetensors", "stopped/step-000009/model.safetensors"));
    CHECK_FALSE(fs::exists(place.file("stopped/step-000010")));
}

PROGRAM_CASE("resume: what the optimiser does may change, is kept, and is said in run.json; nothing else may") {
    const Place place;
    place.expect("train", of_univae + "--data text --out run");
    place.expect("train", "--resume run learning_rate=0.001 clip=0.5 schedule_steps=20 --steps 9");
    const std::string record = read_bytes(place.file("run/run.json")),
                      config = read_bytes(place.file("run/step-000009/config.json"));
    CHECK(record.find("\"learning_rate\": \"0.001\"") != std::string::npos);
    CHECK(config.find("\"learning_rate\": 0.001") != std::string::npos);
    CHECK(config.find("\"schedule_steps\": 20") != std::string::npos);
    const Place::Ended refused = place.run("train", "--resume run width=32");
    CHECK(refused.status == 2);
    CHECK_SAYS(refused.line(), "width cannot be changed; only learning_rate, ");
}

PROGRAM_CASE("resume: an older step that is refused, or has no step to do, does not rewind the run") {
    const Place place;
    place.expect("train", of_univae + "--data text --out run");
    const auto latest = [&] { return fs::read_symlink(place.file("run/latest")).filename().string(); };
    const std::string record = read_bytes(place.file("run/run.json")), log = read_bytes(place.file("run/log.jsonl"));
    CHECK(place.run("train", "--resume run/step-000003 recompute=nonsense --steps 9").status == 2);
    place.expect("train", "--resume run/step-000003 learning_rate=0.001 --steps 2");
    CHECK(latest() == "step-000006");
    CHECK(read_bytes(place.file("run/run.json")) == record);
    CHECK(read_bytes(place.file("run/log.jsonl")) == log);
    place.expect("train", "--resume run/step-000003 --steps 4");
    CHECK(latest() == "step-000004");
    CHECK(read_bytes(place.file("run/run.json")).find("\"resumed\"") != std::string::npos);
    CHECK_FALSE(fs::exists(place.file("run/step-000006")));
}

PROGRAM_CASE("resume: a held-out text or a vocabulary that has changed is refused in one line") {
    const Place place;
    place.expect("train", of_univae + "--dev held_out --out grammar");
    place.expect("train", of_univae + "--data text --out run");
    place.write("held_out", "another line\n");
    std::string words = read_bytes(place.file("run/vocab.txt"));
    std::swap(words[words.size() - 2], words[words.size() - 4]);
    place.write("run/vocab.txt", words);
    for (const char* arguments : {"--resume grammar", "--resume run"}) {
        const Place::Ended refused = place.run("train", std::string(arguments) + " --steps 9");
        INFO(arguments);
        CHECK(refused.status == 1);
        CHECK_SAYS(refused.line(), "has changed since the run was started");
    }
}
