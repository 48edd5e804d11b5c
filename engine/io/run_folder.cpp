// SPDX-License-Identifier: MIT
#include "engine/io/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/named.h"
#include "engine/io/file.h"
#include "engine/io/safetensors_header.h"
#include "input/number.h"

namespace masquerade {
namespace fs = std::filesystem;
namespace {

// Returns the step of a step folder, such as 100 for "step-000100"; -1 if `name` is not the name of a step folder.
std::int64_t step_of(const std::string& name) {
    constexpr std::int64_t most = 999'999'999'999'999'999;  // a limit, so that adding to a step cannot overflow
    std::int64_t step = -1;
    const bool numbered = name.substr(0, 5) == "step-" && read_number(std::string_view(name).substr(5), step);
    return numbered && 0 <= step && step <= most && RunFolder::step_name(step) == name ? step : -1;
}

// Returns the names of the files in a folder; none if the folder cannot be listed.
std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    // Errors are caught as exceptions. The function directory_iterator::increment(error_code) would return errors, but
    // in C++17 it is noexcept, so it would end the program if memory is exhausted.
    try {
        for (const fs::directory_entry& one : fs::directory_iterator(folder))
            names.push_back(one.path().filename().string());
    } catch (const fs::filesystem_error&) {
    }
    return names;
}

bool has_step(const std::string& folder) {
    const std::vector<std::string> names = names_in(folder.empty() ? "." : folder);
    return std::any_of(names.begin(), names.end(), [](const std::string& name) { return step_of(name) >= 0; });
}

// The links to step folders in a run folder.
constexpr const char* links[] = {"latest", "best"};

// record_before is the name of run.json before the first checkpoint. before_a_step lists all files that may exist
// before the first checkpoint.
const std::string record_before = ".run.json";
const std::string before_a_step[] = {record_before, "vocab.txt", "tokenizer.json", "log.jsonl", "samples.txt"};

bool is_folder(const std::string& path) {  // false for a link to a folder
    std::error_code error;
    return fs::is_directory(fs::symlink_status(path, error));
}

// Returns the last part of the path that the symbolic link `link` leads to; "" if `link` is not a symbolic link.
std::string target_of(const std::string& link) {
    std::error_code error;
    return fs::read_symlink(link, error).filename().string();
}

bool is_temporary(const std::string& name) { return name.rfind(".new-", 0) == 0 || name.rfind(".old-", 0) == 0; }
// Returns true if `name` is a PrivateFolder, a temporary folder whose name is ".new-" and six random characters. If a
// program is killed, its PrivateFolder remains.
bool is_killed_work(const std::string& folder, const std::string& name) {
    return name.size() == 11 && name.rfind(".new-", 0) == 0 && is_folder(folder + "/" + name);
}

// Returns true if two step folders contain the same step. It is enough to compare the headers of their files, because
// the headers contain checksums of the files.
bool same_step(const std::string& a, const std::string& b) {
    const auto header = [](const std::string& path) {
        return fs::exists(path) ? read_header(FileReader(path)).json : "";
    };
    try {
        for (const char* name : {"/model.safetensors", "/state.safetensors"})
            if (header(a + name) != header(b + name)) return false;
        return true;
    } catch (const BadInput&) {  // a file is incomplete
        return false;
    }
}

[[noreturn]] void refuse_copy(const std::string& place) {
    throw BadInput(place,
                   " is a folder, but its files belong to no step beside it; expected a link to a step: rename it to ",
                   "step-NNNNNN, after the step that its model.safetensors names");
}

// Throws BadInput for the first file of a step folder that is missing or incomplete. state.safetensors is checked only
// if `with_state` is true.
void check_step(const std::string& folder, bool with_state) {
    nlohmann::json config = read_json(folder + "/config.json");
    if (!config.is_object()) throw BadInput(folder, "/config.json is ", in_words(config), "; an object is expected");
    check_safetensors(folder + "/model.safetensors");
    if (with_state) check_safetensors(folder + "/state.safetensors");
}

std::string problem_of(const std::string& folder, bool with_state) {
    try {
        check_step(folder, with_state);
    } catch (const BadInput& e) {
        return e.what();
    }
    return {};
}

// Prints a warning only the first time, because a program may open the same run several times.
void warn_once(const std::string& warning) {
    static std::mutex mutex;
    static std::set<std::string> given;
    std::lock_guard<std::mutex> lock(mutex);
    if (given.insert(warning).second) log_line(warning);
}

}  // namespace

