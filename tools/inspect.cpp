// SPDX-License-Identifier: MIT
// ./inspect: looks inside. Pictures of masks, the gradients of ops and of models against calculus, the tape of a
// model, the tensors of a checkpoint.
#include <fmt/format.h>

#include <map>

#include "engine/nn/attention/attention.h"
#include "models/masks/mask.h"
#include "models/runs/run.h"
#include "tools/inspect/inspect.h"
#include "tools/inspect/small_model.h"
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

// Prints whether each kind of attention supports each mask, and why not.
void list_attention() {
    char next = 'A';
    for (const AttentionKind& kind : attention_kinds()) fmt::print("{} {:14}{}\n", next++, kind.name, kind.what);
    fmt::print("\n{:16}", "mask");
    const auto letter = [](const AttentionKind& kind) { return char('A' + (&kind - attention_kinds().data())); };
    for (const AttentionKind& kind : attention_kinds()) fmt::print("{}  ", letter(kind));
    std::map<std::string, std::pair<std::string, std::string>> reasons;  // to letters of kinds and names of masks
    for (const NamedMask& mask : named_masks()) {
        const Documents documents = {{6, 5}};
        const SegmentGraph graph = make_mask(mask.name, documents, example_details(documents));
        fmt::print("\n{:16}", mask.name);
        for (const AttentionKind& kind : attention_kinds()) {
            const std::string why = kind.refuses(graph);
            fmt::print("{}  ", why.empty() ? 'x' : '-');
            if (why.empty()) continue;
            auto& [kinds, masks] = reasons[why];
            if (kinds.find(letter(kind)) == std::string::npos) kinds += letter(kind);
            if (masks.find(text(" ", mask.name, ",")) == std::string::npos) masks += text(" ", mask.name, ",");
        }
    }
    fmt::print("\n");
    for (const auto& [why, who] : reasons)
        fmt::print("\n{} cannot honour{}\n  {}\n", who.first, who.second.substr(0, who.second.size() - 1), why);
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App *mask, *attention, *models, *gradients, *program, *checkpoint;
    std::vector<std::string> words;
    std::string name, dump;
    bool time = false;
    CheckpointSettings shown;
    int source = 6, target = 5;
    auto setup = [&](CLI::App& app) {
        app.require_subcommand(1);
        mask = app.add_subcommand("mask", "draws an attention mask by its name or in words (\"A full; B causal sees A[0]\"); without: lists them");
        add_option(*mask, "name", name, "[NAME]", "of the mask, or its words");
        add_option(*mask, "--source", source, "N", "tokens of the first part, with [CLS] (default: 6)")->check(CLI::Range(1, 1000));
        add_option(*mask, "--target", target, "N", "tokens of the second part (default: 5)")->check(CLI::Range(0, 1000));
        attention = app.add_subcommand("attention", "the kinds of attention, and which masks each supports");
        models = app.add_subcommand("models", "the families of models, and what each can be trained to do");
        gradients = app.add_subcommand(
            "gradients", "checks the backward of every op, or of a small model; status 1 if one is wrong");
        add_option(*gradients, "words", words, "[OP ... | MODEL [KEY=VALUE ...]]",
                   "only ops whose names begin so; or a model and settings, as ./train takes them");
        program = app.add_subcommand("program", "one step of a small model, as the tape recorded it");
        add_option(*program, "words", words, "[MODEL] [KEY=VALUE ...]",
                   "a model (default: univae) and settings, as ./train takes them, of a small one");
        add_option(*program, "--dump", dump, "DIR", "every value and gradient into this folder");
        program->add_flag("--time", time, "seconds by op instead of the program");
        checkpoint = app.add_subcommand("checkpoint", "lists the tensors of a checkpoint, or saves it anew");
        add_option(*checkpoint, "path", shown.path, "PATH",
                   "safetensors file, step folder, run folder, or BERT or RoFormer of Hugging Face's")->required();
        add_option(*checkpoint, "--save", shown.save, "DIR", "BERT, RoFormer: written anew to this folder");
        add_option(*checkpoint, "--tokens", shown.tokens, "FILE",
                   "... with these tokens alone: a vocabulary, or 'simplified', those that text can hold");
        add_option(*checkpoint, "--logits", shown.logits, "FILE",
                   "BERT, RoFormer: of every token of standard input, into this safetensors file; a tab "
                   "parts the two texts of a line");
    };
    auto body = [&](const Common& common) {
        if (mask->parsed()) name.empty() ? list_masks() : fmt::print("{}", draw_mask(name, source, target));
        if (attention->parsed()) list_attention();
        if (models->parsed()) list_models();
        if (gradients->parsed()) describes_model(words) ? check_model(words, common.seed) : check_ops(words);
        if (program->parsed()) print_program(words, dump, time, common.seed);
        if (checkpoint->parsed()) inspect_checkpoint(shown, common.seed);
    };
    return run_program(argc, argv, "inspect", "Looks inside masks, gradients, programs and checkpoints",
                       setup, body);
}
