// SPDX-License-Identifier: MIT
// Tests codes of discrete latents as text: they are printed, read again, and refused for every other kind of latent.
#include <doctest/doctest.h>

#include <sstream>

#include "models/runs/writer.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

std::vector<std::string> lines_of(const std::string& all) {
    std::istringstream in(all);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

// Returns the number of parts of a code in each layer.
std::vector<int> parts_of_code(const std::string& line) {
    std::vector<int> parts = {0};
    std::istringstream in(line);
    for (std::string word; in >> word;)
        if (word == "|")
            parts.push_back(0);
        else
            parts.back()++;
    return parts;
}

struct Coded {
    std::vector<std::string> lines = grammar_questions(3, 12);
    UniVaeRun run;
    Coded(LatentKind kind, bool free_length = false) : run(settings(kind, free_length), train_vocabulary(lines, 200)) {
        lines[3] = "";
        lines[4] += "\tthe target of a pair";
    }
    static UniVaeSettings settings(LatentKind kind, bool free_length) {
        UniVaeSettings s = tiny_settings(kind);
        s.model.backbone.deviation = 0.4;
        s.model.latent.groups = 4;
        s.model.latent.codes = 16;
        s.model.free_length = free_length;
        return s;
    }
    static Writing printing() {
        Writing how;
        how.run = "RUN";
        how.codes = true;
        return how;
    }
    static Writing reading(int length = 0) {
        Writing how;
        how.run = "RUN";
        how.from_codes = true;
        how.length = length;
        return how;
    }
    std::string written(const Writing& how, const std::vector<std::string>& from) {
        return run.writer(how).write(from, 0);
    }
};

}  // namespace

TEST_CASE("codes: every kind of latent prints them and takes them, or refuses by its name") {
    int discrete = 0;
    for (const LatentKindRow& kind : latent_kinds()) {
        CAPTURE(std::string(kind.name));
        Coded coded(kind.kind);
        if (coded.run.model.space.layer(0).code_parts() == 0) {
            for (const Writing& how : {Coded::printing(), Coded::reading()})
                CHECK_SAYS(message_of<BadUsage>([&] { coded.run.writer(how); }),
                           text("RUN has latent=", kind.name, ", whose latents are no codes"));
            continue;
        }
        discrete++;
        const std::vector<std::string> codes = lines_of(coded.written(Coded::printing(), coded.lines));
        REQUIRE(codes.size() == coded.lines.size());
        CHECK(codes[3].empty());
        CHECK(codes[0] != codes[1]);
        CHECK(std::count(codes[0].begin(), codes[0].end(), '|') == 1);  // there are two latent layers
        Writing again;
        again.reconstruct = true;
        CHECK(coded.written(Coded::reading(), codes) == coded.written(again, coded.lines));
        const LatentSpace::Code zeros(2, std::vector<int>(std::size_t(coded.run.model.space.layer(0).code_parts())));
        CHECK(coded.run.model.space.code_of(coded.run.model.space.latent_of(zeros)) == zeros);
    }
    CHECK(discrete == 2);
}

TEST_CASE("codes: a line that is no code is refused with its number") {
    Coded coded(LatentKind::vq);
    for (const auto& [line, why] : {std::pair("1 2 3 4", "there are 1 layers"),
                                    {"1 2 3 4 | 1 2 3", "layer 1 has 3 numbers, but 4 are needed"},
                                    {"1 2 3 4 | 1 2 3 4 | 1 2 3 4", "there are more than 2 layers"},
                                    {"1 2 3 16 | 1 2 3 4", "\"16\" is no number from 0 to 15"},
                                    {"1 2 3 -1 | 1 2 3 4", "\"-1\" is no number from 0 to 15"},
                                    {"a sentence", "\"a\" is no number from 0 to 15"}})
        CHECK_SAYS(message_of<BadInput>([&, code = line] {
                       coded.written(Coded::reading(), {"", code});
                   }),
                   text("standard input, line 2: ", why));
}

TEST_CASE("codes: of kinds by layer, all must be discrete") {
    UniVaeSettings s = Coded::settings(LatentKind::vmf, false);
    const Strings lines = grammar_questions(3, 12);
    for (const auto& [kinds, refused] :
         {std::pair("fsq,vq", ""), {"vq,gaussian", "latent=gaussian in latent layer 1"}}) {
        s.kinds_by_layer = kinds;
        UniVaeRun run(s, train_vocabulary(lines, 200));
        if (*refused)
            CHECK_SAYS(message_of<BadUsage>([&] { run.writer(Coded::printing()); }), refused);
        else
            CHECK(parts_of_code(run.writer(Coded::printing()).write({lines[0]}, 0)) == std::vector<int>{8, 4});
    }
    s.kinds_by_layer = "gaussian,vqq";
    CHECK_SAYS(message_of<BadUsage>([&] { s.net(100); }), "there is no latent kind vqq; there are vmf");
}

TEST_CASE("codes: with a free length, a code needs the length of its sentence") {
    Coded coded(LatentKind::fsq, true);
    CHECK_SAYS(message_of<BadUsage>([&] { coded.run.writer(Coded::reading()); }), "give --length");
    CHECK_NOTHROW(coded.written(Coded::reading(4), lines_of(coded.written(Coded::printing(), coded.lines))));
}

TEST_CASE("univae: the uniform prior replaces a fitted one that is loaded") {
    Coded coded(LatentKind::vq);
    const std::vector<Sentence> sentences = coded.run.sentences(grammar_questions(3, 40));
    coded.run.prior = std::make_shared<const MixturePrior>(fit_prior(coded.run.model, *in_memory(sentences), 40, 1));
    coded.run.choose_prior("uniform", {});
    CHECK_FALSE(coded.run.prior);
}
