// SPDX-License-Identifier: MIT
// ./inspect: looks inside. Pictures of masks, the gradients of ops and of models against calculus, the tape of a
// model, the tensors of a checkpoint.
#include <fmt/format.h>

#include "engine/nn/attention/attention.h"
#include "models/masks/mask.h"
#include "models/runs/run.h"
#include "tools/inspect/checkpoint.h"
#include "tools/inspect/gradients.h"
#include "tools/inspect/program.h"
#include "tools/program.h"

using namespace masquerade;

namespace {

void list_masks() {
    for (const NamedMask& mask : named_masks()) fmt::print("{:16}{}\n", mask.name, mask.text);
    fmt::print("\n./inspect mask NAME --source N --target N draws one\n");
}

void list_models() {
    for (const ModelKind& kind : model_kinds()) {
        fmt::print("{:10}{}\n", kind.name, kind.what);
        if (!kind.objectives.empty()) fmt::print("{:10}objectives: {}\n", "", fmt::join(kind.objectives, ", "));
    }
    fmt::print("\n./train MODEL, or ./train OBJECTIVE; ./train --help lists the settings of each\n");
}

// What each kind of attention says of each mask.
void list_attention() {
    for (const AttentionKind& kind : attention_kinds()) fmt::print("{:16}{}\n", kind.name, kind.what);
    fmt::print("\n{:16}", "mask");
    for (const AttentionKind& kind : attention_kinds()) fmt::print("{:<16}", kind.name);
    std::string reasons;
    for (const NamedMask& mask : named_masks()) {
        const Documents documents = {{6, 5}};
        const SegmentGraph graph = make_mask(mask.name, documents, example_details(documents));
        fmt::print("\n{:16}", mask.name);
        for (const AttentionKind& kind : attention_kinds()) {
            const std::string why = kind.refuses(graph);
            fmt::print("{:<16}", why.empty() ? "yes" : "-");
            if (!why.empty()) reasons += fmt::format("\n{} does not support {}: {}", kind.name, mask.name, why);
        }
    }
    fmt::print("\n{}", reasons.empty() ? "" : reasons + "\n");
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App *mask = nullptr, *attention = nullptr, *models = nullptr, *gradients = nullptr, *program = nullptr, *checkpoint = nullptr;
    std::vector<std::string> words;
    std::string name;
    ProgramOptions program_options;
    CheckpointSettings shown;
    int source = 6, target = 5;
    auto setup = [&](CLI::App& app) {
        app.require_subcommand(1);
        mask = app.add_subcommand("mask", "draws an attention mask by its name or in words (\"A full; B causal sees A[0]\"); without: lists them");
        mask->add_option("name", name, "of the mask")->option_text("[NAME]");
        mask->add_option("--source", source, "tokens of the first part, with [CLS] (default: 6)")
            ->check(CLI::Range(1, 1000))
            ->option_text("N");
        mask->add_option("--target", target, "tokens of the second part (default: 5)")
            ->check(CLI::Range(0, 1000))
            ->option_text("N");
        attention = app.add_subcommand("attention", "the kinds of attention, and which masks each supports");
        models = app.add_subcommand("models", "the families of models, and what each can be trained to do");
        gradients = app.add_subcommand(
            "gradients", "checks the backward of every op, or of a small model; status 1 if one is wrong");
        gradients
            ->add_option("words", words,
                         "only ops whose names begin so; or a model and settings, as ./train takes them")
            ->option_text("[OP ... | MODEL [KEY=VALUE ...]]");
        program = app.add_subcommand("program", "one step of a small model, as the tape recorded it");
        program
            ->add_option("words", words,
                         "a model (default: univae) and settings, as ./train takes them, of a small one")
            ->option_text("[MODEL] [KEY=VALUE ...]");
        program->add_option("--dump", program_options.dump, "every value and gradient into this folder")
            ->option_text("DIR");
        program->add_flag("--time", program_options.time, "seconds by op instead of the program");
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
        if (attention->parsed()) list_attention();
        if (models->parsed()) list_models();
        if (gradients->parsed()) describes_model(words) ? check_model(words, common.seed) : check_ops(words);
        if (program->parsed()) print_program(words, program_options, common.seed);
        if (checkpoint->parsed()) inspect_checkpoint(shown, common.seed);
    };
    return run_program(argc, argv, "inspect", "Looks inside masks, gradients, programs and checkpoints",
                       setup, body);
}
