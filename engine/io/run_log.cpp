// SPDX-License-Identifier: MIT
// The files of a run folder that grow line by line: log.jsonl and samples.txt.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/io/file.h"
#include "engine/io/run_folder.h"

namespace masquerade {
namespace {

// Calls f(line) for every complete line, without its newline. If the last line has no newline, a crash has cut it off,
// and it is skipped.
template <class F>
void each_line(const std::string& bytes, F f) {
    for (std::size_t begin = 0, end; (end = bytes.find('\n', begin)) != bytes.npos; begin = end + 1)
        f(bytes.substr(begin, end - begin));
}

}  // namespace

void RunFolder::write(const std::string& name, const std::string& bytes) const { replace_file(file(name), bytes); }

// Appends all lines. If the lines cannot all be written, for example because the disk is full, the file is cut to its
// old size, so that every line of the file is complete.
void RunFolder::append(const std::string& name, const std::string& lines) const {
    std::string path = file(name);
    int out = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (out < 0) fail_to("write", path);
    off_t before = ::lseek(out, 0, SEEK_END);
    int reason = write_all(out, lines.data(), lines.size()) ? 0 : errno;
    if (reason != 0 && ::ftruncate(out, before) != 0) reason = errno;
    if (::close(out) != 0 && reason == 0) reason = errno;
    errno = reason;
    if (reason != 0) fail_to("write", path);
}

void RunFolder::append_log(const std::string& json_line) const {
    if (json_line.find('\n') != json_line.npos) throw Error("an entry of log.jsonl is one line: " + json_line);
    append("log.jsonl", json_line + "\n");
}

void RunFolder::append_samples(std::int64_t step, const std::string& lines) const {
    std::string block = text("step ", step, "\n");
    bool whole = lines.empty() || lines.back() == '\n';
    each_line(whole ? lines : lines + "\n",
              [&](const std::string& line) { block += line.empty() ? "\n" : "  " + line + "\n"; });
    append("samples.txt", block);
}

RunFolder::Past RunFolder::rewind(std::int64_t step) const {
    if (lock_ < 0) throw Error(path_, " was opened for reading; it cannot be rewound");
    link("latest", step_name(step));
    auto keep_lines = [&](const char* name, const std::function<bool(const std::string&)>& keeps) {
        if (!has(name)) return;
        const std::string bytes = read_file(file(name), SIZE_MAX);
        std::string kept;
        each_line(bytes, [&](const std::string& line) {
            if (keeps(line)) kept += line + "\n";
        });
        if (kept.size() < bytes.size()) replace_file(file(name), kept);
    };
    std::int64_t damaged = 0, best = step;
    Past past;
    const std::vector<std::int64_t> there = steps();
    keep_lines("log.jsonl", [&](const std::string& line) {
        nlohmann::json entry;
        const bool whole = parse_bounded(line, entry).empty() && entry.is_object();
        damaged += !whole;
        const auto number = [&](const char* key) {
            const auto found = whole ? entry.find(key) : entry.end();
            return found != entry.end() && found->is_number() ? found->get<double>() : std::nan("");
        };
        const double at = number("step"), loss = number("held_out_loss"), seconds = number("seconds");
        if (!whole || at > double(step)) return false;
        if (!std::isnan(seconds)) past.seconds = seconds;
        if (loss < past.best && at >= 0 && std::binary_search(there.begin(), there.end(), std::int64_t(at)))
            past.best = loss, best = std::int64_t(at);
        return true;
    });
    const std::int64_t before = led_to("best");
    if (before > step)
        link("best", step_name(best));
    else if (before != best && std::binary_search(there.begin(), there.end(), before))  // its line is missing
        past.best = std::numeric_limits<double>::infinity();
    if (damaged > 0) log_line("warning: ", file("log.jsonl"), ": ", damaged, " lines that are not JSON were dropped");
    bool keep_block = true;
    keep_lines("samples.txt", [&](const std::string& line) {
        if (line.substr(0, 5) == "step ") keep_block = std::strtoll(line.c_str() + 5, nullptr, 10) <= step;
        return keep_block;
    });
    return past;
}

}  // namespace masquerade
