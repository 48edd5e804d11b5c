// SPDX-License-Identifier: MIT
// ./bench attention: attention alone, forward and backward, beside PyTorch's scaled_dot_product_attention.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "tools/bench/attention_work.h"
#include "tools/bench/case.h"
#include "tools/bench/machine.h"
#include "tools/bench/on_device.h"
#include "tools/bench/peer.h"
#include "tools/bench/progress.h"

namespace masquerade {
namespace {

using Json = nlohmann::ordered_json;

constexpr double run_seconds = 0.3, peer_patience = 300;
constexpr const char* columns = "{:<8}{:<6}{:>7}  {:<9}{:>9}{:>10}{:>12}{:>9}\n";

struct Arguments {
    std::string peers, precision = "both", save;
    std::vector<int> lengths = {128, 512, 2048};
    int tokens = 0, heads = 12, size = 64, repeats = 5;
    bool json = false;
};

// Medians of seconds, forward and both ways, and by what to know the computation.
struct Found {
    std::vector<double> forward, both;
    double y = 0, dq = 0;
};

class AttentionCase : public BenchCase {
  public:
    AttentionCase() : BenchCase("attention", "attention alone, on full, causal and prefix masks") {}

    void add_options(CLI::App& app) override {
        app.add_option("--lengths", a_.lengths, "tokens of a document (default: 128,512,2048)")
            ->delimiter(',')
            ->check(CLI::Range(2, 1 << 20))
            ->option_text("N,...");
        app.add_option(
               "--tokens", a_.tokens,
               "of all documents (default: 2048; with --device cuda 16384); at least one document is run")
            ->check(CLI::Range(2, 1 << 24))
            ->option_text("N");
        app.add_option("--heads", a_.heads, "heads (default: 12)")
            ->check(CLI::Range(1, 1024))
            ->option_text("N");
        app.add_option("--size", a_.size, "numbers of a head (default: 64)")
            ->check(CLI::Range(1, 1024))
            ->option_text("N");
        app.add_option("--precision", a_.precision, "f32, bf16 or both (default: both)")
            ->check(CLI::IsMember({"f32", "bf16", "both"}))
            ->option_text("NAME");
        app.add_option("--repeats", a_.repeats, "runs of each, in turns; medians count (default: 5)")
            ->check(CLI::Range(1, 1000))
            ->option_text("N");
        app.add_option("--peer", a_.peers, "a Python that has torch, or none (default: the first found)")
            ->option_text("PYTHON");
        app.add_flag("--json", a_.json, "the same as JSON, with each run");
        app.add_option("--save", a_.save, "the JSON into a file, too, which is written after each row")
            ->option_text("FILE");
    }

    void run(const Common& common) override {
        stop_requested();  // from here on Ctrl-C asks
        device_ = common.device;
        if (a_.tokens == 0) a_.tokens = device_ == Device::cuda ? 16384 : 2048;
        const Machine machine = this_machine();
        const std::string about = described(machine, device_);
        start_peer();
        if (!a_.json) {
            fmt::print("{}{}\n", about, peer_ ? "peer        PyTorch " + version_ + "\n" : "");
            fmt::print(fmt::runtime(columns), "mask", "", "length", "", "ours, ms", "TFLOP/s", "PyTorch, ms",
                       "ratio");
        }
        Json all = json_head("attention", device_, machine);
        all["peer"] = version_;
        all["rows"] = Json::array();
        all["complete"] = false;
        auto save = [&] {
            if (!a_.save.empty()) save_json(a_.save, all);
        };
        for (const char* precision : {"bf16", "f32"})
            for (int length : a_.lengths)
                for (const char* mask : {"full", "causal", "prefix"})
                    if ((a_.precision == "both" || a_.precision == precision) && !stop_requested()) {
                        all["rows"].push_back(measure(precision, length, mask));
                        save();
                    }
        show_progress("");
        if (stop_requested()) log_line("note: stopped as asked");
        all["complete"] = !stop_requested();
        save();
        if (a_.json) fmt::print("{}\n", all.dump(2));
    }

  private:
    void start_peer() {
        if (a_.peers == "none") return;
        for (const std::string& python : a_.peers.empty() ? pythons() : std::vector<std::string>{a_.peers})
            try {
                peer_.emplace(python, source_file("tools/bench/attention_peer.py").string());
                const nlohmann::json start = {
                    {"do", "start"}, {"device", name_of(device_)}, {"threads", threads()}};
                version_ = peer_->ask(start, peer_patience).at("version").get<std::string>();
                return;
            } catch (const PeerError& error) {
                peer_.reset();
                log_line("note: ", error.what());
            } catch (const Stopped&) {
                peer_.reset();
                return;
            }
    }