void move_into_place(const std::string& fresh, const std::string& place) {
    const std::string old = fresh + ".old";
    const bool moved = ::rename(fresh.c_str(), place.c_str()) == 0;
    if (!moved && errno != ENOTEMPTY && errno != EEXIST) fail_to("write", place);
    if (!moved && ::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) != 0) {
        // The file system cannot exchange two names: rename one after the other.
        if (::rename(place.c_str(), old.c_str()) != 0) fail_to("replace", place);
        if (::rename(fresh.c_str(), place.c_str()) != 0) {
            const int reason = errno;
            ::rename(old.c_str(), place.c_str());
            errno = reason;
            fail_to("replace", place);
        }
    }
    const fs::path parent = fs::path(place).parent_path();
    sync_to_disk(parent.empty() ? "." : parent.string());
}

bool RunFolder::has(const std::string& name) const {
    std::error_code none;
    return fs::exists(file(name), none);
}

std::string RunFolder::step_name(std::int64_t step) { return fmt::format("step-{:06}", step); }

bool RunFolder::keeps(const std::string& name) {
    return name == "run.json" || contains(before_a_step, name) || contains(links, name) || step_of(name) >= 0;
}

void RunFolder::expect_free(const std::string& path) {
    const std::string name = (fs::path(path) / "").parent_path().filename().string();
    if (step_of(name) >= 0 || contains(links, name))
        throw BadInput(path, " is the name of a checkpoint in a run folder; choose another --out");
    std::error_code error;
    if (fs::exists(path, error) && !fs::is_directory(path, error))
        throw BadInput("cannot make the folder ", path, ": a file has that name");
    const std::vector<std::string> names = names_in(path);
    const bool begun = contains(names, record_before);
    for (const std::string& other : names)
        if (!is_killed_work(path, other) && !(begun && (is_temporary(other) || contains(before_a_step, other))))
            throw BadInput(path, " holds something already; continue with --resume ", shell_word(path),
                           ", or choose another --out");
}

RunFolder RunFolder::create(const std::string& path) {
    expect_free(path);
    RunFolder run;
    run.path_ = path;
    make_folder(path);
    run.lock();
    expect_free(path);  // another program may have created the run in the meantime
    for (const std::string& name : names_in(path))
        if (name != record_before) remove_all(run.file(name));
    remove_all(run.file(record_before));  // removed last, because this file marks the folder as one that may be reused
    return run;
}

RunFolder RunFolder::create_next(const std::string& parent, const std::string& model) {
    make_folder(parent);
    int last = 0;
    for (const std::string& name : names_in(parent)) {
        int number = 0;
        if (name.rfind(model + "-", 0) == 0 && read_number(std::string_view(name).substr(model.size() + 1), number) &&
            number < 100000000)
            last = std::max(last, number);
    }
    for (;;) {
        std::string path = fmt::format("{}/{}-{:03}", parent, model, ++last);
        if (make_folder(path)) return create(path);  // make_folder() returns false if the folder exists
    }
}

