// SPDX-License-Identifier: MIT
#include "tools/bench/text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/text.h"
#include "data/training_text.h"
#include "engine/base/error.h"
#include "engine/base/log.h"

namespace masquerade {
namespace {

void add_line(const std::string& line, std::string& bytes) {
    bytes += line;
    bytes += '\n';
}

void add_file(const std::string& path, std::string& bytes) {
    const std::string file = read_bytes(path);
    TextCounts counts;
    for (std::string_view rest = file; !rest.empty();) {
        const std::size_t end = rest.find('\n');
        add_line(clean_line(rest.substr(0, end), std::numeric_limits<std::size_t>::max(), counts), bytes);
        rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
    if (counts.invalid_bytes > 0)
        log_line("warning: ", path, ": ", counts.invalid_bytes, " invalid bytes dropped");
}

std::vector<std::string_view> lines_of(std::string_view bytes) {
    std::vector<std::string_view> lines;
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        lines.push_back(bytes.substr(0, end));
        bytes.remove_prefix(end + 1);
    }
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
