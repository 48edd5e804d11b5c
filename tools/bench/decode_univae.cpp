// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/writing/univae_decoder.h"
#include "tools/bench/decode.h"
#include "tools/bench/measure.h"
#include "tools/bench/progress.h"
#include "tools/bench/train_marks.h"

namespace masquerade {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* columns = "{:<16}{:>10}{:>12}{:>18}{:>12}{:>12}\n";

}  // namespace

bool UniVaeWriting::knows(const std::string& model) {
    const std::vector<std::string> names = train_mark_names();
    return std::find(names.begin(), names.end(), model) != names.end() && train_mark(model, 1).univae;
}

void UniVaeWriting::measure(const std::string& mark, const FoundRow& found) {
    const UniVaeOptions options = train_mark(mark, common_.seed).model;
    Parameters parameters(DType::f32, common_.device);
    const UniVae model(parameters, options);
    parameters.allocate(common_.seed);
    UniVaeDecoder::Special special;
    special.forbidden.push_back(special.sep);  // so every sentence is as long as a sentence may be
    UniVaeDecoder decoder(model, special);
    const int values = options.latent_layers * model.space.size(), tokens = options.max_length - 2;
    if (a_.table && !head_)
        fmt::print(fmt::runtime(columns), "greedy, f32", "sentences", "ms", "range", "sent/s", "tok/s");
    head_ = true;
    for (int batch : a_.sentences) {
        if (stop_requested()) return;
        show_progress(fmt::format("{}: {}", mark, batch));
        std::vector<DecodeRequest> requests;
        requests.resize(std::size_t(batch));
        for (std::size_t i = 0; i < requests.size(); i++) {
            requests[i].latent.assign(std::size_t(values), 1 / std::sqrt(double(model.space.size())));
            requests[i].line = std::uint32_t(i);
            requests[i].start = model.start_position(tokens + 2);
        }
        // Tokens are chosen on the host: a writing has ended when it returns.
        auto write = [&] {
            for (const Tokens& t : decoder.write(requests, {}, common_.seed))
                if (int(t.size()) != tokens)
                    throw Error(text("a sentence has ", t.size(), " tokens, not ", tokens));
        };
        write();  // is not counted
        std::vector<double> runs;
        for (int i = 0; i == 0 || (i < a_.repeats && !stop_requested()); i++)
            runs.push_back(seconds_of(write));
        const Spread s = spread_of(runs);
        show_progress("");
        if (a_.table)
            fmt::print(fmt::runtime(columns), mark, batch, figures(1e3 * s.median),
                       figures(1e3 * s.least) + " - " + figures(1e3 * s.most), figures(batch / s.median),
                       fmt::format("{:.0f}", batch * tokens / s.median));
        std::fflush(stdout);
        found({{"model", mark},
               {"sentences", batch},
               {"tokens_of_each", tokens},
               {"seconds", s.median},
               {"runs", runs},
               {"sentences_per_second", batch / s.median}});
    }
}

}  // namespace masquerade
