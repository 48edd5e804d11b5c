// SPDX-License-Identifier: MIT
// ./bench decode: writing by models of random weights, each sentence as long as one may be, as ./generate writes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "models/writing/univae_decoder.h"
#include "tools/bench/decode_work.h"
#include "tools/bench/measure.h"
#include "tools/bench/session.h"
#include "tools/bench/train_marks.h"

namespace masquerade {
namespace {

namespace fs = std::filesystem;

constexpr const char* univae_columns = "{:<16}{:>10}{:>12}{:>18}{:>12}{:>12}\n";
constexpr const char* unilm_columns = "{:<16}{:>9}{:>12}{:>14}{:>8}\n";
constexpr double run_seconds = 0.2;

// A folder for the weights, for as long as they are read.
struct Folder {
    std::string path = (fs::temp_directory_path() / "masquerade-bench-XXXXXX").string();

    Folder() {
        if (!mkdtemp(path.data())) throw BadInput(text("no folder can be made as ", path, "; is there room?"));
    }
    Folder(const Folder&) = delete;
    ~Folder() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
};

bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool writes_beams(const std::string& model) { return has(beam_mark_names(), model); }

class DecodeCase : public BenchCase {
  public:
    DecodeCase()
        : BenchCase("decode", "writing: UniVAE greedily, UniLM by beams",
                    "generate of Hugging Face's transformers, for UniLM,", 3) {}

    void add_options(CLI::App& app) override {
        app.add_option("--models", models_,
                       "unilm-default, unilm-base, and the UniVAEs of ./bench train (default: "
                       "univae-default,univae-base,unilm-default)")
            ->delimiter(',')
            ->option_text("NAME,...");
        app.add_option("--batches", sentences_, "UniVAE: sentences asked for at once (default: 1,64,512)")
            ->delimiter(',')
            ->check(CLI::Range(1, 1 << 20))
            ->option_text("N,...");
        app.add_option("--sources", sources_, "UniLM: sources written for at once (default: 1,16,64)")
            ->delimiter(',')
            ->check(CLI::Range(1, 1 << 20))
            ->option_text("N,...");
        app.add_option("--beams", beams_, "UniLM: of each source; 1 is greedy (default: 4)")
            ->check(CLI::Range(1, 1024))
            ->option_text("N");
        app.add_flag("--cached-only", cached_only_,
                     "UniLM: leave out the search without a cache, which takes minutes on unilm-base");
    }

    void run(Session& session) override {
        for (const std::string& model : models_)
            if (!writes_beams(model) && (!has(train_mark_names(), model) || !train_mark(model, 1).univae))
                throw BadUsage(text("no model ", model,
                                    " writes here; there are unilm-default, unilm-base and the UniVAEs of "
                                    "./bench train"));
        session.begin("rows", {}, "");
        for (const std::string& model : models_)
            if (writes_beams(model))
                for (int sources : sources_) beams(session, model, sources);
            else
                greedy(session, model);
    }

  private:
    void greedy(Session& session, const std::string& mark) {
        const Common& common = session.common;
        const UniVaeOptions options = train_mark(mark, common.seed).model;
        Parameters parameters(DType::f32, common.device);
        const UniVae model(parameters, options);
        parameters.allocate(common.seed);
        UniVaeDecoder::Special special;
        special.forbidden.push_back(special.sep);  // so every sentence is as long as a sentence may be
        UniVaeDecoder decoder(model, special);
        const int values = options.latent_layers * model.space.size(), tokens = options.max_length - 2;
        const std::string head = '\n' + fmt::format(fmt::runtime(univae_columns), "greedy, f32", "sentences", "ms", "range",
                                                    "sent/s", "tok/s");
        for (int batch : sentences_) {
            std::vector<DecodeRequest> requests;
            requests.resize(std::size_t(batch));
            for (std::size_t i = 0; i < requests.size(); i++) {
                requests[i].latent.assign(std::size_t(values), 1 / std::sqrt(double(model.space.size())));
                requests[i].line = std::uint32_t(i);
                requests[i].start = model.start_position(tokens + 2);
            }
            // Tokens are chosen on the host: a writing has ended when it returns.
            auto write = [&] {
                for (const Tokens& t : decoder.write(requests, {}, common.seed))
                    if (int(t.size()) != tokens)
                        throw Error(text("a sentence has ", t.size(), " tokens, not ", tokens));
            };
            write();  // is not counted
            const auto runs = session.in_turns(text(mark, ", ", batch), {[&] { return seconds_of(write); }})[0];
            const Spread s = spread_of(runs);
            session.add({{"model", mark}, {"sentences", batch}, {"tokens_of_each", tokens},
                         {"seconds", s.median}, {"runs", runs}, {"sentences_per_second", batch / s.median}},
                        {batch == sentences_.front() ? head : "",
                         fmt::format(fmt::runtime(univae_columns), mark, batch, figures(1e3 * s.median),
                                     figures(1e3 * s.least) + " - " + figures(1e3 * s.most), figures(batch / s.median),
                                     fmt::format("{:.0f}", batch * tokens / s.median))});
        }
    }

