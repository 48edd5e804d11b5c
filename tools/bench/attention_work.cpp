// SPDX-License-Identifier: MIT
#include "tools/bench/attention_work.h"

#include <cmath>

#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"
#include "tools/bench/train_ours.h"

namespace masquerade {
namespace {

SegmentGraph graph_of(const AttentionSizes& s) {
    const int half = s.length / 2;
    const Document one = s.mask == "prefix" ? Document{half, s.length - half} : Document{s.length, 0};
    const Documents documents(std::size_t(s.documents), one);
    if (s.mask == "full") return full_mask(documents);
    if (s.mask == "causal") return causal_mask(documents);
    if (s.mask == "prefix") return unilm_mask(documents);
    throw BadUsage(text("there is no mask ", s.mask, " here; there are full, causal and prefix"));
}

}  // namespace

AttentionWork::AttentionWork(const AttentionSizes& s, Device device)
    : sizes_(s),
      device_(device),
      graph_(graph_of(s)),
      pairs_(double(visible_pairs(graph_))),
      rule_{s.heads, 0, {}, {}},
      q_(block(s.rows(), s.width(), s.type)),
      kv_(block(s.rows(), 2 * s.width(), s.type)),
      y_(block(s.rows(), s.width(), s.type)),
      lse_(block(s.rows(), s.heads, arithmetic_of(s.type))),
      dy_(block(s.rows(), s.width(), s.type)),
      dq_(block(s.rows(), s.width(), s.type)),
      dkv_(block(s.rows(), 2 * s.width(), s.type)) {
    fill(q_, {0});
    fill(kv_, {1, 2});
    fill(dy_, {3});
}

AttentionWork::Block AttentionWork::block(std::int64_t rows, std::int64_t columns, DType type) const {
    Buffer memory(std::size_t(rows * columns) * bytes_of(type), device_);
    const View view{memory.data(), type, device_, {rows, columns}, "attention"};
    return {std::move(memory), view};
}

void AttentionWork::fill(const Block& block, std::vector<int> salts) const {
    const std::int64_t C = sizes_.width(), parts = std::int64_t(salts.size());
    std::vector<float> numbers(std::size_t(block.view.count()));
    for (std::int64_t row = 0; row < sizes_.rows(); row++)
        for (std::int64_t part = 0; part < parts; part++)
            for (std::int64_t c = 0; c < C; c++) {
                const std::int64_t i = 37 * (row * C + c) + 11 * salts[std::size_t(part)];
                numbers[std::size_t((row * parts + part) * C + c)] = float(i % 97) / 48 - 1;
            }
    write_numbers(block.view, numbers.data());
}

void AttentionWork::forward() {
    attention_forward(q_.view, Views{kv_.view}, graph_, rule_, y_.view, lse_.view);
}

void AttentionWork::backward() {
    attention_backward(dy_.view, q_.view, Views{kv_.view}, y_.view, lse_.view, graph_, rule_,
                       Grad{dq_.view, false}, Grads{Grad{dkv_.view, false}});
}

double AttentionWork::mean_of(const Block& block) {
    const OnHost numbers(block.view);
    double sum = 0;
    for (std::int64_t i = 0; i < block.view.count(); i++) sum += std::fabs(numbers[i]);
    return sum / double(block.view.count());
}

}  // namespace masquerade
