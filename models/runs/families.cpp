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

// Returns the row of families() for the runs of class R, with functions that create and load such runs.
template <class R>
Family row(const char* what, const char* architecture, TextKind reads, Family::Options options,
           const Strings& objectives = {}) {
    using Settings = decltype(R::settings);
    return {Settings::name,
            what,
            architecture,
            reads,
            options,
            objectives,
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
        row<UniVaeRun>("a text VAE inside one Transformer", "UniVAE", TextKind::sentences, Family::of_latents),
        row<UniLmRun>("a BERT, a language model, or a model of source and target", "UniLM", TextKind::pairs,
                      Family::of_search, names_of(objectives())),
        row<Seq2SeqRun>("an encoder and a decoder, for pairs of source and target", "EncoderDecoder", TextKind::pairs,
                        Family::of_search, names_of(objectives(true))),
        row<InsertionRun>("an Insertion Transformer: writes a target's words in any order", "InsertionTransformer",
                          TextKind::translations, Family::of_insertion, names_of(insertion_objectives())),
        row<ClassifyRun>("a Transformer that classifies texts or made-up examples", "Classifier", TextKind::none,
                         Family::no_options),
        row<FlowRun>("a normalising flow: an exact density of vectors, and samples", "Flow", TextKind::none,
                     Family::of_vectors),
    };
    return all;
}

}  // namespace masquerade
