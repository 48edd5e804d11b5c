// SPDX-License-Identifier: MIT
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "doctest/doctest.h"
#include "engine/base/error.h"
#include "models/scoring/source_baselines.h"

using namespace masquerade;
using nlohmann::json;

TEST_CASE("source baselines: the first words and characters") {
    CHECK(first_words("  This is\ta  test.\n", 3) == "This is a");
    CHECK(first_words("This is a test.", 4) == "This is a test.");
    CHECK(first_words("a b c d e f g h i j") == "a b c d e f g h i");
    CHECK(first_words("größe\u3000名 x", 2) == "größe 名");
    CHECK(first_words("some words", 0) == "");
    CHECK(first_words("", 3) == "");
    CHECK(first_characters("春风 又绿江南岸", 4) == "春风又绿");
    CHECK(first_characters("春风", 4) == "春风");
    CHECK(first_characters("一二三四五六七八九十") == "一二三四五六七八九");
}

TEST_CASE("source baselines: the nearest source is that of the formula, written out in Python") {
    std::ifstream file("tests/golden/text_metrics/golden.json");
    const json golden = json::parse(file)["nearest"];
    NearestSource nearest(golden["training"].get<std::vector<std::string>>());
    int different = 0;
    for (std::size_t i = 0; i < golden["queries"].size(); i++) {
        CAPTURE(i);
        const double cosine = golden["found"][i][1];
        const NearestSource::Found found = nearest.find(golden["queries"][i].get<std::string>());
        CHECK(found.index == golden["found"][i][0].get<std::size_t>());
        CHECK(std::abs(found.cosine - cosine) <= 1e-12);
        different += cosine > 0 && cosine < 0.999;
    }
    CHECK(different >= 20);
}

TEST_CASE("source baselines: of equally near sources the first, and the same whatever was asked before") {
    NearestSource nearest({"unrelated words", "files for reading", "reading FILES for", "for reading files"});
    CHECK(nearest.find("Reading for files").index == 1);
    CHECK(nearest.find("Reading for files").cosine == doctest::Approx(1).epsilon(1e-12));
    const double before = nearest.find("reading new things").cosine;
    nearest.find("new things");  // words that are in no source; looking them up must not add them
    CHECK(nearest.find("reading new things").cosine == before);
    CHECK(before == nearest.find("reading").cosine);
    CHECK(nearest.find("nothing of this").index == 0);
    CHECK(nearest.find("nothing of this").cosine == 0);
    CHECK(nearest.find("").cosine == 0);
    CHECK(NearestSource({"", "春风又绿"}).find("春天").index == 1);
    CHECK_THROWS_AS(NearestSource({}), BadInput);
}

TEST_CASE("source baselines: a rare word weighs more than a frequent one, one that is repeated more than once") {
    NearestSource nearest({"the map", "the tool", "the file", "a rare the", "tool tool map"});
    CHECK(nearest.find("the rare").index == 3);
    CHECK(nearest.find("tool tool map").index == 4);
    CHECK(nearest.find("tool").index == 4);  // it has 2 of the source's 3 words, and no word that is in every source
}
