// SPDX-License-Identifier: MIT
// ./my_model TEXT trains UniVAE on a text file with one sentence per line. Without TEXT, it trains on the built-in
// questions.
#include <cstdio>

#include "models/runs/training.h"

using namespace masquerade;

int main(int argc, char** argv) {
    NewTraining wanted;
    wanted.words = {"univae", "layers=3", "width=64", "heads=2", "inner=128", "latent_layers=2", "vocabulary=400"};
    if (argc > 1) wanted.data = argv[1];
    wanted.out = "my_run";
    Training training(wanted);
    training.options.steps = 60;
    training.options.minutes = 0;
    training.trainer().run([] { return false; });
    const Metric held_out = training.task->validate().at(0);
    std::printf("held-out %s %.3f nats a token; ./generate %s\n", held_out.name.c_str(), held_out.value,
                training.folder.path().c_str());
}
