// SPDX-License-Identifier: MIT
// Runs every test case, and ends with the line `N passed, N failed`. The exit status is 1 if a test failed or if none
// ran. With TEST_THREADS=1, ops use one thread if a test does not choose the number. If other programs use the same
// processors, this takes as long as with all threads, but less processor time.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "engine/ops/cpu/parallel.h"

namespace {

unsigned ran = 0, failed = 0;
std::map<std::string, std::vector<std::string>> skipped;  // reason -> names of the skipped test cases

// Makes ops use as many threads as TEST_THREADS says, or the default number without it.
void use_test_threads() {
    const char* count = std::getenv("TEST_THREADS");
    masquerade::set_threads(count ? std::atoi(count) : 0);
}

// Counts the test cases, and takes back what an earlier case has set as the number of threads. doctest's own reporter
// prints the failures.
struct Count : doctest::IReporter {
    explicit Count(const doctest::ContextOptions&) {}
    void test_case_skipped(const doctest::TestCaseData& test) override {
        if (!test.m_skip) return;  // not selected on the command line, which does not count as skipped
        skipped[test.m_description ? test.m_description : "no reason given"].push_back(test.m_name);
    }
    void test_run_end(const doctest::TestRunStats& run) override {
        ran = run.numTestCasesPassingFilters;
        failed = run.numTestCasesFailed;
    }
    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_case_start(const doctest::TestCaseData&) override { use_test_threads(); }
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats&) override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
};
REGISTER_LISTENER("count", 1, Count);

}  // namespace

// Prints a line for each reason. If many tests were skipped for a reason, names only the first and the last of them.
unsigned tell_skipped() {
    unsigned all = 0;
    for (const auto& [reason, names] : skipped) {
        all += unsigned(names.size());
        std::string line;
        for (const std::string& name : names) line += (line.empty() ? "" : ", ") + name;
        if (names.size() > 10)
            line = names.front() + " ... " + names.back() + ", " + std::to_string(names.size()) + " cases";
        std::printf("skipped: %s: %s\n", line.c_str(), reason.c_str());
    }
    return all;
}

int main(int argc, char** argv) {
    doctest::Context context;
    context.setOption("minimal", true);  // prints only failures
    context.applyCommandLine(argc, argv);
    int status = context.run();
    if (context.shouldExit()) return status;
    if (ran == 0) std::puts("error: no test case ran");
    const unsigned left_out = tell_skipped();
    std::printf("%u passed, %u failed", ran - failed, failed);
    if (left_out > 0) std::printf(", %u skipped", left_out);
    std::printf("\n");
    return status != 0 || ran == 0 ? 1 : 0;
}
