// SPDX-License-Identifier: MIT
#include <algorithm>
#include <optional>

#include "tests/fuzz/check.h"
#include "tokenizer/batch.h"

namespace masquerade::fuzz {

namespace {

Frame frame_of(unsigned bits) {
    constexpr int lengths[8] = {0, 0, 2, 3, 4, 5, 8, 17};
    Frame frame;
    frame.max_length = lengths[bits & 7];
    frame.special = (bits & 8) == 0;
    frame.truncation = Truncation((bits >> 4 & 3) % 3);
    frame.cut_left = bits & 64;
    frame.with_pieces = bits & 512;
    return frame;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    for (std::size_t begin = 0; begin <= text.size() && lines.size() < 100;) {
        std::size_t end = std::min(text.find('\n', begin), text.size());
        lines.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return lines;
}

// A batch, put together without packing, threads and encoders.
struct OneByOne {
    std::vector<int> ids, types, starts = {0};
    bool refused = false;

    void add(const WordPiece& tokenizer, const Input& input, const Frame& frame) {
        std::vector<int> first = tokenizer.encode(input.first), second;
        std::optional<int> second_length;
        if (input.second) {
            second = tokenizer.encode(*input.second);
            second_length = int(second.size());
        }
        Share share;
        try {
            share = cut(frame, tokenizer.options().rules, int(first.size()), second_length);
        } catch (const TokenizerError&) {
            refused = true;
            return;
        }
        const Vocabulary& v = tokenizer.vocabulary();
        if (frame.special) ids.push_back(v.cls());
        ids.insert(ids.end(), first.begin() + share.first.begin, first.begin() + share.first.end);
        if (frame.special) ids.push_back(v.sep());
        types.resize(ids.size(), 0);
        if (second_length) {
            ids.insert(ids.end(), second.begin() + share.second.begin, second.begin() + share.second.end);
            if (frame.special) ids.push_back(v.sep());
            types.resize(ids.size(), 1);
        }
        require(frame.max_length == 0 || int(ids.size()) - starts.back() <= frame.max_length,
                "no sequence is longer than max_length");
        starts.push_back(int(ids.size()));
    }
};

}  // namespace

void check_batch(const WordPiece& tokenizer, std::string_view text, unsigned bits, Counts& counts) {
    Frame frame = frame_of(bits);
    std::vector<std::string_view> lines = lines_of(text);
    auto input = [&](std::size_t i) {
        i %= lines.size();
        Input made{lines[i], {}};
        if ((bits & 1024) && i + 1 < lines.size()) made.second = lines[i + 1];
        return made;
    };
    OneByOne expected;
    for (std::size_t i = 0; i < lines.size() && !expected.refused; i++)
        expected.add(tokenizer, input(i), frame);

    bool many = (bits >> 16 & 255) == 0 && text.size() < 5000;  // several chunks, for two threads
    std::size_t repeats = many ? 150000 / (text.size() + 16 * lines.size() + 1) + 1 : 1;
    PackedBatch batch;
    try {
        batch = encode_batch(tokenizer, lines.size() * repeats, input, frame, 2);
        require(!expected.refused, "a batch refuses what its frame refuses");
    } catch (const TokenizerError&) {
        require(expected.refused, "a batch refuses only what its frame refuses");
        counts.refused++;
        return;
    }
    counts.framed++;
    counts.threaded += repeats > 1;
    const std::vector<int>&ids = expected.ids, &types = expected.types, &starts = expected.starts;
    require(std::size_t(batch.size()) == (starts.size() - 1) * repeats &&
                batch.types.size() == batch.ids.size() && batch.ids.size() == ids.size() * repeats,
            "a batch has all sequences");
    for (std::size_t r = 0; r < repeats; r++) {
        auto at = [&](const std::vector<int>& all) { return all.begin() + std::ptrdiff_t(r * ids.size()); };
        require(std::equal(ids.begin(), ids.end(), at(batch.ids)), "a batch has the ids of its lines");
        require(std::equal(types.begin(), types.end(), at(batch.types)), "a batch has types");
        for (std::size_t b = 0; b < starts.size(); b++)
            require(batch.starts[r * (starts.size() - 1) + b] == starts[b] + int(r * ids.size()),
                    "sequences start where they do one by one");
    }
    for (std::size_t i = 0; i < batch.pieces.size(); i++)
        require(batch.pieces[i].id == batch.ids[i], "a batch has the pieces of its ids");
}

}  // namespace masquerade::fuzz
