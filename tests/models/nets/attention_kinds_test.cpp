// SPDX-License-Identifier: MIT
// Every kind of attention, under every mask by name: what it honours trains, alone == in a batch; what it refuses is
// said.
#include <doctest/doctest.h>

#include <cstring>

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
                const NamedMask& mask = find_mask(name);
                if (latent_layers == 0 && name != std::string("univae-lower")) continue;
                honoured &= kind.refusal(make_mask(name, one), mask.latents()).empty();
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
                CHECK_SAYS(message_of<BadUsage>(step),
                           latent_layers > 0 && kind.needs_positions ? "does not support latents" : "does not support");
            taken += honoured;
        }
    CHECK(taken > 10);
    CHECK(find_attention("linformer").refusal(make_mask("univae-upper", one), true) ==
          "it knows keys by their positions, and a latent has none");
    CHECK(find_attention("linformer").refusal(make_mask("univae-lower", one), false).empty());
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
