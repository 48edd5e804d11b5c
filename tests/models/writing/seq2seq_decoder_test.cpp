// SPDX-License-Identifier: MIT
// Tests writing with two stacks: writing with a cache gives the bits of a teacher-forced pass, in any order of
// continuations, and pairs that were learned by heart are written again.
#include <doctest/doctest.h>

#include <map>

#include "models/tasks/objective.h"
#include "models/writing/seq2seq_decoder.h"
#include "models/masks/mask.h"
#include "tests/models/nets/block_kinds.h"
#include "tests/models/nets/random_kinds.h"
#include "tests/models/nets/small_stacks.h"
#include "tests/train/files.h"

using namespace masquerade;
using namespace masquerade::small_stacks;

TEST_CASE("two stacks: cached == teacher-forced logits, bit for bit, for every source of a batch") {
    for (const AttentionKind& attention : attention_kinds())
        for (bool pre_norm : {false, true})
            for (const auto& [positions, mask] :
                 {std::pair(0, ""), std::pair(1, ""), std::pair(2, ""),
                  std::pair(1, "A causal window=2; B causal window=2 sees A[1:-1]"),
                  std::pair(0, "A full; B causal | layers 1: A full window=1; B causal sees A[0]"),
                  std::pair(2, "layers 1: B causal window=1 sees A[-1] | layers -1: B causal")}) {
                const int form = positions;
                const std::string words = mask;
                CAPTURE(words);
                CAPTURE(pre_norm);
                CAPTURE(form);
                CAPTURE(std::string(attention.name));
                if (form > 0 && !attention.rotates) continue;
                EncoderDecoderOptions options_of_kind = small(pre_norm, form > 0, form == 1);
                options_of_kind.stack.attention = attention.name;
                for (const char* key : {"rounds", "buckets", "chunk"}) options_of_kind.stack.attention_options[key] = 2;
                Model m(options_of_kind);
                const std::vector<Sentence> text = pairs(5, 11);
                ObjectiveOptions by = options();
                by.encoder_masks = std::make_shared<const LayerMasks>(words, 2, StackRows::encoder);
                by.masks = std::make_shared<const LayerMasks>(words, 3, StackRows::decoder);
                const Batch batch = find_objective("seq2seq", true).batch(pointers_to(text), 0, by);
                if (std::string(words).find("window") != std::string::npos &&
                    !attention.refuses(make_mask("A full window=1; B causal", {{3, 3}})).empty())
                    continue;
                if (const std::string why = self_attention(attention.name, true).refuses(causal_mask({{3, 3}}));
                    !why.empty()) {
                    CHECK_SAYS(message_of<BadUsage>([&] { m.logits(batch); }), why);
                    continue;
                }
                const Rows forced = m.logits(batch);
                Seq2SeqDecoder decoder(m.model, by, longest);
                decoder.read(pointers_to(text), int(text.size()));
                check_targets(decoder, 2, text, batch, forced);
            }
}

TEST_CASE("two stacks: cached == teacher-forced logits, bit for bit, of kinds by layer and stack; their gradient") {
    Sequence random(6, "kinds");
    const auto reads = [](const AttentionKind& kind) { return kind.refuses(full_mask({{3, 0}})).empty(); };
    const auto writes = [](const AttentionKind& kind) {
        return self_attention(kind.name, true).refuses(causal_mask({{0, 3}})).empty() &&
               kind.refuses(cross_mask({{3, 3}})).empty();
    };
    for (int round = 0; round < 20; round++) {
        EncoderDecoderOptions o = small(round % 2, round % 4 < 3, round % 3);
        draw_kinds(random, o.stack, reads, writes, 3);
        CAPTURE(o.stack.attention);
        const std::vector<Sentence> text = pairs(4, 11);
        const Batch batch = find_objective("seq2seq", true).batch(pointers_to(text), 0, options());
        Model m(o);
        const Rows forced = m.logits(batch);
        Seq2SeqDecoder decoder(m.model, {}, longest);
        decoder.read(pointers_to(text), int(text.size()));
        check_targets(decoder, 2, text, batch, forced);
    }
    EncoderDecoderOptions o = small(true, false);
    for (const char* words : {"A luna; B linear | layers 1:2: A window; B luna", "A linformer; B luna"}) {
        CAPTURE(std::string(words));
        o.stack.attention = words;
        o.stack.attention_options = {{"slots", 3}, {"value_weights", true}};
        const std::vector<Sentence> text = pairs(3, 11);
        CHECK(gradient_error<Model>(o, find_objective("seq2seq", true).batch(pointers_to(text), 0, options())) < 1e-12);
    }
}

