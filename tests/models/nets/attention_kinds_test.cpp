// SPDX-License-Identifier: MIT
// Tests every kind of attention under every named mask. If the kind honours the mask, it trains, and a document alone
// gives the same bits as in a batch. If not, the message of the refusal is right.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "engine/tensor/numbers.h"
#include "models/nets/backbone.h"
#include "models/tasks/univae_objective.h"
#include "models/masks/mask.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

BackboneOptions small(const std::string& attention) {
    BackboneOptions o;
    o.vocabulary = 20, o.width = 8, o.heads = 2, o.inner = 12, o.layers = 2, o.positions = 16, o.deviation = 0.3;
    o.attention = attention;
    o.attention_options = {{"buckets", 2}, {"chunk", 2}};
    o.rotary = find_attention(attention).rotates;
    return o;
}

}  // namespace

TEST_CASE("attention: every kind under every mask of its own tokens: a document alone has the bits of one in a batch") {
    for (const AttentionKind& kind : attention_kinds()) {
        CHECK(&find_attention(kind.name) == &kind);
        Parameters parameters;
        const Backbone stack(parameters, small(kind.name));
        parameters.allocate(3);
        Arena arena(Device::cpu, Blocks::loose);
        Tape tape(arena, DType::f32);
        for (const NamedMask& mask : named_masks()) {
            if (mask.rows != MaskRows::tokens) continue;
            INFO(std::string(kind.name), " ", std::string(mask.name));
            const Documents one = {{4, 3}}, both = {{4, 3}, {4, 3}};
            TokenRows rows, twice;
            for (int n = 0; n < 7; n++) rows.push(3 + n, n >= 4, n, 0);
            for (int n = 0; n < 14; n++) twice.push(3 + n % 7, n % 7 >= 4, n % 7, n / 7);
            const SegmentGraph alone = make_mask(mask.name, one, example_details(one)),
                               together = make_mask(mask.name, both, example_details(both));
            tape.begin("kinds");
            if (const std::string why = kind.refuses(alone); !why.empty()) {
                CHECK_SAYS(message_of<BadUsage>([&] { stack.run(tape, rows, alone); }), why);
                continue;
            }
            const Tensor *x = stack.run(tape, rows, alone), *y = stack.run(tape, twice, together);
            CHECK(std::memcmp(x->value, y->value, x->bytes()) == 0);
        }
    }
    CHECK_SAYS(message_of<BadUsage>([] { find_attention("softmaxx"); }),
               "there is no attention softmaxx; there are softmax");
}

TEST_CASE("attention: a univae takes the kinds that honour its masks, where a key is a latent too, and no others") {
    const Documents one = {{4, 3}};
    int taken = 0;
    for (const AttentionKind& kind : attention_kinds())
        for (int latent_layers : {0, 1}) {
            INFO(std::string(kind.name), " ", latent_layers);
            UniVaeOptions o;
            o.backbone = small(kind.name);
            o.backbone.layers = 2;
            o.max_length = 8;
            o.backbone.positions = 16;
            o.latent_layers = latent_layers;
            o.latent.size = 4;
            bool honoured = true;
            for (const char* name : {"univae-encoder", "univae-lower", "univae-upper"}) {
                if (latent_layers == 0 && name != std::string("univae-lower")) continue;
                honoured &= kind.refuses(make_mask(name, one)).empty();
            }
            const auto step = [&] {
                Parameters parameters;
                const UniVae model(parameters, o);
                parameters.allocate(3);
                Arena arena(Device::cpu, Blocks::loose);
                Tape tape(arena, DType::f32);
                Sentence s{{2, 5, 6, 3}, 0, {}};
                const Batch batch = halves_batch(model, {&s});
                tape.begin("step");
                model.loss(tape, batch, nullptr, 1);
            };
            if (honoured)
                CHECK_NOTHROW(step());
            else
                CHECK_SAYS(message_of<BadUsage>(step), "does not support");
            taken += honoured;
        }
    CHECK(taken > 10);
}

