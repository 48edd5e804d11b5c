// SPDX-License-Identifier: MIT
// Tests the table of families: what each row makes, and the names that select it.
#include <doctest/doctest.h>

#include "tests/models/runs/tiny_family.h"
#include "tests/train/files.h"
#include "tokenizer/trainer.h"
#include "models/runs/training.h"

using namespace masquerade;

TEST_CASE("families: a name or an objective leads to the family, and an objective is set") {
    for (const Family& kind : families()) {
        CHECK(&find_family(kind.name) == &kind);
        CHECK(kind.settings()->family() == std::string(kind.name));
        for (const std::string& objective : kind.objectives) {
            CAPTURE(objective);
            const Family& found = kind_of({objective, "layers=2"});
            if (&found != &kind) continue;  // an earlier row has the same name
            const auto settings = kind.settings();
            Config keys;
            settings->declare(keys);
            apply_words(kind, {objective, "layers=2"}, keys);
            CHECK(keys.value("objective") == objective);
            CHECK(keys.value("layers") == "2");
        }
    }
    CHECK(&kind_of({}) == &families().front());
    CHECK(&kind_of({"layers=2"}) == &families().front());
    CHECK(std::string(kind_of({"mass"}).name) == "seq2seq");
    CHECK(std::string(kind_of({"lm"}).name) == "unilm");
    CHECK_SAYS(message_of<BadUsage>([] { find_family("lmm"); }), "there is no model lmm; did you mean mlm?");
}

TEST_CASE(
    "families: an attention that cannot rotate takes the table of positions by itself, and is refused where rotary is asked for") {
    for (const Family& kind : families())
        for (const AttentionKind& attention : attention_kinds()) {
            CAPTURE(std::string(kind.name));
            CAPTURE(std::string(attention.name));
            const auto settings = tiny(kind);
            Config keys;
            settings->declare(keys);
            if (!keys.has("attention")) continue;
            keys.set("attention", attention.name);
            CHECK(keys.value("rotary") == (attention.rotates ? "true" : "false"));
            keys.set("attention", "softmax");
            CHECK(keys.value("rotary") == "true");
            keys.set("rotary", "true");
            keys.set("attention", attention.name);
            if (attention.rotates) continue;
            const auto fresh = [&] {
                kind.fresh(*settings, learn_vocabulary(*settings, text_for(kind)), DType::f32, Device::cpu);
            };
            CHECK_SAYS(message_of<BadUsage>(fresh), "has no place for rotary positions; leave rotary out");
        }
}

TEST_CASE("families: a vocabulary of special tokens, and segment ids without a row, are refused before training") {
    for (const Family& kind : families()) {
        CAPTURE(std::string(kind.name));
        const auto settings = tiny(kind);
        const auto fresh = [&](Vocabulary v) { kind.fresh(*settings, std::move(v), DType::f32, Device::cpu); };
        CHECK_SAYS(message_of<BadInput>([&] {
                       fresh(Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}));
                   }),
                   "the vocabulary holds 5 special tokens and nothing else");
        Config keys;
        settings->declare(keys);
        if (!keys.has("types") || keys.value("types") == "1") continue;  // classify has only one segment id
        keys.set("types=1");
        CHECK_SAYS(message_of<BadUsage>([&] { fresh(learn_vocabulary(*settings, text_for(kind))); }), "types=1");
    }
}

TEST_CASE("families: settings of one make no run of another") {
    const auto settings = tiny(find_family("unilm"));
    CHECK_THROWS_AS(find_family("seq2seq").fresh(*settings, train_vocabulary(grammar_questions(3, 50), 200), DType::f32,
                                                 Device::cpu),
                    Error);
}

TEST_CASE("families: what is lost of a text is said before training, by the setting that keeps it") {
    for (const Family& kind : families()) {
        CAPTURE(std::string(kind.name));
        const auto settings = tiny(kind);
        Config keys;
        settings->declare(keys);
        TrainingText t = text_for(kind);
        // The task makes its examples itself; tests/terminal.sh tests files that are cut.
        if (t.train.empty()) continue;
        std::vector<std::string> words(t.train);
        words.insert(words.end(), t.train_targets.begin(), t.train_targets.end());
        for (int i = 0; i < 3; i++) {
            const std::vector<std::string> once = words;
            words.insert(words.end(), once.begin(), once.end());
        }
        const auto warnings = [&] {
            const auto run = kind.fresh(*settings, train_vocabulary(words, 400), DType::f32, Device::cpu);
            return run->task(t)->warnings();
        };
        keys.set("max_length", "64");
        if (keys.has("max_target")) keys.set("max_target", "64");
        CHECK(warnings().empty());
        for (const bool targets : {false, true}) {
            if (targets && t.train_targets.empty()) continue;
            std::vector<std::string>& lines = targets ? t.train_targets : t.train;
            const std::string before = lines[5];
            for (int i = 0; i < 70; i++) lines[5] += " the";
            const std::vector<std::string> one = warnings();
            REQUIRE(one.size() == 1);
            const LineLimit limit = targets ? settings->target_limit() : settings->source_limit();
            CHECK(one[0] == text("note: 1 of 200 ",
                                 targets                   ? "targets"
                                 : t.train_targets.empty() ? "lines"
                                                           : "sources",
                                 " (0.5 %) have more than ", limit.tokens, " tokens and lose their end; a larger ",
                                 limit.setting, " keeps it"));
            CHECK(keys.has(limit.setting));
            lines[5] = before;
            for (int i = 0; i < 20; i++) std::swap(lines[std::size_t(i)], words.emplace_back(text("\u4e2d\u6587", i)));
            const std::vector<std::string> unknown = warnings();
            REQUIRE(unknown.size() == 1);
            CHECK(unknown[0].rfind("warning: ", 0) == 0);
            CHECK_SAYS(unknown[0], "words (");
            CHECK_SAYS(unknown[0], "are read as [UNK]; a larger vocabulary");
            for (int i = 20; i-- > 0;) std::swap(lines[std::size_t(i)], words.back()), words.pop_back();
        }
    }
}
