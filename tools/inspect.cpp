// SPDX-License-Identifier: MIT
// ./inspect draws masks and attention, checks the gradients of ops and models, runs an op on given numbers, prints the
// tape of a model, draws the curves of runs, writes a report on a run, and lists the tensors of a checkpoint or saves
// it for Hugging Face.
#include <map>

#include "engine/base/named.h"
#include "engine/base/write_file.h"
#include "engine/nn/attention/attention.h"
#include "models/masks/mask.h"
#include "models/runs/run.h"
#include "tools/inspect/inspect.h"
#include "tools/inspect/small_model.h"
#include "tools/program.h"
#include "tools/say.h"

using namespace masquerade;

namespace {

void list_masks() {
    for (const NamedMask& mask : named_masks()) say("{:16}{}\n", mask.name, mask.text);
    say("\n./inspect mask NAME --source N --target N draws one\n");
}

void list_models() {
    for (const Family& kind : families()) {
        say_wrapped(10, "{:10}{}\n", kind.name, kind.what);
        if (!kind.objectives.empty()) say_wrapped(2, "{:10}objectives: {}\n", "", fmt::join(kind.objectives, ", "));
    }
    say("\n./train MODEL, or ./train OBJECTIVE; ./train MODEL --help lists its settings\n");
}

// Prints a table that shows which kinds of attention support which masks. If a kind does not support a mask, prints
// the reason below the table.
void list_attention() {
    const auto letter = [](const AttentionKind& kind) { return char('A' + (&kind - attention_kinds().data())); };
    for (const AttentionKind& kind : attention_kinds()) {
        Strings settings;
        for (const AttentionSetting& s : kind.settings()) settings.push_back(s.key);
        say_wrapped(16, "{} {:14}{}{}\n", letter(kind), kind.name, kind.what,
                    settings.empty() ? "" : "; " + joined(settings));
    }
    say("\n{:16}", "mask");
    for (const AttentionKind& kind : attention_kinds()) say("{}  ", letter(kind));
    // Maps the reason why a mask is not supported to (the letters of the kinds of attention that give this reason, the
    // names of the masks).
    std::map<std::string, std::pair<std::string, std::string>> reasons;
    for (const NamedMask& mask : named_masks()) {
        const Documents documents = {{6, 5}};
        const SegmentGraph graph = make_mask(mask.name, documents, example_details(documents));
        say("\n{:16}", mask.name);
        for (const AttentionKind& kind : attention_kinds()) {
            const AttentionKind& part =
                mask.rows == MaskRows::cross ? cross_attention(kind.name) : self_attention(kind.name, mask.decoder);
            const std::string why = part.refuses(graph);
            say("{}  ", why.empty() ? 'x' : '-');
            if (why.empty()) continue;
            auto& [kinds, masks] = reasons[why];
            if (kinds.find(letter(kind)) == std::string::npos) kinds += letter(kind);
            if (masks.find(text(" ", mask.name, ",")) == std::string::npos) masks += text(" ", mask.name, ",");
        }
    }
    say("\n");
    for (const auto& [why, who] : reasons)
        say("\n{} cannot honour{}\n  {}\n", who.first, who.second.substr(0, who.second.size() - 1), why);
}

}  // namespace

