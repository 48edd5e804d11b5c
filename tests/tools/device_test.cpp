// SPDX-License-Identifier: MIT
// Tests --device as a user sees it: either one line says why it is refused, or one note says that the CPU is used.
#include <doctest/doctest.h>

#include <sys/wait.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "tests/cuda/fake_device.h"
#include "tools/device.h"

using namespace masquerade;

namespace {

struct Run {
    int status = -1;
    std::vector<std::string> lines;  // the lines of standard error
    int count(const std::string& part) const {
        int n = 0;
        for (const std::string& line : lines) n += line.find(part) != std::string::npos;
        return n;
    }
};

// Runs PROGRAM ARGUMENTS with MASQUERADE_CUDA=library or, if `library` is empty, without this variable. Standard output
// is dropped.
Run run(const std::string& library, const std::string& program, const std::string& arguments) {
    TemporaryFolder folder;
    const std::string error = folder.file("error");
    std::string command = "env -u MASQUERADE_CUDA ";
    if (!library.empty()) command += "MASQUERADE_CUDA='" + library + "' ";
    command += "'" + beside_the_tests(program) + "' " + arguments + " > /dev/null 2> '" + error + "' < /dev/null";
    Run result;
    int status = std::system(command.c_str());
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::ifstream file(error);
    for (std::string line; std::getline(file, line);) result.lines.push_back(line);
    return result;
}

// Returns the message of a program that must fail at once, with exit status 1 and one line.
std::string failure(const std::string& library, const std::string& program, const std::string& arguments) {
    Run r = run(library, program, arguments);
    CHECK(r.status == 1);
    CHECK(r.lines.size() == 1);
    return r.lines.empty() ? "" : r.lines[0];
}

// A folder with a text and, after train(), a run.
struct Trained : TemporaryFolder {
    std::string read(const std::string& name) const {
        std::ifstream in(file("run") + "/" + name);
        std::ostringstream all;
        all << in.rdbuf();
        return all.str();
    }
    std::string record() const { return read("run.json"); }
    // Trains two steps of a small model.
    Run train(const std::string& library, const std::string& options) const {
        std::string sentences;
        for (int i = 0; i < 200; i++) sentences += text("what is the price of number ", i, " in the house ?\n");
        write("text", sentences);
        return run(library, "train",
                   options +
                       " layers=3 latent_layers=2 width=32 inner=64 heads=2 vocabulary=300 batch_tokens=120 "
                       "prior_sentences=0 schedule_start=1 schedule_steps=2 --steps 2 --data '" +
                       file("text") + "' --out '" + file("run") + "'");
    }
};
Run train(const std::string& library, const std::string& options) { return Trained().train(library, options); }

// Returns the weights after three steps of a model that writes targets, or of UniVAE; "" if training fails.
std::string weights(const std::string& model, const std::string& device) {
    Trained trained;
    std::string lines;
    for (int i = 0; i < 60; i++)
        lines += text("the price of number ", i, model == "univae" ? " or " : "\t", i, " in all\n");
    trained.write("text", lines);
    std::string options = "layers=3 latent_layers=2 prior_sentences=0";
    if (model == "unilm") options = "layers=2";
    if (model == "seq2seq") options = "layers=1 decoder_layers=1";
    const Run r = run(beside_the_tests("fake_cuda.so"), "train",
                      text(model, ' ', options, " --device ", device,
                           " width=32 inner=64 heads=2 vocabulary=100 batch_tokens=120 schedule_start=1 "
                           "schedule_steps=2 --precision bf16 --steps 3 --data '",
                           trained.file("text"), "' --out '", trained.file("run"), "'"));
    INFO(model, " ", device, ": ", r.lines.empty() ? "" : r.lines.back());
    CHECK(r.status == 0);
    CHECK(trained.record().find("\"device\": \"" + device + "\"") != std::string::npos);
    return trained.read("step-000003/model.safetensors");
}

// `make` alone builds ./train, but not ./bench.
const bool programs =
    std::filesystem::exists(beside_the_tests("train")) && std::filesystem::exists(beside_the_tests("bench"));
const bool built = std::filesystem::exists(beside_the_tests("libmasquerade_cuda.so"));

}  // namespace

