// SPDX-License-Identifier: MIT
// The table of all families of models.
#include "models/runs/classify_run.h"
#include "models/runs/flow_run.h"
#include "models/runs/insertion_run.h"
#include "models/runs/seq2seq_run.h"
#include "models/runs/unilm_run.h"
#include "models/runs/univae_run.h"

namespace masquerade {
namespace {

// Returns the row of families() for the runs of class R. The entries of the row are static members of R's settings, and
// functions that create and load such runs.
template <class R>
Family row() {
    using Settings = decltype(R::settings);
    return {Settings::name,
            Settings::what,
            Settings::reads,
            Settings::objectives(),
            Settings::options,
            [] { return std::unique_ptr<RunSettings>(std::make_unique<Settings>()); },
            [](const RunSettings& s, Vocabulary vocabulary, DType storage, Device device) {
                if (s.family() != std::string(Settings::name))
                    throw Error("settings of ", s.family(), " make no ", Settings::name);
                return std::unique_ptr<Run>(
                    std::make_unique<R>(static_cast<const Settings&>(s), std::move(vocabulary), storage, device));
            },
            [](const std::string& path, bool to_train, Device device, DType storage) {
                return std::unique_ptr<Run>(load_run<R>(path, to_train, device, storage));
            }};
}

}  // namespace

const std::vector<Family>& families() {
    static const std::vector<Family> all = {
        row<UniVaeRun>(), row<UniLmRun>(), row<Seq2SeqRun>(), row<InsertionRun>(), row<ClassifyRun>(), row<FlowRun>(),
    };
    return all;
}

}  // namespace masquerade
