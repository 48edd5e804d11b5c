// SPDX-License-Identifier: MIT
// Training in the C interface.
#include "library/call.h"
#include "tools/train_options.h"

using namespace masquerade;

int masquerade_train(const char* const* words, const char* const* options, masquerade_use_step use, void* user,
                     char** folder) {
    return call([&] {
        expect(folder, "folder");
        TrainingOptions how;
        DeviceOptions device;
        Options given;
        how.wanted.words = strings_of(words);
        with_keys(
            options,
            [&](Options& app) {
                given = app;
                how.declare(app);
                how.declare_more(app);
                how.declare_steps(app);
                device.declare(app);
            },
            [&] {
                for (const Option& option : given.given())
                    for (const char* of_new : {"--data", "--dev", "--vocab", "--init", "--config", "--out"})
                        if (!how.resume.empty() && option.name() == of_new)
                            throw BadUsage(option.name(), ": resume keeps what the run was started with; leave it out");
                how.wanted.device = device.choose();
                const std::unique_ptr<Training> training = how.training();
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
