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

double number(const Json& json, const char* key) { return json.at(key).get<double>(); }
std::string ms(double seconds) { return figures(1e3 * seconds); }
std::string mib(double bytes) { return fmt::format("{:.0f}", bytes / (1 << 20)); }

std::string paragraph(const std::string& text) { return wrapped(text, line_width) + '\n'; }

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

std::string row(const Json& r) {
    const Json &ours = r.at("ours"), &s = ours.at("seconds");
    const double median = number(s, "median");
    return fmt::format(fmt::runtime(row_columns), "", "ms a step", "range", "tok/s", "sent/s", "ratio", "peak MiB") +
           fmt::format(fmt::runtime(row_columns), "ours", ms(median),
                       ms(number(s, "least")) + " - " + ms(number(s, "most")),
                       fmt::format("{:.0f}", number(ours, "tokens_per_second")),
                       figures(number(r, "sentences") / median), "", mib(number(ours, "peak_bytes")));
}

bool on_gpu(const Json& r) { return r.value("device", "cpu") == "cuda"; }

std::string memory(const Json& r) {
    const Json& ours = r.at("ours");
    const std::string planned = fmt::format("activations: {} MiB, planned", mib(number(ours, "activation_bytes")));
    if (on_gpu(r)) return planned + '\n';
    return fmt::format("page faults a step: {:.3g}; {}\n", number(ours, "faults_per_step"), planned);
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

std::vector<std::string> train_report(const Json& r) {
    if (!r.at("complete"))
        return {fmt::format("\n{}, {}: stopped before it was measured\n", r.at("mark").get<std::string>(),
                            r.at("precision").get<std::string>())};
    return {'\n' + head(r) + '\n', row(r), memory(r), parts(r), floor_of(r)};
}

}  // namespace masquerade