RunFolder RunFolder::open(const std::string& path) {
    std::error_code error;
    if (!fs::exists(path, error))
        throw BadInput("there is no run folder ", path, "; ./train makes one and prints its name");
    if (!fs::is_directory(path, error))
        throw BadInput(path, " is a file; a run folder, or one of its step folders, is expected");
    RunFolder run;
    fs::path given = fs::path(path).lexically_normal();
    if (!given.has_filename()) given = given.parent_path();  // for a path that ends in /, such as "run/"
    if (given.filename() == "." || given.filename() == "..") given = fs::canonical(given, error);
    // `best` and `latest` name a step in their own folder. A link of the user may lead to a step of any run.
    if (fs::is_symlink(given, error) && fs::read_symlink(given, error).has_parent_path())
        if (const fs::path real = fs::canonical(given, error); !error && step_of(real.filename().string()) >= 0)
            given = real;
    // If the path names a step folder, or a link to one (`best` or `latest`), the run folder is the parent of the path.
    const bool linked = fs::is_symlink(given, error);
    const bool named = contains(links, given.filename().string()) && !fs::exists(given / "run.json", error) &&
                       has_step(given.parent_path().string());
    run.chosen_ = step_of((linked ? fs::read_symlink(given, error) : given).filename().string());
    const fs::path folder = run.chosen_ < 0 && !named ? given : given.parent_path();
    run.path_ = folder.empty() ? "." : folder.string();
    before_reading(run.path_);
    if (named && !linked && (run.chosen_ = run.led_to(given.filename().string())) < 0) refuse_copy(given.string());
    return run;
}

RunFolder RunFolder::resume(const std::string& path) {
    RunFolder run = open(path);
    run.lock();
    run.remove_leftovers();
    if (!run.steps().empty()) run.promote_record();
    run.mend_links();
    return run;
}

// Locks the folder. The lock ends when the RunFolder is destroyed or the process ends, even if the process is killed.
// On a file system without locks, the folder is not locked.
void RunFolder::lock() {
    lock_ = OpenFile(path_, O_RDONLY | O_DIRECTORY);
    if (lock_ < 0) fail_to("open", path_);
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        throw BadInput("another program is training into ", path_, "; stop it first, or choose another --out");
}

void RunFolder::remove_leftovers() const {
    std::vector<std::string> folders = {path_};
    for (const std::int64_t step : steps()) folders.push_back(step_folder(step));
    for (const std::string& folder : folders)
        for (const std::string& name : names_in(folder))
            if (is_temporary(name)) remove_all(folder + "/" + name);
}

void RunFolder::begin(const std::string& record) const { write(record_before, record); }

std::string RunFolder::record_file() const {
    return file(!has("run.json") && has(record_before) ? record_before : "run.json");
}

void RunFolder::promote_record() const {
    if (::rename(file(record_before).c_str(), file("run.json").c_str()) != 0 && errno != ENOENT)
        fail_to("write", file("run.json"));
}

// Returns the step that `latest` or `best` links to. If the run was copied and the link became a folder, returns the
// step with the same files. Returns -1 if there is no such step.
std::int64_t RunFolder::led_to(const std::string& name) const {
    if (!is_folder(file(name))) return step_of(target_of(file(name)));
    for (std::int64_t step : steps())
        if (same_step(file(name), step_folder(step))) return step;
    return -1;
}

// If the run was copied and the link `latest` or `best` became a folder, replaces the folder by a link.
void RunFolder::mend_links() const {
    for (const char* name : links) {
        if (!is_folder(file(name))) continue;
        const std::int64_t step = led_to(name);
        if (step < 0) refuse_copy(file(name));
        remove_all(file(name));
        link(name, step_name(step));
    }
}

std::vector<std::int64_t> RunFolder::steps() const {
    std::vector<std::int64_t> all;
    for (const std::string& name : names_in(path_))
        if (step_of(name) >= 0) all.push_back(step_of(name));
    std::sort(all.begin(), all.end());
    return all;
}

