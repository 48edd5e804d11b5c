// SPDX-License-Identifier: MIT
// Runs every test case and ends with the plain line `N passed, N failed`. Status 1 when one failed or none ran.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>

#include "doctest/doctest.h"

namespace {

unsigned ran = 0, failed = 0, skipped = 0;

// Counts test cases; doctest's own reporter prints what went wrong.
struct Count : doctest::IReporter {
    explicit Count(const doctest::ContextOptions&) {}
    void test_case_skipped(const doctest::TestCaseData& test) override {
        if (!test.m_skip) return;  // merely not asked for
        skipped++;
        std::printf("skipped: %s%s%s\n", test.m_name, test.m_description ? ": " : "",
                    test.m_description ? test.m_description : "");
    }
    void test_run_end(const doctest::TestRunStats& run) override {
        ran = run.numTestCasesPassingFilters;
        failed = run.numTestCasesFailed;
    }
    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_case_start(const doctest::TestCaseData&) override {}
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

int main(int argc, char** argv) {
    doctest::Context context;
    context.setOption("minimal", true);  // nothing but what goes wrong
    context.applyCommandLine(argc, argv);
    int status = context.run();
    if (context.shouldExit()) return status;
    if (ran == 0) std::puts("error: no test case ran");
    std::printf("%u passed, %u failed", ran - failed, failed);
    if (skipped > 0) std::printf(", %u skipped", skipped);
    std::printf("\n");
    return status != 0 || ran == 0 ? 1 : 0;
}
