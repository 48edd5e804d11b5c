// SPDX-License-Identifier: MIT
// The options of ./train that masquerade_train() of the library reads as well.
#pragma once
#include "models/runs/training.h"
#include "tools/options.h"

namespace masquerade {

struct TrainingOptions {
    NewTraining wanted;  // the program sets wanted.words, the model's name and key=value pairs, and wanted.device
    std::string resume;
    std::int64_t steps = 0;
    double minutes = -1;

    // Declare the options that --help lists, and those that only --help-all lists; declare_steps() declares --steps.
    void declare(Options& app) {
        app.input("--data", wanted.data, "FILE",
                  "one sentence or source<TAB>target per line (default: the text in corpus/), or a folder written by "
                  "./tokenize --pack");
        app.input("--init", wanted.initial, "FOLDER",
                  "start with the weights and vocabulary of a run or of a Hugging Face BERT, RoFormer or NomicBERT");
        app.output("--out", wanted.out, "DIR", "run folder (default: runs/MODEL-NNN)");
        app.input("--resume", resume, "DIR",
                  "continue a run: an interrupted one to the end of its schedule, a finished one for ten minutes");
        app.number("--minutes", minutes, 0.0, 1e6, "stop after M minutes (default: 10 for a new run; 0: no limit)",
                   "M");
    }
    void declare_more(Options& app) {
        app.input("--config", wanted.config, "FILE", "settings from a file; key=value overrides it");
        app.input("--dev", wanted.held_out, "FILE", "held-out text (default: one line in fifty)");
        app.input("--vocab", wanted.vocabulary, "FILE",
                  "vocab.txt, tokenizer.json or their folder (default: learned from the text)");
    }
    void declare_steps(Options& app) {
        app.number("--steps", steps, std::int64_t(1), std::int64_t(1) << 40, "stop after N steps");
    }
    // Returns the new or resumed training with these limits. The options must be those of a new run, or of a resumed
    // one.
    std::unique_ptr<Training> training() const {
        auto made = resume.empty() ? std::make_unique<Training>(wanted)
                                   : std::make_unique<Training>(resume, wanted.words, wanted.device);
        made->limit(steps, minutes);
        return made;
    }
};

}  // namespace masquerade
