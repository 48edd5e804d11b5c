// SPDX-License-Identifier: MIT
#include "tools/bench/attention.h"
#include "tools/bench/train.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "doctest/doctest.h"
#include "engine/ops/visible.h"
#include "models/masks/mask.h"
#include "tests/tools/small_mark.h"

using namespace masquerade;

TEST_CASE("train marks: sizes, ids and tokens of each") {
    for (const std::string& name : train_mark_names()) {
        CAPTURE(name);
        const TrainMark mark = train_mark(name, 1);
        const int V = mark.model.backbone.vocabulary;
        int tokens = 0;
        for (const auto& ids : mark.sentences) {
            for (int id : ids) CHECK((id >= 0 && id < V));
            CHECK(int(ids.size()) <= (mark.univae ? 20 : 64));
            CHECK(int(ids.size()) >= (mark.univae ? 8 : 64));
            tokens += int(ids.size());
        }
        CHECK(mark.tokens() == tokens - (mark.univae ? int(mark.sentences.size()) : 0));
        CHECK(mark.sentences == train_mark(name, 1).sentences);
        CHECK(mark.sentences != train_mark(name, 2).sentences);
        if (name == "univae-default") CHECK((tokens <= 360 && tokens > 340));
        if (name.find("-16k") != name.npos) CHECK((tokens <= 16384 && tokens > 16364));
    }
    CHECK(train_mark("bert-small", 1).tokens() == 2048);
    CHECK(train_mark("bert-base", 1).tokens() == 512);
    CHECK(train_mark("unilm-base-16k", 1).sentences.size() == 256);
    for (const char* size : {"small", "base"})
        CHECK(train_mark(text("univae-", size, "-16k"), 1).model.backbone.width ==
              train_mark(text("univae-", size), 1).model.backbone.width);
    for (Device device : {Device::cpu, Device::cuda})
        for (const std::string& name : train_mark_names(device)) CHECK(train_mark(name, 1).name == name);
    CHECK_THROWS_AS(train_mark("bert", 1), BadUsage);
}

TEST_CASE("train marks: the first loss is near ln V, steps lower it, and without dropout the noise stays") {
    for (const char* name : {"bert-small", "univae-small"}) {
        CAPTURE(name);
        const TrainMark mark = small_mark(name);
        MarkTraining plain(mark, DType::f32, {}, false), dropped(mark, DType::f32, {}, true);
        const double before = plain.trainer.train_step(), after = plain.trainer.train_step();
        CHECK(std::fabs(before - std::log(8000)) < 0.3);
        CHECK(after < before);
        CHECK(plain.trainer.norm() > 0);
        CHECK((dropped.trainer.train_step() != before) == !mark.univae);  // the UniVAE marks have no dropout
        CHECK(plain.trainer.planned_bytes() > 0);
        const Json noise = plain.task->noise();
        CHECK(noise.is_null() == !mark.univae);
        dropped.trainer.train_step();
        CHECK((noise == dropped.task->noise()) == !mark.univae);  // without dropout, all steps have the same noise
    }
}

TEST_CASE("train marks: every weight lies where its name says") {
    const TrainMark mark = small_mark("univae-small");
    const MarkTraining training(mark, DType::f32, {}, true);
    const Parameters& parameters = training.task->parameters;
    const Json places = weight_places(parameters);
    const OnHost weights(parameters.values());
    auto number = [&](const std::string& name, std::size_t i) {
        float x;
        const char* all = static_cast<const char*>(weights.view().data);
        std::memcpy(&x, all + places.at(name).get<std::size_t>() + i * sizeof x, sizeof x);
        return x;
    };
    for (std::size_t i : {0, 15}) {
        CHECK(number("layer.1.norm2.weight", i) == 1);
        CHECK(number("layer.1.norm2.bias", i) == 0);
        CHECK(number("embedding.token.weight", i) != 0);
    }
    CHECK(std::int64_t(weights.view().bytes()) >= 4 * parameters.count());
    CHECK(std::size_t(places.at("latent.1.out.weight")) + 4 * 16 * 4 <= weights.view().bytes());
}

TEST_CASE("train marks: multiply-adds of a step's records are those of its layers") {
    const std::int64_t N = 3 * 64, C = 16, F = 32, V = 8000, L = 3;
    const std::int64_t layer = 4 * C * C + 2 * C * F, head = C * C + C * V;
    for (bool rotary : {false, true}) {
        TrainMark mark = small_mark("bert-small");
        mark.model.backbone.rotary = rotary;
        MarkTraining training(mark, DType::f32, {}, true);
        StepProfile profile;
        double counted = 0;
        training.trainer.observe(&profile);
        training.trainer.before_update = [&] { counted = profile.multiply_adds; };
        training.trainer.train_step();
        CHECK(counted == profile.multiply_adds);                             // the gradient is then complete
        CHECK(profile.multiply_adds == double(3 * N * (L * layer + head)));  // three products: y, dx and dw
    }
}

TEST_CASE("train marks: attention's work is what the masks let be seen") {
    const Documents documents = {{3, 4}, {1, 2}};
    CHECK(visible_pairs(full_mask(documents)) == 7 * 7 + 3 * 3);
    CHECK(visible_pairs(causal_mask(documents)) == 7 * 8 / 2 + 3 * 4 / 2);
    CHECK(visible_pairs(unilm_mask(documents)) == (9 + 4 * 3 + 10) + (1 + 2 + 3));
    CHECK(visible_pairs(only_queries(full_mask(documents), {0, 7})) == 7 + 3);

    const TrainMark mark = small_mark("bert-small");
    const double pairs = 32 * 32 + 32 * 32 + 32 * 33 / 2;
    CHECK(MarkTraining(mark, DType::f32, {}, true).task->attention_multiply_adds() == 6 * 3 * 3 * pairs * 16);
}