TEST_CASE("two stacks: cached == teacher-forced logits, bit for bit, for every kind of norm and feed-forward part") {
    EncoderDecoderOptions o = small(false, true);
    for (const BackboneOptions& stack : with_block_kinds(o.stack)) {
        CAPTURE(stack.norm);
        CAPTURE(stack.ffn);
        o.stack = stack;
        for (DType type : {DType::f32, DType::bf16}) {
            CAPTURE(std::string(name_of(type)));
            Model m(o, type);
            const std::vector<Sentence> text = pairs(5, 11);
            const Batch batch = find_objective("seq2seq", true).batch(pointers_to(text), 0, options());
            const Rows forced = m.logits(batch);
            m.parameters.freeze();
            Seq2SeqDecoder decoder(m.model, {}, longest);
            decoder.read(pointers_to(text), int(text.size()));
            check_targets(decoder, 2, text, batch, forced);
        }
    }
}

// With a slice of the source in the mask, the keys that a row sees are the whole source if it is short. The ops of Luna
// depend on this.
TEST_CASE(
    "two stacks: one decoder reads short sources, longer ones, and short ones again, with any kind of attention") {
    const std::vector<Sentence> texts[] = {pairs(3, 11, {1}), pairs(4, 12), pairs(3, 13, {1}), pairs(4, 14)};
    for (const AttentionKind& attention : attention_kinds())
        for (bool pre_norm : {false, true}) {
            CAPTURE(std::string(attention.name));
            CAPTURE(pre_norm);
            EncoderDecoderOptions o = small(pre_norm, false);
            o.stack.attention = attention.name;
            for (const char* key : {"rounds", "buckets", "chunk"}) o.stack.attention_options[key] = 2;
            if (!self_attention(attention.name, true).refuses(causal_mask({{3, 3}})).empty()) continue;
            Model m(o);
            ObjectiveOptions by = options();
            const std::string words = "A full; B causal sees A[0:4]";
            by.encoder_masks = std::make_shared<const LayerMasks>(words, 2, StackRows::encoder);
            by.masks = std::make_shared<const LayerMasks>(words, 3, StackRows::decoder);
            Seq2SeqDecoder decoder(m.model, by, longest);
            for (const std::vector<Sentence>& text : texts) {
                const Batch batch = find_objective("seq2seq", true).batch(pointers_to(text), 0, by);
                const Rows forced = m.logits(batch);
                decoder.read(pointers_to(text), int(text.size()));
                check_targets(decoder, 2, text, batch, forced);
            }
        }
}

TEST_CASE("two stacks: prefixes branch, die and swap; each has the logits it has alone") {
    Model m(small(false, true));
    const std::vector<Sentence> text = pairs(2, 5);
    check_branches([&] { return Seq2SeqDecoder(m.model, {}, longest); }, 2, text);
    // When a prefix branches, each layer copies the keys of self-attention once. It copies none of cross-attention,
    // because all prefixes of a source share them.
    Seq2SeqDecoder decoder(m.model, {}, longest);
    decoder.read(pointers_to(text), 5);
    decoder.step({{0, -1, 2}, {1, -1, 2}});
    decoder.step({{0, 0, 7}, {0, 0, 8}, {1, 1, 7}});
    std::size_t copies = 0;
    for (const Record& r : decoder.tape().records()) copies += r.path.find("continued") != std::string::npos;
    CHECK(copies == m.model.decoder.layers.size());
}

TEST_CASE("two stacks: two pairs are learned by heart and written again") {
    const std::vector<Sentence> text = pairs(2, 9);
    EncoderDecoderOptions o = small(false, true);
    o.stack.deviation = 0.05;
    Model m(o);
    const double last = learned(m, 150, [&](std::uint32_t step) {
        return find_objective("seq2seq", true).batch(pointers_to(text), step, options());
    });
    CHECK(last < 0.05);
    Seq2SeqDecoder decoder(m.model, {}, longest);
    check_written(decoder, 2, text);
}
