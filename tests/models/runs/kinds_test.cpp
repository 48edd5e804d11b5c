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

TEST_CASE("families: settings of one make no run of another") {
    const auto settings = tiny(find_model("unilm"));
    CHECK_THROWS_AS(find_model("seq2seq").fresh(*settings, train_vocabulary(grammar_questions(3, 50), 200), DType::f32,
                                                Device::cpu),
                    Error);
}
