// SPDX-License-Identifier: MIT
// The language model over codes: every kind of latent that has codes reads back what it wrote; a rule by which codes
// follow each other is learned, and drawn by; the draw has a name.
#include "models/runs/code_prior.h"

#include <doctest/doctest.h>

#include <sys/resource.h>

#include <csignal>
#include <set>

#include "engine/io/file.h"
#include "models/runs/univae_run.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

std::vector<int> random_code(const LatentSpace& space, int parts, Sequence& random) {
    std::vector<int> code;
    for (int i = 0; i < parts; i++) code.push_back(int(random.below(std::uint32_t(space.code_choices()))));
    return code;
}

}  // namespace

TEST_CASE("code prior: a rule of the codes is learned, in every kind that has them") {
    const TemporaryFolder folder;
    int kinds = 0;
    for (const LatentKindRow& kind : latent_kinds()) {
        CAPTURE(std::string(kind.name));
        UniVaeSettings settings = tiny_settings(kind.kind);
        settings.model.latent.codes = 16;
        settings.model.latent.levels = 4;
        const std::vector<std::string> lines = {"who are you?", "where do you live?"};
        UniVaeRun run(settings, train_vocabulary(lines, 60));
        const LatentSpace& space = run.model.space;
        const int n = space.code_choices(), parts = int(space.code(run.model.space.prior(1, 0, 0)).size());
        CHECK((n > 0) == (parts > 0));
        if (n == 0) continue;
        kinds++;
        Sequence random(1, "codes");
        std::vector<std::vector<double>> latents;
        for (int i = 0; i < 24000 / parts; i++) {
            std::vector<int> code = random_code(space, parts, random);
            if (i < 20) CHECK(space.code(space.latent_of(code)) == code);
            for (int p = 1; p < parts; p++) code[std::size_t(p)] = (code[std::size_t(p) - 1] + 1) % n;
            latents.push_back(space.latent_of(code));
        }
        const std::string path = folder.file(kind.name);
        CodePrior::fit(path, space, latents, 7, 99, Device::cpu);
        const CodePrior prior(path, space, 99, Device::cpu);
        int follow = 0, pairs = 0;
        std::set<std::vector<double>> different;
        for (std::uint32_t line = 0; line < 50; line++) {
            const std::vector<double> z = prior.draw(5, line, 0);
            const std::vector<int> code = space.code(z);
            CHECK(space.latent_of(code) == z);
            different.insert(z);
            for (int p = 1; p < parts; p++, pairs++)
                follow += code[std::size_t(p)] == (code[std::size_t(p) - 1] + 1) % n;
        }
        CHECK(follow > 0.9 * pairs);
        CHECK(different.size() > 3);  // there are n that keep the rule
        CHECK(prior.draw(5, 1, 0) == CodePrior(path, space, 99, Device::cpu).draw(5, 1, 0));
        std::set<std::vector<double>> others;
        for (std::uint32_t k = 0; k < 9; k++)
            others.insert(prior.draw(5, 1, k)), others.insert(prior.draw(6 + k, 1, 0));
        CHECK(others.size() > 2);
        CHECK_SAYS(message_of<BadInput>([&] { CodePrior(path, space, 98, Device::cpu); }), "fitted to other weights");
    }
    CHECK(kinds == 2);
}

TEST_CASE(
    "code prior: a finished run of codes draws from the mixture, and from the language model where that is asked for") {
    const TemporaryFolder folder;
    UniVaeSettings settings = tiny_settings(LatentKind::vq);
    settings.prior_sentences = 100;
    const std::vector<std::string> lines = grammar_questions(3, 150);
    UniVaeRun run(settings, train_vocabulary(lines, settings.vocabulary));
    UniVaeTask task(run, run.sentences(lines), {});
    task.finish(folder.path);
    CHECK(!std::filesystem::exists(UniVaeRun::code_prior_folder(folder.path)));  // it is made where it is asked for
    task.fit_codes(folder.path, settings.prior_sentences);
    run.step_folder = folder.path;
    const auto drawn = [&](const std::string& word, std::optional<double> temperature = {}) {
        CAPTURE(word);
        UniVaeRun loaded(settings, run.tokenizer.vocabulary());
        loaded.step_folder = folder.path;
        loaded.choose_prior(word, temperature);
        CHECK(bool(loaded.code_prior) == (word == "codes"));
        return loaded.draw(1, 0, 0);
    };
    for (const char* word : {"", "fitted"}) CHECK(drawn(word) == run.prior->draw(1, 0, 0));
    CHECK(drawn("uniform") == run.model.space.prior(1, 0, 0));
    const CodePrior codes(UniVaeRun::code_prior_folder(folder.path), run.model.space, checksum_of(run.parameters),
                          Device::cpu);
    CHECK(drawn("codes") == codes.draw(1, 0, 0));
    CHECK(drawn("codes", 0.5) == codes.draw(1, 0, 0, 0.5));
    std::filesystem::remove_all(UniVaeRun::code_prior_folder(folder.path));
    CHECK(drawn("fitted") == run.prior->draw(1, 0, 0));
    CHECK_SAYS(message_of<BadInput>([&] { drawn("codes"); }),
               "the run has no language model of its codes; ./train --fit-prior makes it");
    UniVaeRun sphere(tiny_settings(LatentKind::vmf), run.tokenizer.vocabulary());
    CHECK_SAYS(message_of<BadUsage>([&] { sphere.choose_prior("codes", {}); }),
               "--prior codes is of latent=fsq and vq");
}