    void beams(Session& session, const std::string& model, int sources) {
        BeamSizes sizes = beam_mark(model);
        sizes.sources = sources;
        sizes.beams = beams_;
        BeamWork work(sizes, session.common.device, session.common.seed);
        show_progress(fmt::format("{}, {}: the same bits with and without a cache", model, sources));
        const Written written = work.with_cache();
        const bool same_bits = cached_only_ || same(written, work.without_cache());
        if (!same_bits) {  // on a GPU a product may have other bits in another shape
            const std::string differs = text(model, ": with a cache another target is written, or another score");
            if (session.common.device == Device::cpu) throw Error(differs);
            log_line("warning: ", differs);
        }
        tell(session, work, written);
        std::vector<std::function<double()>> works = {[&] { return seconds_of([&] { work.with_cache(); }); }};
        if (!cached_only_) works.push_back([&] { return seconds_of([&] { work.without_cache(); }); });
        const auto runs = session.in_turns(text(model, ", ", sources), works);
        const double seconds = spread_of(runs[0]).median;
        Json row = {{"model", model}, {"sources", sources}, {"beams", sizes.beams},
                    {"source_tokens", sizes.source_tokens}, {"target_tokens", sizes.target_tokens},
                    {"seconds", seconds}, {"runs", runs[0]}, {"sentences_per_second", sources / seconds}};
        std::string rate, ratio;
        if (!cached_only_) {
            std::vector<double> ratios;
            for (std::size_t i = 0; i < runs[0].size(); i++) ratios.push_back(runs[1][i] / runs[0][i]);
            const double slower = spread_of(runs[1]).median;
            row["uncached"] = {{"seconds", slower}, {"runs", runs[1]},
                               {"sentences_per_second", sources / slower}, {"ratio", spread_of(ratios).median},
                               {"same_bits", same_bits}};
            rate = figures(sources / slower), ratio = figures(spread_of(ratios).median);
        }
        const std::string head = '\n' + fmt::format(fmt::runtime(unilm_columns), fmt::format("beam {}, f32", beams_),
                                                    "sources", "sent/s", "uncached", "ratio");
        session.add(row, {sources == sources_.front() ? head : "",
                          fmt::format(fmt::runtime(unilm_columns), model, sources, figures(sources / seconds), rate, ratio)});
    }

    // The weights, the sources and what ours wrote, for another program.
    static void tell(Session& session, const BeamWork& work, const Written& written) {
        if (!session.options.turns) return;
        const Folder folder;
        work.save(folder.path);
        Json about = {{"folder", folder.path}, {"beams", work.sizes.beams},
                      {"tokens", work.sizes.target_tokens}, {"forbidden", work.search_options().forbidden},
                      {"end", work.end()}, {"seconds", run_seconds}};
        for (const Sentence& s : work.sources()) about["sources"].push_back(s.ids);
        for (const auto& hypotheses : written)
            about["written"].push_back({hypotheses.front().tokens, hypotheses.front().score});
        session.start(about);
    }

    std::vector<std::string> models_ = {"univae-default", "univae-base", "unilm-default"};
    std::vector<int> sentences_ = {1, 64, 512}, sources_ = {1, 16, 64};
    int beams_ = 4;
    bool cached_only_ = false;
};

}  // namespace

std::unique_ptr<BenchCase> decode_case() { return std::make_unique<DecodeCase>(); }

}  // namespace masquerade
