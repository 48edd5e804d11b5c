// SPDX-License-Identifier: MIT
// The program `corpus`, which `make data` runs. `corpus build` makes the default corpora from package lists of the
// Linux distribution. `corpus grammar` makes the default corpora from the built-in grammar of questions. Both commands
// print a table of the files.
#include "data/catalogue.h"
#include "data/corpus.h"
#include "data/grammar.h"
#include "tools/program.h"
#include "tools/say.h"

using namespace masquerade;

int main(int argc, char** argv) {
    std::string lists = "corpus/lists", out = "corpus";
    Options build, grammar;
    auto setup = [&](Options& app) {
        app.expect_commands(1);
        build = app.command("build", "synopses, titles and translations from package lists");
        build.input("--lists", lists, "DIR", "folder of data/fetch_catalogue.sh (default: corpus/lists)");
        grammar = app.command("grammar", "questions from the built-in grammar");
        for (Options command : {build, grammar})
            command.output("--out", out, "DIR", "folder of the corpus (default: corpus)");
    };
    auto body = [&](const Common& common) {
        const std::string table = build.chosen() ? write_catalogue_corpus(read_catalogue(lists), out)
                                                 : write_grammar_corpus(common.seed, out);
        const Corpus corpus = read_corpus(out);
        say("{}, {}, in {}/\n{}", corpus.name, corpus.date, out, Lines{table});
    };
    return run_program(argc, argv, "corpus", "Builds the default corpora", setup, body);
}