TEST_CASE(
    "attention: linformer has as many tables as its settings say, and layers that share one add up its gradient") {
    // For each of P positions: slots, times heads unless heads share, times 2 (E and F) or 1 (only E), times layers
    // unless layers share.
    for (const auto& [shared, numbers] : {std::pair("none", 3 * 2 * 2), {"headwise", 3 * 2}, {"layerwise", 3}})
        for (bool value_weights : {false, true}) {
            const std::string sharing = shared;
            CAPTURE(sharing);
            CAPTURE(value_weights);
            BackboneOptions o = small("linformer");
            o.attention_options = {{"slots", 3}, {"sharing", sharing}, {"value_weights", value_weights}};
            Parameters parameters(DType::f64);
            const Backbone stack(parameters, o);
            parameters.allocate(3);
            std::int64_t found = 0;
            for (const Tensor& p : parameters.all())
                if (p.path.find("positions") != std::string::npos) found += p.shape.count();
            CHECK(found == o.positions * numbers * (value_weights ? 2 : 1));
            const std::string path = sharing == "layerwise" ? "linformer.attention." : "layer.1.attention.";
            Tensor* table = parameters.find(text(path, std::string(sharing) == "none" ? "" : "shared_",
                                                 value_weights ? "key_value_" : "", "positions"));
            REQUIRE(table);
            Arena arena(Device::cpu, Blocks::loose);
            Tape tape(arena, DType::f64);
            const Documents one = {{4, 3}};
            TokenRows rows;
            for (int n = 0; n < 7; n++) rows.push(3 + n, n >= 4, n, 0);
            const SegmentGraph graph = make_mask("unilm", one);
            const std::vector<double> weights(7, 0.1);
            double* x = parameters.master(*table).as<double>();
            const auto loss = [&](bool backward) {
                tape.begin("loss");
                Tensor* h = stack.head(tape, stack.finish(tape, stack.run(tape, rows, graph)));
                Tensor* all = stack.loss(tape, h, {3, 5, 7, 9, 11, 13, 15},
                                         tape.constant("weights", {7}, DType::f64, weights.data()), "loss");
                if (backward) parameters.start_gradients(), tape.backward(all), parameters.finish_gradients();
                const double value = number_at(all->view(), 0);
                tape.end();
                return value;
            };
            loss(true);
            for (std::int64_t i : {std::int64_t(0), table->columns() - 1, 2 * table->columns() + 1}) {
                const double gradient = number_at(table->grad_view(), i), start = x[i], step = 1e-5;
                x[i] = start + step;
                const double above = loss(false);
                x[i] = start - step;
                const double below = loss(false);
                x[i] = start;
                CHECK(std::abs((above - below) / (2 * step) - gradient) <= 1e-7 * std::abs(gradient) + 1e-11);
                CHECK(gradient != 0);
            }
        }
}

TEST_CASE("attention: a setting of several kinds has one default and the same bounds in all, and its help names them") {
    for (const AttentionSetting& one : attention_settings()) {
        CAPTURE(one.key);
        int kinds = 0;
        for (const AttentionKind& kind : attention_kinds())
            for (const AttentionSetting& own : kind.settings()) {
                if (own.key != one.key) continue;
                CHECK(own.start == one.start);
                CHECK((own.low == one.low && own.high == one.high && own.words == one.words));
                CHECK(one.help.find(kind.name) != std::string::npos);
                CHECK(one.help.find(": " + own.help) != std::string::npos);
                kinds++;
            }
        CHECK(kinds > 0);
    }
    CHECK(of_kinds({"luna", "lsh", "rfa"}) == "luna, lsh, rfa: ");
    BackboneOptions o = small("luna");
    o.attention_options["slots"] = 2.5;
    Parameters parameters;
    CHECK_THROWS(Backbone(parameters, o));
}
