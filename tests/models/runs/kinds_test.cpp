// SPDX-License-Identifier: MIT
// The table of families: what each row makes, and the names that lead to it.
#include <doctest/doctest.h>

#include "tests/models/runs/tiny_family.h"
#include "tests/train/files.h"
#include "tools/new_model.h"

using namespace masquerade;

TEST_CASE("families: a name or an objective leads to the family, and an objective is set") {
    for (const ModelKind& kind : model_kinds()) {
        CHECK(&find_model(kind.name) == &kind);
        CHECK(kind.settings()->family() == std::string(kind.name));
        for (const std::string& objective : kind.objectives) {
            CAPTURE(objective);
            const ModelKind& found = kind_of({objective, "layers=2"});
            if (&found != &kind) continue;  // a name of an earlier row comes first
            const auto settings = kind.settings();
            Config keys;
            settings->declare(keys);
            apply_words(kind, {objective, "layers=2"}, keys);
            CHECK(keys.value("objective") == objective);
            CHECK(keys.value("layers") == "2");
        }
    }
    CHECK(&kind_of({}) == &model_kinds().front());
    CHECK(&kind_of({"layers=2"}) == &model_kinds().front());
    CHECK(std::string(kind_of({"mass"}).name) == "seq2seq");
    CHECK(std::string(kind_of({"lm"}).name) == "unilm");
    CHECK_SAYS(message_of<BadUsage>([] { find_model("lmm"); }), "there is no model lmm; there are univae, unilm, seq2seq");
}

TEST_CASE("families: an attention that cannot rotate takes the table of positions by itself, and is refused where rotary is asked for") {
    for (const ModelKind& kind : model_kinds())
        for (const AttentionKind& attention : attention_kinds()) {
            CAPTURE(std::string(kind.name));
            CAPTURE(std::string(attention.name));
            const auto settings = tiny(kind);
            Config keys;
            settings->declare(keys);
            keys.set("attention", attention.name);
            CHECK(keys.value("rotary") == (attention.rotates ? "true" : "false"));
            keys.set("attention", "softmax");
            CHECK(keys.value("rotary") == "true");
            keys.set("rotary", "true");
            keys.set("attention", attention.name);
            if (attention.rotates || (attention.needs_positions && std::string(kind.name) == "univae")) continue;
            const auto fresh = [&] { kind.fresh(*settings, learn_vocabulary(*settings, text_for(kind)), DType::f32, Device::cpu); };
            CHECK_SAYS(message_of<BadUsage>(fresh), "has no place for rotary positions; leave rotary out");
        }
}

TEST_CASE("families: a vocabulary of special tokens, and segment ids without a row, are refused before training") {
    for (const ModelKind& kind : model_kinds()) {
        CAPTURE(std::string(kind.name));
        const auto settings = tiny(kind);
        const auto fresh = [&](Vocabulary v) { kind.fresh(*settings, std::move(v), DType::f32, Device::cpu); };
        CHECK_SAYS(message_of<BadInput>([&] { fresh(Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})); }),
                   "the vocabulary holds 5 special tokens alone");
        Config keys;
        settings->declare(keys);
        if (!keys.has("types")) continue;
        keys.set("types=1");
        CHECK_SAYS(message_of<BadUsage>([&] { fresh(learn_vocabulary(*settings, text_for(kind))); }), "types=1");
    }
}

TEST_CASE("families: settings of one make no run of another") {
    const auto settings = tiny(find_model("unilm"));
    CHECK_THROWS_AS(find_model("seq2seq").fresh(*settings, train_vocabulary(grammar_questions(3, 50), 200), DType::f32,
                                                Device::cpu),
                    Error);
}
