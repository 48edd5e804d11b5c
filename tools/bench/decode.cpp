// SPDX-License-Identifier: MIT
// ./bench decode: writing by models of random weights, through the cached decoders of ./generate.
#include "tools/bench/decode.h"

#include <fmt/format.h>

#include "engine/base/log.h"
#include "tools/bench/case.h"
#include "tools/bench/machine.h"
#include "tools/bench/progress.h"

namespace masquerade {
namespace {

using Json = nlohmann::ordered_json;

class DecodeCase : public BenchCase {
  public:
    DecodeCase()
        : BenchCase("decode", "writing: UniVAE greedily, UniLM by beams beside Hugging Face's generate") {}

    void add_options(CLI::App& app) override {
        app.add_option("--models", a_.models,
                       "unilm-default, unilm-base, and the UniVAEs of ./bench train (default: "
                       "univae-default,univae-base,unilm-default)")
            ->delimiter(',')
            ->option_text("NAME,...");
        app.add_option("--batches", a_.sentences, "UniVAE: sentences asked for at once (default: 1,64,512)")
            ->delimiter(',')
            ->check(CLI::Range(1, 1 << 20))
            ->option_text("N,...");
        app.add_option("--sources", a_.sources, "UniLM: sources written for at once (default: 1,16,64)")
            ->delimiter(',')
            ->check(CLI::Range(1, 1 << 20))
            ->option_text("N,...");
        app.add_option("--beams", a_.beams, "UniLM: of each source; 1 is greedy (default: 4)")
            ->check(CLI::Range(1, 1024))
            ->option_text("N");
        app.add_flag_callback(
            "--cached-only", [this] { a_.uncached = false; },
            "UniLM: leave out the search without a cache, which takes minutes on unilm-base");
        app.add_option("--peer", a_.peer,
                       "a Python that has torch and transformers, or none (default: the first found)")
            ->option_text("PYTHON");
        app.add_option("--repeats", a_.repeats, "runs of each; medians count (default: 3)")
            ->check(CLI::Range(1, 1000))
            ->option_text("N");
        app.add_flag("--json", json_, "the same as JSON, with each run");
        app.add_option("--save", save_, "the JSON into a file, too, which is written after each row")
            ->option_text("FILE");
    }

    void run(const Common& common) override {
        stop_requested();  // from here on Ctrl-C asks
        for (const std::string& model : a_.models)
            if (!UniVaeWriting::knows(model) && !UniLmWriting::knows(model))
                throw BadUsage(text("no model ", model,
                                    " writes here; there are unilm-default, unilm-base and the UniVAEs of "
                                    "./bench train"));
        a_.table = !json_;
        const Machine machine = this_machine();
        const std::string about = described(machine, common.device);
        if (a_.table) fmt::print("{}\n", about);
        Json all = json_head("decode", common.device, machine), rows = Json::array();
        UniVaeWriting univae(a_, common);
        UniLmWriting unilm(a_, common);
        auto save = [&](bool complete) {
            all["peer"] = unilm.peer();
            all["rows"] = rows;
            all["complete"] = complete;
            if (!save_.empty()) save_json(save_, all);
        };
        auto found = [&](const Json& row) {
            rows.push_back(row);
            save(false);
        };
        for (const std::string& model : a_.models)
            UniLmWriting::knows(model) ? unilm.measure(model, found) : univae.measure(model, found);
        show_progress("");
        if (stop_requested()) log_line("note: stopped as asked");
        save(!stop_requested());
        if (json_) fmt::print("{}\n", all.dump(2));
    }

  private:
    DecodeOptions a_;
    std::string save_;
    bool json_ = false;
};

}  // namespace

std::unique_ptr<BenchCase> decode_case() { return std::make_unique<DecodeCase>(); }

}  // namespace masquerade
