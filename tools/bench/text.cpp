// SPDX-License-Identifier: MIT
#include "tools/bench/text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/text.h"
#include "data/training_text.h"
#include "engine/base/error.h"
#include "engine/base/log.h"
#include "tools/line_filter.h"

namespace masquerade {
namespace {

void add_line(const std::string& line, std::string& bytes) {
    bytes += line;
    bytes += '\n';
}

void add_file(const std::string& path, std::string& bytes) {
    const std::string file = read_bytes(path);
    TextCounts counts;
    each_line(file, 1, [&](std::string_view line, long) {
        add_line(clean_line(line, std::numeric_limits<std::size_t>::max(), counts), bytes);
    });
    if (counts.invalid_bytes > 0)
        log_line("warning: ", path, ": ", counts.invalid_bytes, " invalid bytes dropped");
}

std::vector<std::string_view> lines_of(std::string_view bytes) {
    std::vector<std::string_view> lines;
    each_line(bytes, 1, [&](std::string_view line, long) { lines.push_back(line); });
    return lines;
}

}  // namespace

BenchText read_bench_text(const std::vector<std::string>& files, double size) {
    BenchText t;
    if (files.empty()) {
        const TrainingText training = find_training_text("", "");
        t.name = training.origin.name;
        for (const std::string& line : training.train) add_line(line, t.bytes);
        t.copies = std::max(1, int(std::lround(size / double(std::max<std::size_t>(1, t.bytes.size())))));
        const std::string once = t.bytes;
        for (int i = 1; i < t.copies; i++) t.bytes += once;
    } else {
        for (const std::string& path : files) add_file(path, t.bytes);
        t.name = files.size() == 1 ? files[0] : text(files.size(), " files");
    }
    t.lines = lines_of(t.bytes);
    if (t.lines.empty()) throw BadInput(t.name + " is empty; there is nothing to measure with");
    return t;
}

}  // namespace masquerade
