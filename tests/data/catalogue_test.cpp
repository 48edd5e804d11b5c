// SPDX-License-Identifier: MIT
#include "data/catalogue.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "data/corpus.h"
#include "data/text.h"
#include "engine/base/error.h"
#include "tests/folder.h"

namespace masquerade {
namespace {

const char* packages_file =
    "Package: violet\n"
    "Source: flowers (1.2-3)\n"
    "Version: 1\n"
    "Depends: a,\n"
    " Description: not a field\n"
    "Description: Purple  flower\n"
    "Description-md5: 11\n"
    "Tag: role::x,\n"
    " role::y\n"
    "\n"
    "\n"
    "Package: anvil\r\n"
    "Description: heavy block\r\n"
    " For smiths.\r\n"
    " .\r\n"
    "  * in iron\r\n"
    "  * in steel\r\n"
    "\n"
    "Package: nameless\n"
    "Section: x\n"
    "\n"
    "Package: rose\n"
    "Source: flowers\n"
    "Description-md5: 22";

const char* translation_file =
    "Package: rose\n"
    "Description-md5: 22\n"
    "Description-en: red flower\n"
    " It has\n"
    " thorns. Beware: They sting.\n"
    "\n"
    "Package: violet\n"
    "Description-md5: 11\n"
    "Description-en: purple flower, translated\n"
    " It is small.\n";

const char* release_file =
    "-----BEGIN PGP SIGNED MESSAGE-----\n"
    "Hash: SHA256\n"
    "\n"
    "Origin: Debian\n"
    "Codename: bookworm\n"
    "Date: Sat, 07 Sep 2024 09:08:07 UTC\n";

}  // namespace

TEST_CASE("catalogue: stanzas, inline and translated descriptions") {
    std::vector<Package> packages = parse_packages({packages_file}, {translation_file});
    REQUIRE(packages.size() == 3);
    CHECK(packages[0].name == "anvil");
    CHECK(packages[0].source == "anvil");
    CHECK(packages[0].synopsis == "heavy block");
    CHECK(packages[0].description == "For smiths. * in iron * in steel");
    CHECK(packages[1].name == "rose");
    CHECK(packages[1].source == "flowers");
    CHECK(packages[1].synopsis == "red flower");
    CHECK(packages[1].description == "It has thorns. Beware: They sting.");
    CHECK(packages[1].translated.empty());
    CHECK(packages[2].source == "flowers");
    CHECK(packages[2].synopsis == "Purple flower");
    CHECK(packages[2].description == "It is small.");
}

TEST_CASE("catalogue: the order of lists and stanzas makes no difference") {
    std::string one = "Package: a\nDescription: x\n\nPackage: b\nDescription: y\n";
    std::string two = "Package: b\nDescription: z\n\nPackage: a\nSource: s\nDescription: w\n";
    std::vector<Package> forth = parse_packages({one, two}, {}), back = parse_packages({two, one}, {});
    REQUIRE(forth.size() == 4);
    for (int i = 0; i < 4; i++) {
        CHECK(forth[i].name == (i < 2 ? "a" : "b"));
        CHECK(forth[i].synopsis == back[i].synopsis);
    }
}

TEST_CASE("catalogue: a folder of lists becomes a corpus") {
    TemporaryFolder folder;
    folder.write("archive_main_binary-amd64_Packages", packages_file);
    folder.write("archive_main_i18n_Translation-en", translation_file);
    folder.write(
        "archive_main_i18n_Translation-de",
        "Package: rose\nDescription-md5: 22\nDescription-de: rote Blume\n Sie hat Dornen.\n Achtung:\n Ätzend.\n\n"
        "Package: other\nDescription-md5: 33\nDescription-de: unbekannt\n");
    folder.write("archive_InRelease", release_file);
    folder.write("security_InRelease",
                 "Origin: Debian\nCodename: bookworm-security\n"
                 "Date: Thu, 31 Oct 2024 01:02:03 UTC\n");
    Catalogue catalogue = read_catalogue(folder.path);
    CHECK(catalogue.name == "Debian bookworm");
    CHECK(catalogue.date == "2024-10-31");
    CHECK(catalogue.packages.size() == 3);
    write_catalogue_corpus(catalogue, folder.path + "/corpus");
    const Corpus corpus = read_corpus(folder.path + "/corpus");
    CHECK(corpus.name == "Debian bookworm package catalogue");
    std::string sentences, pairs, translations;
    for (int split = 0; split < 3; split++) {
        sentences += read_bytes(corpus.sentences[split]);
        pairs += read_bytes(corpus.pairs[split]);
        translations += read_bytes(corpus.translations[split]);
    }
    std::vector<std::pair<std::string, std::string>> expected = {{"red flower", "rote Blume"},
                                                                 {"It has thorns.", "Sie hat Dornen."},
                                                                 {"Beware:", "Achtung:"},
                                                                 {"They sting.", "Ätzend."}};
    CHECK(catalogue.packages[1].translated == expected);
    CHECK(translations.find("They sting.\tÄtzend.\n") != translations.npos);
    CHECK(std::count(translations.begin(), translations.end(), '\n') == 4);
    CHECK(sentences.size() == 37);
    CHECK(sentences.find("Purple flower\n") != sentences.npos);
    CHECK(pairs.find("For smiths. * in iron * in steel\theavy block\n") != pairs.npos);
}

TEST_CASE("catalogue: binaries of one source package never part") {
    Catalogue catalogue;
    for (int i = 0; i < 300; i++)
        for (int part = 0; part < 4; part++) {
            std::string source = "source" + std::to_string(i);
            catalogue.packages.push_back({source + '-' + std::to_string(part), source,
                                          source + " part " + std::to_string(part), "about " + source});
        }
    TemporaryFolder folder;
    write_catalogue_corpus(catalogue, folder.path);
    const Corpus corpus = read_corpus(folder.path);
    for (const auto* paths : {&corpus.sentences, &corpus.pairs})
        for (int split = 0; split < 3; split++) {
            Text text = read_text((*paths)[split]);
            CHECK(text.source.size() % 4 == 0);
            CHECK(text.source.size() > 0);
            for (const std::string& line : text.target.empty() ? text.source : text.target)
                CHECK(split_of(line.substr(0, line.find(' '))) == split);
        }
}

TEST_CASE("catalogue: a description and its translation, sentence for sentence") {
    using Pairs = std::vector<std::pair<std::string, std::string>>;
    const std::string english =
        "tool\nReads files. Writes\nthem.\n.\nIt has:\n * a part\n   of two lines\n * Linux\n.\nOne. Two.";
    CHECK(aligned_sentences(
              english,
              "Werkzeug\nLiest Dateien. Schreibt sie.\n.\nEs hat:\n * einen Teil\n * Linux\n.\nEins und zwei.") ==
          Pairs{{"tool", "Werkzeug"},
                {"Reads files.", "Liest Dateien."},
                {"Writes them.", "Schreibt sie."},
                {"It has:", "Es hat:"},
                {"a part of two lines", "einen Teil"}});  // no equal lines; no pairs of unequal numbers of sentences
    CHECK(aligned_sentences(english, "Werkzeug\nLiest Dateien. Schreibt sie.") == Pairs{{"tool", "Werkzeug"}});
    CHECK(aligned_sentences("see e.g. this", "see e.g. this").empty());
    CHECK(aligned_sentences("a tool\nSee e.g. this. It works (v. 2).", "Werkzeug\nSiehe z.B. das. Es geht.").size() ==
          3);
    CHECK(aligned_sentences("a\n  o an item\n no item", "b\n  o ein Punkt\n kein Punkt") ==
          Pairs{{"a", "b"}, {"an item no item", "ein Punkt kein Punkt"}});
    CHECK(aligned_sentences("", "").empty());
    CHECK(aligned_sentences("a", "").empty());
}

TEST_CASE("catalogue: nothing to read is said") {
    TemporaryFolder folder;
    CHECK_THROWS_AS(read_catalogue(folder.path + "/none"), BadInput);
    CHECK_THROWS_AS(read_catalogue(folder.path), BadInput);
    folder.write("x_Packages", "Package: a\nVersion: 1\n");
    CHECK_THROWS_AS(read_catalogue(folder.path), BadInput);
}

}  // namespace masquerade
