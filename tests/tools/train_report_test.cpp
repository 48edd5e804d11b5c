// SPDX-License-Identifier: MIT
#include "tools/bench/train_measure.h"

#include <csignal>
#include <sstream>

#include "doctest/doctest.h"
#include "tools/bench/memory.h"
#include "engine/base/error.h"

using namespace masquerade;

namespace {

using Json = nlohmann::ordered_json;

Json runs(double median) {
    return {{"seconds", {{"median", median}, {"least", 0.9 * median}, {"most", 12 * median}}},
            {"tokens_per_second", 2048 / median},
            {"runs", {median}}};
}

Json result() {
    Json check = {{"loss", 8.98765}, {"norm", 12345.67891}, {"next", 8.9}};
    Json r = {
        {"mark", "univae-default"},
        {"precision", "bf16"},
        {"sizes",
         {{"vocabulary", 21128},
          {"width", 768},
          {"heads", 12},
          {"inner", 3072},
          {"layers", 12},
          {"latent_layers", 4},
          {"latent_size", 16}}},
        {"parameters", 102300000},
        {"sentences", 32},
        {"tokens", 2048},
        {"ours", runs(0.25)}};
    r["ours"]["check"] = check;
    r["ours"]["faults_per_step"] = 0;
    r["ours"]["peak_bytes"] = 3 << 20;
    r["ours"]["activation_bytes"] = 2 << 20;
    r["profiled_step"] = 0.26;
    r["parts"] = {{{"name", "GEMM"}, {"seconds", 0.13}}, {{"name", "normalisation"}, {"seconds", 0.013}}};
    r["floor"] = {
        {"seconds", 0.2}, {"share_of_step", 0.8},    {"products_seconds", 0.19}, {"attention_seconds", 0.01},
        {"gflop", 86.4},  {"attention_gflop", 3.25}, {"best_gflops", 2345.0}};
    r["complete"] = true;
    return r;
}

bool narrow(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        if (line.size() > 80) return false;
    return true;
}

std::string joined(const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& part : parts) all += part;
    return all;
}

std::string line_with(const std::string& text, const std::string& what) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        if (line.find(what) != line.npos) return line;
    return "";
}

}  // namespace

TEST_CASE("train report: eighty columns, and the figures of every row") {
    const std::string report = joined(train_report(result()));
    CHECK(narrow(report));
    INFO(report);
    const std::string ours = line_with(report, "ours   ");
    CHECK(ours.find("225 - 3000") != ours.npos);
    CHECK(ours.find("8192") != ours.npos);
    CHECK(line_with(report, "GEMM").find("50.0") != std::string::npos);
    CHECK(line_with(report, "page faults").find("page faults a step: 0;") == 0);
    CHECK(line_with(report, "floor").find("floor 200 ms, 80 % of the step (step / floor: 125 %)") == 0);
}

TEST_CASE("train report: what was stopped early is told as far as it goes") {
    const Json stopped = {
        {"mark", "bert-base"}, {"precision", "f32"}, {"notes", Json::array()}, {"complete", false}};
    CHECK(joined(train_report(stopped)) == "\nbert-base, f32: stopped before it was measured\n");
}

TEST_CASE("own process: the result, the error, the signal") {
    int here = 1;
    const Json given = in_own_process([&]() -> Json {
        here = 2;
        return {{"big", std::string(300000, 'x')}};
    });
    CHECK(given["big"].get<std::string>().size() == 300000);
    CHECK(here == 1);
    CHECK_THROWS_WITH_AS(in_own_process([]() -> Json { throw Error("no such thing"); }), "no such thing",
                         Error);
    CHECK_THROWS_WITH_AS(in_own_process([]() -> Json {
                             raise(SIGKILL);
                             return {};
                         }),
                         "the measurement was ended by signal 9", Error);
    CHECK(peak_resident_bytes() > 1 << 20);
    const std::int64_t before = minor_faults();
    std::vector<char> fresh(64 << 20, 1);
    CHECK(minor_faults() > before);
    CHECK(peak_resident_bytes() >= std::int64_t(fresh.size()));
}