TEST_CASE("code prior: of another model it is refused, and an interrupted fit leaves the good one") {
    struct Model {
        LatentKind kind;
        int codes, groups, layers;
    };
    const Model models[] = {{LatentKind::vq, 6, 2, 2}, {LatentKind::vq, 9, 2, 2},  {LatentKind::vq, 6, 4, 2},
                            {LatentKind::vq, 6, 2, 1}, {LatentKind::fsq, 7, 1, 1}, {LatentKind::fsq, 4, 1, 1}};
    const std::vector<std::string> lines = {"who are you?", "where do you live?"};
    std::vector<std::unique_ptr<UniVaeRun>> runs;
    for (const Model& m : models) {
        UniVaeSettings settings = tiny_settings(m.kind);
        settings.model.latent.codes = m.codes, settings.model.latent.levels = m.codes,
        settings.model.latent.groups = m.groups;
        settings.model.latent_layers = m.layers;
        runs.push_back(std::make_unique<UniVaeRun>(settings, train_vocabulary(lines, 60)));
    }
    for (const auto& run : runs) {
        const TemporaryFolder folder;
        const LatentSpace& space = run->model.space;
        const std::string path = folder.file("codes");
        const std::vector<std::vector<double>> latents(30, space.prior(1, 0, 0));
        const auto fit = [&] { CodePrior::fit(path, space, latents, 7, 99, Device::cpu); };
        const auto limited = [&](rlim_t bytes) {  // the disk ends in the middle of the first checkpoint
            struct rlimit before;
            getrlimit(RLIMIT_FSIZE, &before);
            const struct rlimit less = {bytes, before.rlim_max};
            const auto old = std::signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &less);
            const std::string said = message_of<BadInput>(fit);
            setrlimit(RLIMIT_FSIZE, &before);
            std::signal(SIGXFSZ, old);
            return said;
        };
        CHECK(limited(20000) != "");
        CHECK(!std::filesystem::exists(path));
        fit();
        const std::vector<double> drawn = CodePrior(path, space, 99, Device::cpu).draw(5, 1, 0);
        CHECK(limited(20000) != "");
        CHECK(CodePrior(path, space, 99, Device::cpu).draw(5, 1, 0) == drawn);
        fit();
        CHECK(!std::filesystem::exists(folder.file(".new-codes")));
        for (const auto& other : runs) {
            const LatentSpace& there = other->model.space;
            const std::string said = message_of<BadInput>([&] { CodePrior(path, there, 99, Device::cpu); });
            if (other == run)
                CHECK(said == "");
            else if (there.code_choices() != space.code_choices())
                CHECK_SAYS(said, text("has other words than the ", there.code_choices(), " codes of the model"));
            else
                CHECK_SAYS(said, text(" parts, and a code of the model has ", there.code_parts()));
        }
        const std::string record = path + "/run.json";
        for (const char* wrong : {"{}", "{\"latents_of\": \"99\"}", "{\"latents_of\": -1}"}) {
            write_file(record, wrong);
            CHECK_SAYS(message_of<BadInput>([&] { CodePrior(path, space, 99, Device::cpu); }),
                       "fitted to other weights");
        }
        std::vector<int> code = space.code(latents[0]);
        for (int wrong : {-1, space.code_choices()}) {
            code.back() = wrong;
            CHECK_SAYS(message_of<BadInput>([&] { space.latent_of(code); }),
                       text("part ", wrong, " of a code is none of the model's 0 to "));
        }
        code.pop_back();
        CHECK_SAYS(message_of<BadInput>([&] { space.latent_of(code); }),
                   text("a code has ", code.size(), " parts, the model's have "));
        std::vector<double> nothing(std::size_t(space.numbers()), std::numeric_limits<double>::quiet_NaN());
        for (int part : space.code(nothing)) CHECK((part >= 0 && part < space.code_choices()));
    }
}
