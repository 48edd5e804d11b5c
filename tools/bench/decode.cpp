// SPDX-License-Identifier: MIT
// ./bench decode: greedy writing of sentences by a UniVAE of random weights, through the cached decoder of
// ./generate.
#include <fmt/format.h>

#include <cmath>

#include "models/univae_decoder.h"
#include "tools/bench/case.h"
#include "tools/bench/machine.h"
#include "tools/bench/on_device.h"
#include "tools/bench/progress.h"
#include "tools/bench/train_marks.h"

namespace masquerade {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* columns = "{:<16}{:>10}{:>12}{:>18}{:>12}{:>12}\n";

struct Arguments {
    std::vector<std::string> models = {"univae-default", "univae-base"};
    std::vector<int> batches = {1, 64, 512};
    std::string save;
    int repeats = 3;
    bool json = false;
};

class DecodeCase : public BenchCase {
  public:
    DecodeCase() : BenchCase("decode", "greedy writing of sentences by UniVAE; nothing stands beside it") {}

    void add_options(CLI::App& app) override {
        app.add_option("--models", a_.models, "those of ./bench train (default: univae-default,univae-base)")
            ->delimiter(',')
            ->option_text("NAME,...");
        app.add_option("--batches", a_.batches, "sentences that are asked for at once (default: 1,64,512)")
            ->delimiter(',')
            ->check(CLI::Range(1, 1 << 20))
            ->option_text("N,...");
        app.add_option("--repeats", a_.repeats, "runs of each; medians count (default: 3)")
            ->check(CLI::Range(1, 1000))
            ->option_text("N");
        app.add_flag("--json", a_.json, "the same as JSON, with each run");
        app.add_option("--save", a_.save, "the JSON into a file, too")->option_text("FILE");
    }

    void run(const Common& common) override {
        stop_requested();  // from here on Ctrl-C asks
        const Machine machine = this_machine();
        const std::string about = described(machine, common.device);
        if (!a_.json) {
            fmt::print("{}\n", about);
            fmt::print(fmt::runtime(columns), "f32", "sentences", "ms", "range", "sent/s", "tok/s");
        }
        Json results = Json::array();
        for (const std::string& model : a_.models) {
            if (!train_mark(model, common.seed).univae) throw BadUsage(text(model, " is no UniVAE"));
            measure(model, common, results);
        }
        show_progress("");
        if (stop_requested()) log_line("note: stopped as asked");
        const Json all = {{"case", "decode"},
                          {"device", shown(common.device)},
                          {"machine", json_of(machine)},
                          {"rows", results},
                          {"complete", !stop_requested()}};
        if (!a_.save.empty()) save_json(a_.save, all);
        if (a_.json) fmt::print("{}\n", all.dump(2));
    }

  private:
    void measure(const std::string& mark, const Common& common, Json& results) const {
        const UniVaeOptions options = train_mark(mark, common.seed).model;
        Parameters parameters(DType::f32, common.device);
        const UniVae model(parameters, options);
        parameters.allocate(common.seed);
        UniVaeDecoder::Special special;
        special.forbidden.push_back(special.sep);  // so every sentence is as long as a sentence may be
        UniVaeDecoder decoder(model, special);
        for (int batch : a_.batches) {
            if (stop_requested()) return;
            show_progress(fmt::format("{}: {}", mark, batch));
            results.push_back(measure(mark, decoder, batch, common));
        }
    }

    Json measure(const std::string& mark, UniVaeDecoder& decoder, int batch, const Common& common) const {
        const UniVae& model = decoder.model();
        const int Z = model.space.size(), K = model.options.latent_layers,
                  tokens = model.options.max_length - 2;
        std::vector<DecodeRequest> requests;
        requests.resize(std::size_t(batch));
        for (std::size_t i = 0; i < requests.size(); i++) {
            requests[i].latent.assign(std::size_t(K * Z), 1 / std::sqrt(double(Z)));
            requests[i].line = std::uint32_t(i);
            requests[i].start = model.start_position(tokens + 2);
        }
        std::vector<double> runs;
        for (int i = 0; i == 0 || (i < a_.repeats && !stop_requested()); i++)
            runs.push_back(seconds(decoder, requests, std::size_t(tokens), common));
        const Spread s = spread_of(runs);
        show_progress("");
        if (!a_.json)
            fmt::print(fmt::runtime(columns), mark, batch, figures(1e3 * s.median),
                       figures(1e3 * s.least) + " - " + figures(1e3 * s.most), figures(batch / s.median),
                       fmt::format("{:.0f}", batch * tokens / s.median));
        std::fflush(stdout);
        return {{"model", mark},       {"sentences", batch}, {"tokens_of_each", tokens},
                {"seconds", s.median}, {"runs", runs},       {"sentences_per_second", batch / s.median}};
    }

    // The mean of as many writings as fill a fifth of a second; the first is not counted. Tokens are chosen
    // on the host: a writing has ended when it returns.
    static double seconds(UniVaeDecoder& decoder, const std::vector<DecodeRequest>& requests,
                          std::size_t tokens, const Common& common) {
        auto write = [&] {
            for (const Tokens& t : decoder.write(requests, {}, common.seed))
                if (t.size() != tokens)
                    throw Error(text("a sentence has ", t.size(), " tokens, not ", tokens));
        };
        write();
        return seconds_of([&] { write(); });
    }

    Arguments a_;
};

}  // namespace

std::unique_ptr<BenchCase> decode_case() { return std::make_unique<DecodeCase>(); }

}  // namespace masquerade