TEST_CASE("--device cuda: exit status 1 and one line" * doctest::skip(!programs) *
          doctest::description("needs the programs beside the tests")) {
    const std::string absent = "/nowhere/cuda.so", stale = beside_the_tests("stale_cuda.so");
    CHECK(failure(absent, "train", "--device cuda") ==
          "error: --device cuda: the CUDA library /nowhere/cuda.so cannot be opened: cannot open shared "
          "object file: No "
          "such file or directory; --device cpu runs everywhere");
    CHECK(failure(stale, "generate", "--device cuda /nowhere")
              .find("error: --device cuda: the CUDA library " + stale + " was built for another version: ") == 0);
    CHECK(failure(beside_the_tests("partial_cuda.so"), "evaluate", "--device cuda /nowhere") ==
          "error: --device cuda: a GPU answers (fake GPU), but there is no CUDA form of store_rows; --device "
          "cpu "
          "runs everywhere");
    CHECK(failure(beside_the_tests("fake_cuda.so"), "bench", "--device cuda tokenizer") ==
          "error: --device cuda: bench tokenizer has no work for a GPU; leave the option out");
    CHECK(failure(absent, "bench", "--device cuda train").find("error: --device cuda: the CUDA library ") == 0);
    CHECK(run(stale, "bench", "--device auto").lines.empty());  // uses the CPU, without a note
    CHECK(failure("", "tokenize", "--device cuda --vocab /nowhere") ==
          "error: --device cuda: tokenize has no work for a GPU; leave the option out");
    if (built) {
        std::string said = failure("", "train", "--device cuda");
        bool named = said.find("error: --device cuda: no GPU answers: ") == 0 ||
                     said.find("error: --device cuda: a GPU answers (") == 0;
        CHECK_MESSAGE(named, said);
    }
}

TEST_CASE("--device auto: trains on the CPU and says so once" * doctest::skip(!programs) *
          doctest::description("needs the programs beside the tests")) {
    const std::string stale = beside_the_tests("stale_cuda.so");
    Run r = train(stale, "");
    CHECK(r.status == 0);
    CHECK(r.count("note: the CUDA library " + stale + " was built for another version: ") == 1);
    CHECK(r.count("; using the CPU") == 1);
    r = train("", "--device auto");
    CHECK(r.status == 0);
    CHECK(r.count("; using the CPU") == 1);
    if (built) CHECK(r.count("there is no CUDA library") == 0);
    r = train(stale, "--device cpu");  // the CPU was requested, so there is no note
    CHECK(r.status == 0);
    CHECK(r.count("CPU") == 0);
    CHECK(run(stale, "tokenize", "--version").lines.empty());
}

TEST_CASE("--device cuda: ./train leaves the weights of --device cpu, where the device computes as the CPU does" *
          doctest::skip(!programs) * doctest::description("needs the programs beside the tests")) {
    for (const char* model : {"univae", "unilm", "seq2seq"}) {
        INFO(model);
        const std::string here = weights(model, "cpu");
        CHECK(here.size() > 1000);
        CHECK((here == weights(model, "cuda")));
    }
}

TEST_CASE("--device: a GPU that has all ops is used, the run says so, and goes on anywhere" * doctest::skip(!programs) *
          doctest::description("needs the programs beside the tests")) {
    const std::string fake = beside_the_tests("fake_cuda.so"), partial = beside_the_tests("partial_cuda.so");
    const char* wish = proven_on_gpu ? "--device auto" : "--device cuda";
    for (const char* device : {"--device auto", "--device cuda"}) {
        Trained run_of_gpu;
        Run r = run_of_gpu.train(fake, device);
        INFO(device);
        CHECK(r.status == 0);
        const bool used = proven_on_gpu || device != std::string("--device auto");
        CHECK(r.count("have not been tested yet (make gpu-test)") == !used);
        CHECK(r.count("using the CPU") == !used);
        CHECK((run_of_gpu.record().find("\"device\": \"cuda\"") != std::string::npos) == used);
        if (used) CHECK(run_of_gpu.record().find("\"dtype\": \"bf16\"") != std::string::npos);
    }
    Trained trained;
    CHECK(trained.train(partial, "").count("but there is no CUDA form of store_rows; using the CPU") == 1);
    CHECK(trained.record().find("\"device\": \"cpu\"") != std::string::npos);

    Trained wandering;
    CHECK(wandering.train(fake, text(wish, " --precision f32")).status == 0);
    CHECK(wandering.record().find("\"dtype\": \"f32\"") != std::string::npos);
    const std::string folder = "'" + wandering.file("run") + "'";
    CHECK(run("", "train", "--device cpu --steps 3 --resume " + folder).status == 0);
    CHECK(run(fake, "train", text(wish, " --steps 4 --resume ", folder)).status == 0);
    const std::string record = wandering.record();
    const std::size_t third = record.find("\"step\": 2"), fourth = record.find("\"step\": 3");
    CHECK(third < fourth);
    CHECK(fourth != std::string::npos);
    CHECK(record.find("\"device\": \"cpu\"") < third);  // in the record, the keys of each sitting are sorted
    for (const char* device : {"cpu", "cuda"}) {
        CHECK(run(fake, "generate", text("--count 3 --device ", device, " ", folder)).status == 0);
        CHECK(
            run(fake, "evaluate", text("--limit 5 --samples 3 --importance 1 --device ", device, " ", folder)).status ==
            0);
    }
}
