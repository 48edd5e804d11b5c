// SPDX-License-Identifier: MIT
#include "data/held_out.h"

#include "engine/base/error.h"
#include "engine/base/random.h"

namespace masquerade {

// The hash is the key of a random stream that is named after the line.
void HeldOutLines::add(std::string source, std::string target) {
    const std::uint32_t hash = make_stream(0, source, 0).key0;
    Line line{std::move(source), std::move(target), lines_++};
    if (hash % 50 != 0 || hash >= limit_) return let_go({std::move(line)});
    candidates_[hash].push_back(std::move(line));
    if (++count_ <= most) return;
    const auto last = std::prev(candidates_.end());
    limit_ = last->first;
    count_ -= last->second.size();
    let_go(std::move(last->second));
    candidates_.erase(last);
}

void HeldOutLines::let_go(std::vector<Line> lines) {
    let_go_ += lines.size();
    for (Line& line : lines) train_(std::move(line));
}

std::string HeldOutLines::warning() const {
    const std::uint64_t expected = std::min<std::uint64_t>(most, lines_ / 50);
    if (count_ * 2 > expected || limit_ >> 32) return "";
    return text("only ", count_, " of ", lines_,
                " lines are held out, because some line occurs very often; --dev names another held-out text");
}

std::vector<HeldOutLines::Line> HeldOutLines::finish() {
    std::vector<Line> all;
    for (auto& [hash, lines] : candidates_) std::move(lines.begin(), lines.end(), std::back_inserter(all));
    std::sort(all.begin(), all.end(), [](const Line& a, const Line& b) { return a.number < b.number; });
    if (let_go_ > 0) return all;
    let_go(std::move(all));
    return {};
}

}  // namespace masquerade