int main(int argc, char** argv) {
    Options mask, attention, models, gradients, op, program, plot, report, checkpoint;
    Strings words;
    std::string name, svg;
    ProgramSettings step;
    PlotSettings curves;
    AttentionPageSettings read;
    ReportSettings of_run;
    CheckpointSettings shown;
    int source = 6, target = 5;
    auto setup = [&](Options& app) {
        app.expect_commands(1);
        mask = app.command("mask",
                           "draws an attention mask, given by its name, or described as docs/add-a-mask.md explains; "
                           "without either: lists the names");
        mask.value("name", name, "[NAME]", "name of the mask, or the mask in words");
        mask.number("--source", source, 1, 1000, "tokens of the first part, with [CLS] (default: 6)");
        mask.number("--target", target, 0, 1000, "tokens of the second part (default: 5)");
        mask.output("--svg", svg, "FILE", "draw an SVG picture instead of text");
        attention =
            app.command("attention",
                        "lists the kinds of attention and which masks each supports; with a run: draws the attention "
                        "of its model for a line of text");
        const Option of =
            attention.input("run", read.run, "[RUN]",
                            "run folder, or one of its checkpoints: a page with a picture of every layer and head");
        attention
            .value("--text", read.text, "WORDS",
                   "the sentence, or source<TAB>target (default: the first line that the run held out)")
            .needs(of);
        attention.output("--out", read.out, "FILE", "the page (default: attention.html)").needs(of);
        models = app.command("models", "the families of models, and what each can be trained to do");
        gradients =
            app.command("gradients", "checks the backward of every op, or of a small model; status 1 if one is wrong");
        gradients.value("words", words, "[OP ... | MODEL [KEY=VALUE ...]]",
                        "beginnings of names of ops (default: all ops); or a model and settings, as for ./train");
        op = app.command("op", "runs an op on numbers, forward and backward, to compare with what you compute by hand");
        op.value("op", name, "OP", "an op of engine/ops/ops.h: layernorm, attention, adamw ...").required();
        op.value("words", words, "NAME=VALUE ...",
                 "its arguments: x=1,2/3,4 is a matrix of two rows; with dy=..., the backward runs, too");
        program = app.command("program", "one training step of a small model as a list of ops, forward and backward");
        program.value("words", step.words, "[MODEL] [KEY=VALUE ...]",
                      "a model (default: univae) and settings, as for ./train; other settings make it small");
        const Option dump = program.output("--dump", step.dump, "DIR", "write every value and gradient to this folder");
        program
            .flag("--time", step.time,
                  "print the time of each op instead of the program; not with --dump, which takes time")
            .excludes(dump);
        program.output("--graph", step.graph, "FILE", "draw the graph of the ops with Graphviz, .svg or .png");
        program.output("--memory", step.memory, "FILE", "draw the blocks of memory over the step, as an SVG");
        program
            .output("--timeline", step.timeline, "FILE",
                    "write when each op ran, as JSON for chrome://tracing or ui.perfetto.dev; not with --dump")
            .excludes(dump);
        plot =
            app.command("plot", "draws the curves of runs with gnuplot, one plot for each quantity in their log.jsonl");
        plot.input("runs", curves.runs, "RUN ...", "run folders").required();
        plot.value("--numbers", curves.numbers, "NAME,...",
                   "loss, held_out_loss, learning_rate and so on (default: the losses and other numbers of the model)")
            .list();
        plot.choice(
            "--over", curves.x, {"step", "tokens", "seconds"},
            "step (default), tokens or seconds; held-out numbers have only a step, so their tokens or seconds are "
            "interpolated");
        plot.output("--out", curves.out, "FILE", "the picture, .svg or .png (default: curves.svg)");
        report = app.command("report", "writes a page on a run: curves, what its latents hold, what it generates");
        report.input("run", of_run.run, "RUN", "run folder, or one of its checkpoints").required();
        report.output("--out", of_run.out, "FILE", "the page (default: report.html)");
        report.input("--data", of_run.data, "FILE",
                     "univae with latents: sentences to use instead of the held-out ones; text<TAB>label colours the "
                     "latents by label");
        report.number("--limit", of_run.limit, 2, 100000, "maximum number of lines (default: 400)");
        checkpoint = app.command("checkpoint", "lists the tensors of a checkpoint, or saves it for Hugging Face");
        checkpoint
            .input("path", shown.path, "PATH",
                   "safetensors file, step folder, run folder, or folder of a Hugging Face BERT, RoFormer or NomicBERT")
            .required();
        checkpoint.output("--save", shown.save, "DIR", "BERT, RoFormer, NomicBERT: save the model to this new folder");
        checkpoint.input(
            "--tokens", shown.tokens, "FILE",
            "... with only these tokens: a vocabulary file; 'simplified', those that text can contain; or 'pad-first', "
            "all, with [PAD] first");
        checkpoint.output("--logits", shown.logits, "FILE",
                          "BERT, RoFormer, NomicBERT: write the logits of every token of standard input to this "
                          "safetensors file; a tab separates the two texts of a line");
    };
    auto body = [&](const Common& common) {
        if (mask.chosen() && !svg.empty()) {
            if (name.empty()) throw BadUsage("--svg draws one mask: give its name or its words");
            return replace_file(svg, mask_svg(name, source, target));
        }
        if (mask.chosen()) name.empty() ? list_masks() : say("{}", Lines{draw_mask(name, source, target)});
        if (plot.chosen()) plot_runs(curves);
        if (report.chosen()) write_report(of_run, common.seed, common.device);
        if (attention.chosen()) read.run.empty() ? list_attention() : draw_attention(read);
        if (models.chosen()) list_models();
        if (gradients.chosen()) describes_model(words) ? check_model(words, common.seed) : check_ops(words);
        if (op.chosen()) run_op(name, words, common.seed);
        if (program.chosen()) print_program(step, common.seed);
        if (checkpoint.chosen()) inspect_checkpoint(shown, common.seed);
    };
    return run_program(argc, argv, "inspect", "Looks inside masks, gradients, programs and checkpoints", setup, body);
}