std::int64_t RunFolder::latest_step() const {
    bool with_state = lock_ >= 0;  // only a run that is resumed, and therefore locked, needs the optimiser state
    if (chosen_ >= 0) return check_step(step_folder(chosen_), with_state), chosen_;
    std::string problem, target = target_of(file("latest"));
    if (const std::int64_t copied = target.empty() ? led_to("latest") : -1; copied >= 0) target = step_name(copied);
    const bool leads_to_a_step = step_of(target) >= 0 && has(target);
    if (leads_to_a_step)
        problem = problem_of(file(target), with_state);
    else if (target.empty())
        problem = text(file("latest"), " is missing or no link");
    else
        problem = text(file("latest"), " leads to ", target, ", which is no step");
    if (problem.empty()) return step_of(target);
    std::vector<std::int64_t> all = steps();
    for (auto step = all.rbegin(); step != all.rend(); ++step) {
        if (!problem_of(step_folder(*step), with_state).empty()) continue;
        // A damaged checkpoint is an error, not a warning: the user must choose which older checkpoint to use.
        if (leads_to_a_step) throw BadInput(problem, ". An earlier one is complete: ", step_folder(*step));
        warn_once(text("warning: ", problem, "; using ", step_folder(*step)));
        return *step;
    }
    if (all.empty())
        throw BadInput(path_, " holds no checkpoint (", problem, "); was the run stopped before its first?",
                       has(record_before) ? " Start it again; --out may name this folder" : "");
    throw BadInput(path_, " holds no complete checkpoint: ", problem);
}

void RunFolder::save_step(std::int64_t step, const std::function<void(const std::string&)>& write_files, bool best) {
    if (lock_ < 0) throw Error(path_, " was opened for reading; a step cannot be saved into it");
    const std::string name = step_name(step);
    try {
        const PrivateFolder beside(path_, file(name));
        const std::string fresh = beside.file(name);
        if (::mkdir(fresh.c_str(), 0777) != 0) fail_to("make the folder", file(name));
        write_as(file(name), fresh, [&](const std::string& place) {
            write_files(place);
            check_step(place, true);
        });
        for (const std::string& part : names_in(fresh)) sync_to_disk(fresh + "/" + part);
        sync_to_disk(fresh);
        for (const char* log : {"log.jsonl", "samples.txt"})
            if (has(log)) sync_to_disk(file(log));
        move_into_place(fresh, file(name));
        promote_record();
        sync_to_disk(path_);
        // The link `best` is set first. If the program crashes before `latest` is set, `latest` still links to the
        // earlier step, if there is one, and the resumed run trains and saves this step again.
        if (best) link("best", name);
        link("latest", name);
        sync_to_disk(path_);
    } catch (const BadInput& e) {
        std::string earlier = target_of(file("latest"));
        if (steps().empty())
            throw BadInput(e.what(), "; there is no earlier checkpoint: make room and start again with the same --out");
        if (earlier.empty()) earlier = step_name(steps().back());
        throw BadInput(e.what(), "; the earlier checkpoint ", earlier,
                       " is intact: make room and continue with --resume ", shell_word(path_));
    }
    chosen_ = -1;  // from now on, latest_step() returns the step that `latest` links to
    prune(step);
}

// Makes `name` a link to `target`. An existing link is replaced atomically.
void RunFolder::link(const std::string& name, const std::string& target) const {
    const PrivateFolder beside(path_, file(name));
    const std::string fresh = beside.file(name);
    if (::symlink(target.c_str(), fresh.c_str()) != 0 || ::rename(fresh.c_str(), file(name).c_str()) != 0)
        fail_to("link", file(name));
}

// Removes the steps that are too old to be kept, and the steps after step `saved`. There are steps after `saved` if the
// run was resumed from an older step. A folder is renamed before its files are removed, so that no half-removed folder
// has the name of a step.
void RunFolder::prune(std::int64_t saved) const {
    const std::int64_t best = led_to("best");
    const std::vector<std::int64_t> all = steps();
    std::int64_t older = std::count_if(all.begin(), all.end(), [&](std::int64_t step) { return step <= saved; });
    for (std::int64_t i = 0; i < std::int64_t(all.size()); i++) {
        std::int64_t step = all[i];
        if (step == best || step == saved || (step < saved && i >= older - keep)) continue;
        std::string old = file(".old-" + step_name(step));
        remove_all(old);
        if (::rename(step_folder(step).c_str(), old.c_str()) == 0) remove_all(old);
    }
}

}  // namespace masquerade
