// SPDX-License-Identifier: MIT
// ./bench attention: attention alone, forward and backward.
#include <fmt/format.h>

#include "tools/bench/attention_work.h"
#include "tools/bench/measure.h"
#include "tools/bench/session.h"

namespace masquerade {
namespace {

constexpr double run_seconds = 0.3;
constexpr const char* columns = "{:<8}{:<6}{:>7}  {:<9}{:>9}{:>10}\n";

class AttentionCase : public BenchCase {
  public:
    AttentionCase()
        : BenchCase("attention", "attention alone, on full, causal and prefix masks",
                    "PyTorch's scaled_dot_product_attention") {}

    void add_options(CLI::App& app) override {
        app.add_option("--lengths", lengths_, "tokens of a document (default: 128,512,2048)")
            ->delimiter(',')
            ->check(CLI::Range(2, 1 << 20))
            ->option_text("N,...");
        app.add_option("--tokens", tokens_,
                       "of all documents (default: 2048; with --device cuda 16384); at least one document is run")
            ->check(CLI::Range(2, 1 << 24))
            ->option_text("N");
        app.add_option("--heads", heads_, "heads (default: 12)")->check(CLI::Range(1, 1024))->option_text("N");
        app.add_option("--size", size_, "numbers of a head (default: 64)")
            ->check(CLI::Range(1, 1024))
            ->option_text("N");
        app.add_option("--precision", precision_, "f32, bf16 or both (default: both)")
            ->check(CLI::IsMember({"f32", "bf16", "both"}))
            ->option_text("NAME");
    }

    void run(Session& session) override {
        if (tokens_ == 0) tokens_ = session.common.device == Device::cuda ? 16384 : 2048;
        session.begin("rows", {},
                      '\n' + fmt::format(fmt::runtime(columns), "mask", "", "length", "", "ours, ms", "TFLOP/s"));
        for (DType type : {DType::bf16, DType::f32})
            for (int length : lengths_)
                for (const char* mask : {"full", "causal", "prefix"})
                    if (precision_ == "both" || precision_ == name_of(type))
                        measure(session, {mask, std::max(1, tokens_ / length), length, heads_, size_, type});
    }

  private:
    static void measure(Session& session, const AttentionSizes& s) {
        const Device device = session.common.device;
        const std::string precision = name_of(s.type);
        AttentionWork work(s, device);
        Json row = {{"mask", s.mask},           {"precision", precision}, {"length", s.length},
                    {"documents", s.documents}, {"heads", s.heads},       {"size", s.size}};
        Json about = row;
        about["seconds"] = run_seconds;
        session.start(about);
        const auto runs = session.in_turns(
            fmt::format("{} {} {}", s.mask, precision, s.length),
            {[&] { return mean_seconds(run_seconds, device, [&] { work.forward(); }); },
             [&] { return mean_seconds(run_seconds, device, [&] { work.forward(), work.backward(); }); }});
        std::vector<std::string> lines;
        auto add = [&](const char* key, const char* way, double multiply_adds, const std::vector<double>& ours) {
            const double seconds = spread_of(ours).median;
            row[key] = {{"multiply_adds", multiply_adds}, {"ours", ours}, {"seconds", seconds}};
            lines.push_back(fmt::format(fmt::runtime(columns), s.mask, precision, s.length, way,
                                        fmt::format("{:.3f}", 1e3 * seconds),
                                        figures(2e-12 * multiply_adds / seconds)));
        };
        add("forward", "forward", work.forward_work(), runs[0]);
        add("both", "both ways", work.forward_work() + work.backward_work(), runs[1]);
        row["check"] = {{"y", work.mean_output()}, {"dq", work.mean_gradient()}};
        session.add(row, lines);
    }

    std::vector<int> lengths_ = {128, 512, 2048};
    int tokens_ = 0, heads_ = 12, size_ = 64;
    std::string precision_ = "both";
};

}  // namespace

std::unique_ptr<BenchCase> attention_case() { return std::make_unique<AttentionCase>(); }

}  // namespace masquerade
