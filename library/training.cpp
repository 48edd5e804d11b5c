// SPDX-License-Identifier: MIT
// Training in the C interface.
#include "library/call.h"
#include "models/runs/training.h"

using namespace masquerade;

int masquerade_train(const char* const* words, const char* const* options, masquerade_use_step use, void* user,
                     char** folder) {
    return call([&] {
        expect(folder, "folder");
        NewTraining wanted;
        DeviceOptions device;
        std::string resume;
        std::int64_t steps = 0;
        double minutes = -1;
        Options given;
        wanted.words = strings_of(words);
        with_keys(
            options,
            [&](Options& app) {
                given = app;
                app.input("--data", wanted.data, "FILE", "training text");
                app.input("--dev", wanted.held_out, "FILE", "held-out text");
                app.input("--vocab", wanted.vocabulary, "FILE", "vocabulary");
                app.input("--init", wanted.initial, "FOLDER", "weights to start with");
                app.input("--config", wanted.config, "FILE", "settings");
                app.output("--out", wanted.out, "DIR", "run folder");
                app.input("--resume", resume, "DIR", "run to continue");
                app.number("--steps", steps, std::int64_t(1), std::int64_t(1) << 40, "stop after N steps");
                app.number("--minutes", minutes, 0.0, 1e6, "stop after M minutes", "M");
                device.declare(app);
            },
            [&] {
                for (const Option& option : given.given())
                    for (const char* of_new : {"--data", "--dev", "--vocab", "--init", "--config", "--out"})
                        if (!resume.empty() && option.name() == of_new)
                            throw BadUsage(option.name(), ": resume keeps what the run was started with; leave it out");
                wanted.device = device.choose();
                const auto training = resume.empty() ? std::make_unique<Training>(wanted)
                                                     : std::make_unique<Training>(resume, wanted.words, wanted.device);
                training->limit(steps, minutes);
                if (!training->resumed())
                    for (const std::string& warning : training->task->warnings()) log_line(warning);
                Trainer& trainer = training->trainer();
                trainer.quiet = true;
                bool stopped = false;
                trainer.after_step = [&](std::int64_t step, double loss) {
                    const masquerade_step now{step, loss, trainer.norm()};
                    if (use && use(&now, user) != 0) stopped = true;
                };
                trainer.run([&] { return stopped; });
                give(training->folder.path() + '\n', folder);
            });
    });
}
