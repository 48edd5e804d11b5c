// SPDX-License-Identifier: MIT
// Tests which rows of the KV cache are copied when prefixes branch.
#include <doctest/doctest.h>

#include <algorithm>

#include "engine/base/random.h"
#include "models/writing/slots.h"

using namespace masquerade;

namespace {

// A KV cache of token numbers. Counts the copied rows.
struct NumberState : AttentionState {
    std::vector<int> rows;
    int copied = 0;
    bool has_memory() override { return false; }
    void branch(Tape&, const Branches& b) override {
        const std::vector<int> before = rows;
        for (int i = 0; i < b.from_rows.count; i++) rows.at(b.to_rows[i]) = before.at(b.from_rows[i]);
        copied += b.from_rows.count;
    }
};

}  // namespace

TEST_CASE("slots: every prefix finds its tokens in its slot, whatever branches and ends; few rows are copied") {
    constexpr int sources = 5, most = 4, longest = 9;
    int copied = 0, all = 0;  // rows that were copied, and rows of all prefixes that got another slot
    for (std::uint64_t seed = 0; seed < 60; seed++)
        for (bool backward : {false, true})
            for (bool asks : {false, true}) {  // whether each step also runs on copies of all prefixes
                CAPTURE(seed);
                CAPTURE(backward);
                CAPTURE(asks);
                Sequence random(seed, "slots");
                const Slots slots{sources * most, longest, backward};
                Arena arena(Device::cpu, Blocks::loose);
                Tape tape(arena, DType::f32);
                std::vector<LayerState> layers(1);
                layers[0].self = std::make_unique<NumberState>();
                auto& state = static_cast<NumberState&>(*layers[0].self);
                state.rows.assign(2 * slots.count * longest, -1);
                PrefixSlots prefixes;
                prefixes.start(slots);
                std::vector<NextToken::Row> rows(sources);
                std::vector<std::vector<int>> texts(sources);  // the tokens of each prefix
                for (int s = 0; s < sources; s++) rows[s] = {s, -1, s};
                int token = 0;
                for (int t = 0; t < longest; t++) {
                    const auto tokens_of = [&](std::size_t i, int count) {
                        std::vector<int> found;
                        const int first = prefixes.first_row(i) + (backward ? count - 1 : 0);
                        for (int k = 0; k < count; k++) found.push_back(state.rows.at(first + (backward ? -k : k)));
                        return found;
                    };
                    tape.begin("step");
                    prefixes.follow(rows);
                    prefixes.copy(tape, layers);
                    const Step step = prefixes.step(tape);
                    for (std::size_t i = 0; i < rows.size(); i++) {
                        texts[i].push_back(token);
                        state.rows.at(step.rows[i]) = token++;
                    }
                    for (std::size_t i = 0; i < rows.size(); i++) CHECK(tokens_of(i, t + 1) == texts[i]);
                    prefixes.advance();
                    if (asks && t + 1 < longest) {
                        prefixes.follow_with_copies();
                        prefixes.copy(tape, layers);
                        const Step ask = prefixes.step(tape);
                        for (std::size_t i = 0; i < rows.size(); i++) {
                            state.rows.at(ask.rows[i]) = -2;
                            std::vector<int> with_mask = texts[i];
                            with_mask.push_back(-2);
                            CHECK(tokens_of(i, t + 2) == with_mask);
                        }
                    }
                    tape.end();
                    std::vector<NextToken::Row> next;
                    std::vector<std::vector<int>> next_texts;
                    for (int s = 0; s < sources; s++) {
                        std::vector<int> own;
                        for (std::size_t i = 0; i < rows.size(); i++)
                            if (rows[i].source == s) own.push_back(int(i));
                        if (own.empty() || random.below(12) == 0) continue;  // the source has ended
                        for (std::uint32_t k = 1 + random.below(most); k > 0; k--) {
                            const int parent = own[random.below(std::uint32_t(own.size()))];
                            next.push_back({s, parent, 0});
                            next_texts.push_back(texts[std::size_t(parent)]);
                        }
                    }
                    std::vector<int> children(rows.size());
                    for (const NextToken::Row& row : next) children[std::size_t(row.parent)]++;
                    if (!asks)
                        for (int each : children) all += std::max(0, each - 1) * (t + 1);
                    if (next.empty()) break;
                    rows = std::move(next), texts = std::move(next_texts);
                }
                if (!asks) copied += state.copied;
            }
    CHECK(copied > 0);
    CHECK(copied < 0.7 * all);
}
