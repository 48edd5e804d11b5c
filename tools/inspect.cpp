// SPDX-License-Identifier: MIT
// ./inspect: looks inside. Pictures of masks, the gradient of every op against calculus, the tape of a model,
// the tensors of a checkpoint.
#include <fmt/format.h>

#include <memory>

#include "engine/tape/trace.h"
#include "models/mask.h"
#include "models/univae_run.h"
#include "tests/ladder.h"
#include "tools/inspect/checkpoint.h"
#include "tools/program.h"

using namespace masquerade;

namespace {

void list_masks() {
    for (const NamedMask& mask : named_masks()) fmt::print("{:16}{}\n", mask.name, mask.text);
    fmt::print("\n./inspect mask NAME --source N --target N draws one\n");
}

std::string error_text(double error) { return error < 0 ? "-" : fmt::format("{:.1e}", error); }

// A line for every tensor of every op whose name begins with one of `names`; the faults below.
void print_gradients(const std::vector<std::string>& names) {
    using namespace ladder;
    std::vector<std::string> faults, known;
    std::size_t shown = 0;
    for (const Op& op : ops_table()) {
        known.push_back(op.name);
        bool wanted = names.empty();
        for (const std::string& name : names) wanted |= op.name.compare(0, name.size(), name) == 0;
        if (!wanted) continue;
        if (shown++ == 0)
            fmt::print("op                              tensor    complex step         f32        bf16\n");
        Findings found;
        found.op = op.name;
        check_calculus(op, found);
        check_precision(op, found);
        for (const auto& [tensor, e] : found.tensors)
            fmt::print("{:32}{:8}{:>14}{:>12}{:>12}\n", op.name, tensor, error_text(e.complex_step),
                       error_text(e.f32), error_text(e.bf16));
        faults.insert(faults.end(), found.faults.begin(), found.faults.end());
    }
    if (shown == 0) throw BadUsage(fmt::format("no op of that name; there are {}", fmt::join(known, "; ")));
    fmt::print("\nlargest error relative to the largest number: of double against the complex step, at most\n"
               "1e-12; of f32 and bf16 against double, at most a few roundings\n");
    for (const std::string& fault : faults) fmt::print("wrong: {}\n", fault);
    if (!faults.empty()) throw Error(text(faults.size(), faults.size() == 1 ? " check" : " checks", " failed, see above"));
}

// A batch of random sentences, about this many tokens.
std::vector<Sentence> random_sentences(const UniVaeOptions& o, int tokens, std::uint64_t seed) {
    Sequence random(seed, "inspect");
    std::vector<Sentence> all;
    while (tokens > 0) {
        Sentence s;
        s.name = int(all.size());
        s.ids.push_back(2);
        for (std::uint32_t n = 1 + random.below(std::uint32_t(o.max_length - 2)); n > 0; n--)
            s.ids.push_back(5 + int(random.below(std::uint32_t(o.backbone.vocabulary - 5))));
        s.ids.push_back(3);
        tokens -= int(s.ids.size());
        all.push_back(s);
    }
    return all;
}

void print_times(const Clock& clock, int steps) {
    double total = 0;
    for (const auto& [op, share] : clock.shares()) total += share.forward + share.backward;
    fmt::print("{:16}{:>8}{:>14}{:>14}{:>9}\n", "op", "calls", "forward ms", "backward ms", "share");
    for (const auto& [op, share] : clock.shares())
        fmt::print("{:16}{:8}{:14.3f}{:14.3f}{:8.1f}%\n", op, share.calls / steps,
                   1e3 * share.forward / steps, 1e3 * share.backward / steps,
                   100 * (share.forward + share.backward) / total);
    fmt::print("{:16}{:8}{:14.3f} ms a step, forward and backward\n", "all", "", 1e3 * total / steps);
}

void print_program(const std::vector<std::string>& words, const std::string& dump_folder, bool time,
                   std::uint64_t seed) {
    UniVaeSettings settings;
    settings.vocabulary = 200;
    settings.batch_tokens = 48;
    UniVaeOptions& o = settings.model;
    BackboneOptions& b = o.backbone;
    b.width = 32, b.heads = 2, b.inner = 64, b.layers = 4;
    o.latent_layers = 2, o.latent.size = 8, o.max_length = 12;
    Config config;
    settings.declare(config);
    for (const std::string& word : words) config.set(word);
    b.vocabulary = settings.vocabulary;
    b.positions = 2 * o.max_length;

    Parameters parameters(DType::f32);
    UniVae model(parameters, o);
    parameters.allocate(seed);
    Arena arena;
    Tape tape(arena, DType::f32);
    Clock clock;
    std::unique_ptr<Dump> dump;
    if (!dump_folder.empty()) {
        dump = std::make_unique<Dump>(dump_folder);
        tape.observe(dump.get());
    }
    if (time) tape.observe(&clock);
    const std::vector<Sentence> sentences = random_sentences(o, settings.batch_tokens, seed);
    std::vector<const Sentence*> chosen;
    for (const Sentence& s : sentences) chosen.push_back(&s);
    const UniVaeBatch batch = model.batch(chosen);
    const LatentNoise noise = model.space.noise(batch.names, seed, 0);
    const int steps = time ? 4 : 1;  // the first one plans memory and is not timed
    for (int step = 0; step < steps; step++) {
        if (step == 1) clock.clear();
        tape.begin(batch.bucket, seed, 0, true);
        UniVae::Loss loss = model.loss(tape, batch, &noise, settings.beta);
        parameters.start_gradients();
        tape.backward(loss.total);
        tape.end();
    }
    if (time) return print_times(clock, steps - 1);
    if (dump) dump->write_program(tape);
    fmt::print("{}\n{} parameters; {} documents, {} rows\n", tape.program(), parameters.count(),
               batch.documents, batch.encoder.count() + batch.decoder.count());
    fmt::print("values and gradients: {:.1f} KiB as planned, {:.1f} side by side\n",
               double(arena.planned_bytes()) / 1024, double(arena.unplanned_bytes()) / 1024);
    if (dump) fmt::print("every value and gradient: {}/<path>.npy and <path>.grad.npy\n", dump_folder);
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App *mask = nullptr, *gradients = nullptr, *program = nullptr, *checkpoint = nullptr;
    std::vector<std::string> ops, words;
    std::string name, dump;
    CheckpointSettings shown;
    int source = 6, target = 5;
    bool time = false;
    auto setup = [&](CLI::App& app) {
        app.require_subcommand(1);
        mask = app.add_subcommand("mask", "draws an attention mask; without a name: lists them");
        mask->add_option("name", name, "of the mask")->option_text("[NAME]");
        mask->add_option("--source", source, "tokens of the first part, with [CLS] (default: 6)")
            ->option_text("N");
        mask->add_option("--target", target, "tokens of the second part (default: 5)")->option_text("N");
        gradients =
            app.add_subcommand("gradients", "checks the backward of every op; status 1 if one is wrong");
        gradients->add_option("ops", ops, "only ops whose names begin so")->option_text("[OP ...]");
        program = app.add_subcommand("program", "one step of a small UniVAE, as the tape recorded it");
        program->add_option("settings", words, "as ./train takes them")->option_text("[KEY=VALUE ...]");
        program->add_option("--dump", dump, "every value and gradient into this folder")->option_text("DIR");
        program->add_flag("--time", time, "seconds by op instead of the program");
        checkpoint = app.add_subcommand("checkpoint", "lists the tensors of a checkpoint, or saves it anew");
        checkpoint
            ->add_option("path", shown.path,
                         "safetensors file, step folder, run folder, or BERT or RoFormer of Hugging Face's")
            ->required()
            ->option_text("PATH");
        checkpoint->add_option("--save", shown.save, "BERT, RoFormer: written anew to this folder")
            ->option_text("DIR");
        checkpoint
            ->add_option(
                "--tokens", shown.tokens,
                "... with these tokens alone: a vocabulary, or 'simplified', those that text can hold")
            ->option_text("FILE");
        checkpoint
            ->add_option(
                "--logits", shown.logits,
                "BERT, RoFormer: of every token of standard input, into this safetensors file; a tab "
                "parts the two texts of a line")
            ->option_text("FILE");
    };
    auto body = [&](const Common& common) {
        if (mask->parsed()) name.empty() ? list_masks() : fmt::print("{}", draw_mask(name, source, target));
        if (gradients->parsed()) print_gradients(ops);
        if (program->parsed()) print_program(words, dump, time, common.seed);
        if (checkpoint->parsed()) inspect_checkpoint(shown, common.seed);
    };
    return run_program(argc, argv, "inspect", "Looks inside masks, gradients, programs and checkpoints",
                       setup, body);
}
