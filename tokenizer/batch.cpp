// SPDX-License-Identifier: MIT
#include "tokenizer/batch.h"

#include <algorithm>
#include <climits>
#include <string>
#include <thread>

#include "tokenizer/threads.h"
#include "tokenizer/utf8.h"

namespace masquerade {

namespace {

// Bytes of text that a thread takes at a time: a millisecond's work.
constexpr std::size_t chunk_bytes = 1 << 16;

// Inputs that one thread encodes, and what came of them.
struct Chunk {
    std::size_t begin = 0, end = 0, bytes = 0;
    std::vector<int> ids;
    std::vector<Piece> pieces;
    struct Sequence {
        int length, first_type;  // tokens in all, and of type 0
    };
    std::vector<Sequence> sequences;
    std::size_t tokens_before = 0, sequences_before = 0;  // in the chunks before this one
};

using Inputs = std::function<Input(std::size_t)>;

std::size_t bytes_of(const Input& input) { return input.first.size() + input.second.value_or("").size(); }

std::vector<Chunk> chunks_of(const Inputs& inputs, std::size_t count) {
    std::vector<Chunk> chunks;
    std::size_t bytes = chunk_bytes;
    for (std::size_t i = 0; i < count; i++) {
        if (bytes >= chunk_bytes) {
            chunks.push_back({i, i, 0, {}, {}, {}, 0, 0});
            bytes = 0;
        }
        bytes += bytes_of(inputs(i)) + 16;  // an empty line is work, too
        chunks.back().end = i + 1;
        chunks.back().bytes = bytes;
    }
    return chunks;
}

// Room for a word cache of as many bytes as the text has, up to the usual one's size.
int remembered(std::size_t bytes) {
    int bits = 4;
    while (bits < Encoder::usual && (sizeof(WordCache::Entry) << bits) < bytes) bits++;
    return bits;
}

class Worker {
  public:
    Worker(const WordPiece& tokenizer, const Inputs& inputs, std::size_t first_input, const Frame& frame,
           int remember)
        : tokenizer_(tokenizer),
          inputs_(inputs),
          first_input_(first_input),
          frame_(frame),
          encoder_(tokenizer, remember) {}

    void encode(Chunk& chunk) {
        made_.ids.clear();
        made_.pieces.clear();
        made_.sequences.clear();
        for (std::size_t i = chunk.begin; i < chunk.end; i++) {
            try {
                encode(i);
            } catch (const TokenizerError& error) {
                throw TokenizerError("input " + std::to_string(first_input_ + i) + ": " + error.what());
            }
        }
        chunk.ids = made_.ids;  // copies, which have no room to spare
        chunk.pieces = made_.pieces;
        chunk.sequences = made_.sequences;
    }

  private:
    void encode(std::size_t number) {
        Input input = inputs_(number);
        if (!frame_.with_pieces && frame_.max_length == 0) return encode_whole(input);
        read(input.first, first_);
        std::optional<int> second_length;
        if (input.second) {
            read(*input.second, second_);
            second_length = int(second_.ids.size());
        }
        Share kept = cut(frame_, tokenizer_.options().rules, int(first_.ids.size()), second_length);
        frame(
            input, [&] { copy(first_, kept.first); }, [&] { copy(second_, kept.second); });
    }

    // Where nothing is cut the ids go at once where they belong.
    void encode_whole(const Input& input) {
        frame(
            input, [&] { encoder_.append(input.first, made_.ids); },
            [&] { encoder_.append(*input.second, made_.ids); });
    }

    // A sequence of what first() and second() append.
    template <class First, class Second>
    void frame(const Input& input, First first, Second second) {
        std::size_t begin = made_.ids.size();
        special(tokenizer_.vocabulary().cls());
        first();
        special(tokenizer_.vocabulary().sep());
        std::size_t middle = made_.ids.size();
        if (input.second) {
            second();
            special(tokenizer_.vocabulary().sep());
        }
        made_.sequences.push_back({int(made_.ids.size() - begin), int(middle - begin)});
    }

    struct Encoded {
        std::vector<int> ids;
        std::vector<Piece> pieces;
    };

    void read(std::string_view text, Encoded& encoded) {
        encoded.ids.clear();
        encoded.pieces.clear();
        if (!frame_.with_pieces) return encoder_.append(text, encoded.ids);
        encoder_.append(text, encoded.pieces);
        for (const Piece& piece : encoded.pieces) encoded.ids.push_back(piece.id);
    }

    void copy(const Encoded& text, Stretch part) {
        made_.ids.insert(made_.ids.end(), text.ids.begin() + part.begin, text.ids.begin() + part.end);
        if (frame_.with_pieces)
            made_.pieces.insert(made_.pieces.end(), text.pieces.begin() + part.begin,
                                text.pieces.begin() + part.end);
    }

    void special(int id) {
        if (!frame_.special) return;
        made_.ids.push_back(id);
        if (frame_.with_pieces) made_.pieces.push_back({id, 0, 0, -1});
    }

