// SPDX-License-Identifier: MIT
#include "tools/bench/train_report.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/base/wrap.h"
#include "tools/bench/measure.h"

namespace masquerade {
namespace {

using Json = nlohmann::ordered_json;

constexpr int line_width = 80;
constexpr const char* row_columns = "{:<18}{:>9}{:>18}{:>9}{:>9}{:>7}{:>9}\n";
constexpr const char* part_columns = "{:<18}{:>9}{:>7}\n";
constexpr const char* summary_columns = "{:<16}{:<6}{:>9}  {:<18}{:>9}{:>8}{:>12}\n";

double number(const Json& json, const char* key) { return json.at(key).get<double>(); }
std::string ms(double seconds) { return figures(1e3 * seconds); }
std::string mib(double bytes) { return fmt::format("{:.0f}", bytes / (1 << 20)); }

std::string paragraph(const std::string& text) { return wrapped(text, line_width) + '\n'; }

// "PyTorch", with what tells it from the one it is compared with first.
std::string label_of(const Json& peer) {
    std::string label = "PyTorch";
    if (peer.at("form") == "joint") label += ", joint";
    if (peer.at("precision") == "bf16") label += ", no master";
    return label;
}

std::string head(const Json& r) {
    const Json& s = r.at("sizes");
    std::string latents;
    if (const int K = s.at("latent_layers"); K > 0)
        latents = fmt::format(", {} latents of {}", K, s.at("latent_size").get<int>());
    return paragraph(
        fmt::format("{}, {}: {} layers, width {}, {} heads, inner {}, vocabulary {}{}; {:.2f} M parameters; "
                    "a batch of {} "
                    "sentences, {} tokens",
                    r.at("mark").get<std::string>(), r.at("precision").get<std::string>(),
                    s.at("layers").get<int>(), s.at("width").get<int>(), s.at("heads").get<int>(),
                    s.at("inner").get<int>(), s.at("vocabulary").get<int>(), latents,
                    number(r, "parameters") / 1e6, r.at("sentences").get<int>(), r.at("tokens").get<int>()));
}

std::string row(const Json& r, const Json& one, const std::string& label) {
    const Json& s = one.at("seconds");
    const double median = number(s, "median");
    return fmt::format(
        fmt::runtime(row_columns), label, ms(median), ms(number(s, "least")) + " - " + ms(number(s, "most")),
        fmt::format("{:.0f}", number(one, "tokens_per_second")), figures(number(r, "sentences") / median),
        one.contains("ratio") ? figures(number(one, "ratio")) : "",
        one.contains("peak_bytes") ? mib(number(one, "peak_bytes")) : "");
}

std::string rows(const Json& r) {
    std::string out = fmt::format(fmt::runtime(row_columns), "", "ms a step", "range", "tok/s", "sent/s",
                                  "ratio", "peak MiB");
    out += row(r, r.at("ours"), "ours");
    for (const Json& peer : r.at("peers")) out += row(r, peer, label_of(peer));
    return out;
}

std::string settings(const Json& r) {
    std::string out;
    for (const Json& peer : r.at("peers"))
        out += paragraph(fmt::format("{} {} ({}): {}", label_of(peer), peer.at("version").get<std::string>(),
                                   peer.at("python").get<std::string>(),
                                   peer.at("settings").get<std::string>()));
    return out;
}

std::string checks(const Json& r) {
    std::string out;
    for (const Json& peer : r.at("peers")) {
        const bool slow = peer.at("slow_blas");
        if (slow)
            out += paragraph(
                "warning: " + label_of(peer) +
                " multiplies by the reference BLAS; Debian's libopenblas0-openmp makes it 30 times faster");
        const Json &ours = r.at("ours").at("check"), &theirs = peer.at("check");
        if (!peer.at("agrees"))
            out += paragraph(fmt::format("warning: {} does NOT compute the same, see --json", label_of(peer)));
        out += paragraph(
            fmt::format("without dropout, ours and {}: loss {:.5f} {:.5f}, norm {:.5f} {:.5f}, after an "
                        "update {:.5f} {:.5f}",
                        label_of(peer), number(ours, "loss"), number(theirs, "loss"), number(ours, "norm"),
                        number(theirs, "norm"), number(ours, "next"), number(theirs, "next")));
    }
    return out;
}

bool on_gpu(const Json& r) { return r.value("device", "cpu") == "cuda"; }

std::string memory(const Json& r) {
    const Json& ours = r.at("ours");
    const std::string planned =
        paragraph(fmt::format("activations: {} MiB, planned", mib(number(ours, "activation_bytes"))));
    if (on_gpu(r)) return planned;
    std::string theirs;
    for (const Json& peer : r.at("peers"))
        theirs += fmt::format("{}{} {:.0f}", theirs.empty() ? "; " : ", ", label_of(peer),
                              number(peer, "faults_per_step"));
    return paragraph(fmt::format("page faults a step: {:.3g}{}", number(ours, "faults_per_step"), theirs)) +
           planned;
}

std::string parts(const Json& r) {
    const double step = number(r, "profiled_step");
    std::string out = '\n' + fmt::format(fmt::runtime(part_columns), "of a step, ours", "ms", "%");
    for (const Json& part : r.at("parts")) {
        const double seconds = number(part, "seconds");
        out += fmt::format(fmt::runtime(part_columns), part.at("name").get<std::string>(), ms(seconds),
                           fmt::format("{:.1f}", 100 * seconds / step));
    }
    if (on_gpu(r))
        out += paragraph(fmt::format("the GPU was waited for after every op: {} ms a step, not {}", ms(step),
                                     ms(number(r.at("ours").at("seconds"), "median"))));
    return out;
}

// How well the device is used: what a step needs in multiply-adds, against what one large product reaches.
std::string use_of_gpu(const Json& r) {
    const Json& f = r.at("floor");
    const double reached = number(f, "reached_gflops"), best = number(f, "best_gflops");
    const std::int64_t side = f.at("products").at(0).at("m");
    return '\n' + paragraph(fmt::format("{} TFLOP/s. At the rate of a product of {} x {} x {} in the same "
                                        "type, by whoever is faster (the "
                                        "best: {} TFLOP/s), the step's {:.1f} GFLOP of products and {:.2f} "
                                        "GFLOP of attention would take "
                                        "{} ms, {:.0f} % of the step",
                                        figures(1e-3 * reached), side, side, side, figures(1e-3 * best),
                                        number(f, "gflop"), number(f, "attention_gflop"),
                                        ms(number(f, "seconds")), 100 * number(f, "share_of_step")));
}

std::string floor_of(const Json& r) {
    if (on_gpu(r)) return use_of_gpu(r);
    const Json& f = r.at("floor");
    const double share = number(f, "share_of_step");
    return '\n' +
           paragraph(fmt::format(
               "floor {} ms, {:.0f} % of the step (step / floor: {:.0f} %): {} ms for its {:.1f} GFLOP of "
               "products, each alone by whoever is faster, and {} ms for attention's {:.2f} GFLOP at the "
               "best rate among them, {:.0f} GFLOP/s",
               ms(number(f, "seconds")), 100 * share, 100 / share, ms(number(f, "products_seconds")),
               number(f, "gflop"), ms(number(f, "attention_seconds")), number(f, "attention_gflop"),
               number(f, "best_gflops")));
}

}  // namespace

std::string train_report(const Json& r) {
    std::string notes;
    for (const Json& note : r.at("notes")) notes += paragraph("note: " + note.get<std::string>());
    if (!r.at("complete"))
        return fmt::format("{}, {}: stopped before it was measured\n", r.at("mark").get<std::string>(),
                           r.at("precision").get<std::string>());
    return head(r) + notes + '\n' + rows(r) + settings(r) + checks(r) + memory(r) + parts(r) + floor_of(r);
}

std::string train_summary(const Json& results) {
    std::string out = fmt::format(fmt::runtime(summary_columns), "tokens a second", "", "ours", "beside", "",
                                  "ratio", "floor, %");
    for (const Json& r : results) {
        if (!r.at("complete")) continue;
        const std::string floor = fmt::format("{:.0f}", 100 * number(r.at("floor"), "share_of_step"));
        const std::string ours = fmt::format("{:.0f}", number(r.at("ours"), "tokens_per_second"));
        auto line = [&](const std::string& beside, const std::string& theirs, const std::string& ratio) {
            out += fmt::format(fmt::runtime(summary_columns), r.at("mark").get<std::string>(),
                               r.at("precision").get<std::string>(), ours, beside, theirs, ratio, floor);
        };
        if (r.at("peers").empty()) line("", "", "");
        for (const Json& peer : r.at("peers"))
            line(label_of(peer), fmt::format("{:.0f}", number(peer, "tokens_per_second")),
                 figures(number(peer, "ratio")));
    }
    return out;
}

}  // namespace masquerade
