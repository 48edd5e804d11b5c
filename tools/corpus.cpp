// SPDX-License-Identifier: MIT
// corpus: what `make data` runs. Builds the default corpora from the distribution's package lists, or from
// the built-in grammar of questions, and ends with a table of what was built.
#include "data/catalogue.h"
#include "data/corpus.h"
#include "data/grammar.h"
#include "tools/program.h"

using namespace masquerade;

int main(int argc, char** argv) {
    std::string lists = "corpus/lists", out = "corpus";
    CLI::App *build = nullptr, *grammar = nullptr;
    auto setup = [&](CLI::App& app) {
        app.require_subcommand(1);
        build = app.add_subcommand("build", "synopses and titles from package lists");
        build->add_option("--lists", lists, "folder of data/fetch_catalogue.sh")->capture_default_str();
        grammar = app.add_subcommand("grammar", "questions from the built-in grammar");
        for (CLI::App* command : {build, grammar})
            command->add_option("--out", out, "folder of the corpus")->capture_default_str();
    };
    auto body = [&](const Common& common) {
        const std::string table = build->parsed() ? write_catalogue_corpus(read_catalogue(lists), out)
                                                  : write_grammar_corpus(common.seed, out);
        const Corpus corpus = read_corpus(out);
        std::cout << corpus.name << ", " << corpus.date << ", in " << out << "/\n" << table;
    };
    return run_program(argc, argv, "corpus", "Builds the default corpora", setup, body);
}
