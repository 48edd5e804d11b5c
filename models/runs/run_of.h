// SPDX-License-Identifier: MIT
// The members that the runs of all families have in common. Settings and Net are the types of the family's settings and
// model. Base is Run, or a class derived from Run.
#pragma once
#include <memory>

#include "models/runs/run.h"

namespace masquerade {

template <class Settings, class Net, class Base = Run>
class RunOf : public Base {
  public:
    // `weights` is the file from which the weights will be loaded, or null. If it is null, the parameters get random
    // initial values. Otherwise, the shapes of the tensors in the file are checked before memory is allocated.
    RunOf(const Settings& s, Vocabulary vocabulary, DType storage = DType::f32, Device device = Device::cpu,
          const TensorFile* weights = nullptr)
        : Base(s, std::move(vocabulary), storage, device),
          settings(s),
          model(this->parameters, s.net(this->tokenizer.vocabulary().size())) {
        if (weights) expect_shapes(*weights, this->parameters);
        this->parameters.allocate(s.train.seed, !weights);
    }
    const Settings& common() const override { return settings; }
    RunSettings& settings_to_change() override { return settings; }

    Settings settings;
    Net model;
};

// Loads a run from its folder or from one of its step folders. If `to_train` is true, the run gets the precision of its
// settings and the weights of the last update. If `to_train` is false, the run gets the precision `storage` and, if the
// checkpoint has a moving average of the weights, this moving average. Throws BadUsage if the family cannot compute in
// this precision.
template <class R>
std::unique_ptr<R> load_run(const std::string& path, bool to_train = false, Device device = Device::cpu,
                            DType storage = DType::f32) {
    const RunFolder folder = RunFolder::open(path);
    const std::int64_t step = folder.latest_step();
    const TensorFile weights = open_model(folder, step);
    decltype(R::settings) settings;
    read_settings(folder, step, settings);
    auto run =
        std::make_unique<R>(settings, vocabulary_of(folder), to_train ? settings.precision : storage, device, &weights);
    if (!to_train && run->parameters.storage() != storage)
        throw BadUsage(path, " is a run of ", settings.family(), ", which computes only in ",
                       name_of(run->parameters.storage()), "; leave --precision out (in the library: precision)");
    run->load_checkpoint(folder, step, weights);
    if (to_train) return run;
    run->use_moving_average();
    run->parameters.freeze();
    return run;
}

}  // namespace masquerade
