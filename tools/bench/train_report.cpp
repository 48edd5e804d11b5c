// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "engine/base/wrap.h"
#include "tools/bench/measure.h"
#include "tools/bench/train_measure.h"

namespace masquerade {
namespace {

constexpr const char* row_columns = "{:<18}{:>9}{:>18}{:>9}{:>9}{:>7}{:>9}\n";
constexpr const char* part_columns = "{:<18}{:>9}{:>7}\n";

std::string ms(double seconds) { return figures(1e3 * seconds); }
template <class... Values>
std::string paragraph(const char* format, const Values&... values) {
    return wrapped(fmt::format(fmt::runtime(format), values...), 80) + '\n';
}

}  // namespace

std::vector<std::string> train_report(const nlohmann::ordered_json& r) {
    auto number = [&](const char* place) { return r.at(nlohmann::json::json_pointer(place)).get<double>(); };
    const std::string name = r.at("mark").get<std::string>() + ", " + r.at("precision").get<std::string>();
    if (!r.at("complete")) return {'\n' + name + ": stopped before it was measured\n"};

    const double latents = number("/sizes/latent_layers"), median = number("/ours/seconds/median");
    const bool on_gpu = r.value("device", "cpu") == "cuda";
    const std::string head =
        paragraph("{}: {} layers, width {}, {} heads, inner {}, vocabulary {}{}; {:.2f} M parameters; a batch of {} "
                  "sentences, {} tokens",
                  name, number("/sizes/layers"), number("/sizes/width"), number("/sizes/heads"), number("/sizes/inner"),
                  number("/sizes/vocabulary"),
                  latents > 0 ? fmt::format(", {} latents of {}", latents, number("/sizes/latent_size")) : "",
                  number("/parameters") / 1e6, number("/sentences"), number("/tokens"));
    const std::string row =
        fmt::format(fmt::runtime(row_columns), "", "ms a step", "range", "tok/s", "sent/s", "ratio", "peak MiB") +
        fmt::format(fmt::runtime(row_columns), "ours", ms(median),
                    ms(number("/ours/seconds/least")) + " - " + ms(number("/ours/seconds/most")),
                    fmt::format("{:.0f}", number("/ours/tokens_per_second")), figures(number("/sentences") / median), "",
                    fmt::format("{:.0f}", number("/ours/peak_bytes") / (1 << 20)));
    const std::string memory =
        (on_gpu ? "" : fmt::format("page faults a step: {:.3g}; ", number("/ours/faults_per_step"))) +
        fmt::format("activations: {:.0f} MiB, planned\n", number("/ours/activation_bytes") / (1 << 20));

    const double step = number("/profiled_step");
    std::string parts = '\n' + fmt::format(fmt::runtime(part_columns), "of a step, ours", "ms", "%");
    for (const auto& part : r.at("parts")) {
        const double seconds = part.at("seconds");
        parts += fmt::format(fmt::runtime(part_columns), part.at("name").get<std::string>(), ms(seconds),
                             fmt::format("{:.1f}", 100 * seconds / step));
    }
    const double floor = number("/floor/seconds"), share = 100 * number("/floor/share_of_step"),
                 products = number("/floor/gflop"), attention = number("/floor/attention_gflop"),
                 best = number("/floor/best_gflops");
    if (!on_gpu)
        return {'\n' + head + '\n', row, memory, parts,
                '\n' + paragraph("floor {} ms, {:.0f} % of the step (step / floor: {:.0f} %): {} ms for its {:.1f} GFLOP "
                                 "of products, each alone by whoever is faster, and {} ms for attention's {:.2f} GFLOP at "
                                 "the best rate among them, {:.0f} GFLOP/s",
                                 ms(floor), share, 1e4 / share, ms(number("/floor/products_seconds")), products,
                                 ms(number("/floor/attention_seconds")), attention, best)};
    // How well the device is used: what a step needs in multiply-adds, against what one large product reaches.
    parts += paragraph("the GPU was waited for after every op: {} ms a step, not {}", ms(step), ms(median));
    const double side = number("/floor/products/0/m");
    return {'\n' + head + '\n', row, memory, parts,
            '\n' + paragraph("{} TFLOP/s. At the rate of a product of {} x {} x {} in the same type, by whoever is faster "
                             "(the best: {} TFLOP/s), the step's {:.1f} GFLOP of products and {:.2f} GFLOP of attention "
                             "would take {} ms, {:.0f} % of the step",
                             figures(1e-3 * number("/floor/reached_gflops")), side, side, side, figures(1e-3 * best),
                             products, attention, ms(floor), share)};
}

}  // namespace masquerade
