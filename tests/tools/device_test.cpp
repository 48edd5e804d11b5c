// SPDX-License-Identifier: MIT
// --device as a user meets it: one line that says why not, or one note and the CPU.
#include <doctest/doctest.h>

#include <sys/wait.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "tests/cuda/fake_device.h"

using namespace masquerade;

namespace {

struct Run {
    int status = -1;
    std::vector<std::string> lines;  // of standard error
    int count(const std::string& part) const {
        int n = 0;
        for (const std::string& line : lines) n += line.find(part) != std::string::npos;
        return n;
    }
};

// PROGRAM ARGUMENTS with MASQUERADE_CUDA=library, or without it where that is empty; standard output is dropped.
Run run(const std::string& library, const std::string& program, const std::string& arguments) {
    TemporaryFolder folder;
    const std::string error = folder.file("error");
    std::string command = "env -u MASQUERADE_CUDA ";
    if (!library.empty()) command += "MASQUERADE_CUDA='" + library + "' ";
    command +=
        "'" + beside_the_tests(program) + "' " + arguments + " > /dev/null 2> '" + error + "' < /dev/null";
    Run result;
    int status = std::system(command.c_str());
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::ifstream file(error);
    for (std::string line; std::getline(file, line);) result.lines.push_back(line);
    return result;
}

// What fails before it does anything: exit status 1 and one line.
std::string failure(const std::string& library, const std::string& program, const std::string& arguments) {
    Run r = run(library, program, arguments);
    CHECK(r.status == 1);
    CHECK(r.lines.size() == 1);
    return r.lines.empty() ? "" : r.lines[0];
}

// Two steps of a small model, and the notes about the device that were printed.
Run train(const std::string& library, const std::string& options) {
    TemporaryFolder folder;
    std::string sentences;
    for (int i = 0; i < 200; i++) sentences += text("what is the price of number ", i, " in the house ?\n");
    folder.write("text", sentences);
    return run(library, "train",
               options +
                   " layers=3 latent_layers=2 width=32 inner=64 heads=2 vocabulary=300 batch_tokens=120 "
                   "prior_sentences=0 schedule_start=1 schedule_steps=2 --steps 2 --data '" +
                   folder.file("text") + "' --out '" + folder.file("run") + "'");
}

const bool programs = std::filesystem::exists(beside_the_tests("train"));
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
              .find("error: --device cuda: the CUDA library " + stale + " is of another make: ") == 0);
    CHECK(failure(beside_the_tests("fake_cuda.so"), "evaluate", "--device cuda /nowhere") ==
          "error: --device cuda: a GPU answers (fake GPU), but models do not run there yet: no CUDA form of "
          "store_rows; "
          "--device cpu runs everywhere");
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
    CHECK(r.count("note: the CUDA library " + stale + " is of another make: ") == 1);
    CHECK(r.count("; using the CPU") == 1);
    r = train("", "--device auto");
    CHECK(r.status == 0);
    CHECK(r.count("; using the CPU") == 1);
    if (built) CHECK(r.count("there is no CUDA library") == 0);
    r = train(stale, "--device cpu");  // asked for: no news
    CHECK(r.status == 0);
    CHECK(r.count("CPU") == 0);
    CHECK(run(stale, "tokenize", "--version").lines.empty());
}