    const WordPiece& tokenizer_;
    const Inputs& inputs_;
    std::size_t first_input_;
    const Frame& frame_;
    Encoder encoder_;
    Encoded first_, second_;
    Chunk made_;
};

void check(const WordPiece& tokenizer, std::size_t count, const Frame& frame) {
    const Vocabulary& v = tokenizer.vocabulary();
    if (frame.special && (v.cls() < 0 || v.sep() < 0))
        throw TokenizerError("the vocabulary has no " + std::string(v.cls() < 0 ? "[CLS]" : "[SEP]") +
                             ", which a sequence needs: use a frame without special tokens");
    if (count > INT_MAX)
        throw TokenizerError("a batch of " + std::to_string(count) +
                             " texts, expected less than 2^31: encode them in parts");
}

// Where the chunks go. Makes room for them, whose pages are what costs time.
void lay_out(std::vector<Chunk>& chunks, const Frame& frame, int threads, PackedBatch& batch) {
    std::size_t tokens = 0, sequences = 0;
    for (Chunk& chunk : chunks) {
        chunk.tokens_before = tokens;
        chunk.sequences_before = sequences;
        tokens += chunk.ids.size();
        sequences += chunk.sequences.size();
    }
    if (tokens > INT_MAX || sequences >= INT_MAX)
        throw TokenizerError("a batch of " + std::to_string(tokens) +
                             " tokens, expected less than 2^31: encode the texts in parts");
    batch.starts.resize(sequences + 1);
    share_out(std::min(threads, 3), 3, [&] {
        return [&](std::size_t i) {
            if (i == 0 && frame.with_pieces) batch.pieces.resize(tokens);
            if (i == 1) batch.ids.resize(tokens);
            if (i == 2) batch.types.resize(tokens);
        };
    });
}

void copy(const Chunk& chunk, PackedBatch& batch) {
    auto place = [&](auto& all) { return all.begin() + std::ptrdiff_t(chunk.tokens_before); };
    std::copy(chunk.ids.begin(), chunk.ids.end(), place(batch.ids));
    if (!chunk.pieces.empty()) std::copy(chunk.pieces.begin(), chunk.pieces.end(), place(batch.pieces));
    std::size_t token = chunk.tokens_before, b = chunk.sequences_before;
    for (const Chunk::Sequence& sequence : chunk.sequences) {
        std::size_t end = token + std::size_t(sequence.length);
        std::fill(batch.types.begin() + std::ptrdiff_t(token) + sequence.first_type,
                  batch.types.begin() + std::ptrdiff_t(end), 1);
        batch.starts[++b] = int(end);
        token = end;
    }
}

}  // namespace

PackedBatch encode_batch(const WordPiece& tokenizer, std::size_t count, const Inputs& inputs,
                         const Frame& frame, int threads, std::size_t first_input) {
    check(tokenizer, count, frame);
    if (threads <= 0) threads = std::max(1, int(std::thread::hardware_concurrency()));
    std::vector<Chunk> chunks = chunks_of(inputs, count);
    if (std::size_t(threads) > chunks.size()) threads = int(chunks.size());
    std::size_t bytes = 0;
    for (const Chunk& chunk : chunks) bytes += chunk.bytes;
    int remember = remembered(bytes);
    share_out(threads, chunks.size(), [&] {
        return [&chunks, worker = Worker(tokenizer, inputs, first_input, frame, remember)](
                   std::size_t i) mutable { worker.encode(chunks[i]); };
    });
    PackedBatch batch;
    lay_out(chunks, frame, threads, batch);
    share_out(threads, chunks.size(), [&] {
        return [&](std::size_t i) {
            copy(chunks[i], batch);
            chunks[i] = {};
        };
    });
    return batch;
}

std::vector<int> PackedBatch::positions() const {
    std::vector<int> all(ids.size());
    for (std::size_t b = 0; b + 1 < starts.size(); b++)
        for (int i = starts[b]; i < starts[b + 1]; i++) all[std::size_t(i)] = i - starts[b];
    return all;
}

void to_code_points(std::string_view line, Piece* begin, Piece* end) {
    // One cursor each for begins and ends, which grow from piece to piece, or start anew.
    struct Cursor {
        std::string_view line;
        std::size_t byte = 0;
        int count = 0;

        int at(int to) {
            if (std::size_t(to) < byte) byte = 0, count = 0;
            while (byte < std::size_t(to)) {
                int length = decode_utf8(line, byte).length;
                count += length > 0;
                byte += std::size_t(std::max(length, 1));
            }
            return count;
        }
    };
    Cursor begins{line}, ends{line};
    for (Piece* piece = begin; piece != end; piece++) {
        if (piece->word < 0) continue;
        piece->begin = begins.at(piece->begin);
        piece->end = ends.at(piece->end);
    }
}

}  // namespace masquerade