    Json measure(const std::string& precision, int length, const std::string& mask) {
        AttentionSizes sizes{mask,    std::max(1, a_.tokens / length),
                             length,  a_.heads,
                             a_.size, precision == "bf16" ? DType::bf16 : DType::f32};
        AttentionWork work(sizes, device_);
        Found ours, theirs;
        for (int i = 0; i < a_.repeats && !stop_requested(); i++) {
            show_progress(fmt::format("{} {} {}: {} of {}", mask, precision, length, i + 1, a_.repeats));
            ours.forward.push_back(mean_seconds(run_seconds, device_, [&] { work.forward(); }));
            ours.both.push_back(mean_seconds(run_seconds, device_, [&] { work.forward(), work.backward(); }));
            if (peer_) ask(sizes, precision, theirs);
        }
        ours.y = work.mean_output(), ours.dq = work.mean_gradient();
        show_progress("");
        const double forward = work.forward_work();
        Json json = {{"mask", mask},      {"precision", precision},
                     {"length", length},  {"documents", sizes.documents},
                     {"heads", a_.heads}, {"size", a_.size}};
        json["forward"] = row(sizes, precision, "forward", forward, ours.forward, theirs.forward);
        json["both"] =
            row(sizes, precision, "both ways", forward + work.backward_work(), ours.both, theirs.both);
        json["check"] = {{"y", ours.y}, {"dq", ours.dq}};
        if (theirs.both.empty()) return json;
        json["peer_check"] = {{"y", theirs.y}, {"dq", theirs.dq}};
        const double tolerance = precision == "bf16" ? 2e-2 : 1e-4;
        const bool agrees = std::fabs(ours.y - theirs.y) <= tolerance * std::fabs(theirs.y) &&
                            std::fabs(ours.dq - theirs.dq) <= tolerance * std::fabs(theirs.dq);
        json["agrees"] = agrees;
        if (!agrees)
            log_line("warning: PyTorch does NOT compute the same: mean of |y| ", ours.y, " and ", theirs.y,
                     ", of |dq| ", ours.dq, " and ", theirs.dq);
        return json;
    }

    // A peer that fails once is not asked again.
    void ask(const AttentionSizes& s, const std::string& precision, Found& found) {
        try {
            const std::string why = failure_of([&] {
                const nlohmann::json answer = peer_->ask({{"do", "run"},
                                                          {"precision", precision},
                                                          {"mask", s.mask},
                                                          {"documents", s.documents},
                                                          {"length", s.length},
                                                          {"heads", s.heads},
                                                          {"size", s.size},
                                                          {"seconds", run_seconds}},
                                                         peer_patience);
                found.y = answer.at("y"), found.dq = answer.at("dq");
                found.forward.push_back(answer.at("forward")), found.both.push_back(answer.at("both"));
            });
            if (why.empty()) return;
            log_line("note: ", why);
            peer_.reset();
            found = Found();
        } catch (const Stopped&) {
            peer_.reset();
        }
    }

    Json row(const AttentionSizes& s, const std::string& precision, const char* way, double multiply_adds,
             const std::vector<double>& ours, const std::vector<double>& theirs) const {
        if (ours.empty()) return {};
        const double seconds = spread_of(ours).median;
        Json json = {{"multiply_adds", multiply_adds}, {"ours", ours}, {"seconds", seconds}};
        std::string beside, ratio;
        if (!theirs.empty()) {
            const double peer = spread_of(theirs).median;
            json["peer"] = theirs, json["ratio"] = peer / seconds;
            beside = fmt::format("{:.3f}", 1e3 * peer), ratio = figures(peer / seconds);
        }
        if (!a_.json)
            fmt::print(fmt::runtime(columns), s.mask, precision, s.length, way,
                       fmt::format("{:.3f}", 1e3 * seconds), figures(2e-12 * multiply_adds / seconds), beside,
                       ratio);
        std::fflush(stdout);
        return json;
    }

    Arguments a_;
    Device device_ = Device::cpu;
    std::optional<Peer> peer_;
    std::string version_;
};

}  // namespace

std::unique_ptr<BenchCase> attention_case() { return std::make_unique<AttentionCase>(); }

}  // namespace masquerade
