// SPDX-License-Identifier: MIT
#include "tools/outputs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "engine/base/error.h"
#include "engine/io/run_folder.h"
#include "input/input.h"

namespace masquerade {
namespace {
namespace fs = std::filesystem;

struct File {
    struct stat about {};
    File() = default;  // no file; it is the same as no other one
    explicit File(const std::string& path) {
        if (::stat(path.c_str(), &about) != 0) about = {};
    }
    explicit File(int stream) {
        if (::fstat(stream, &about) != 0) about = {};
    }
    bool regular() const { return S_ISREG(about.st_mode); }
    bool same(const File& other) const {
        return regular() && other.regular() && about.st_dev == other.about.st_dev && about.st_ino == other.about.st_ino;
    }
};

[[noreturn]] void refuse(const OutputFile& output, const std::string& what) {
    const std::string given = output.path.empty() ? output.option : output.option + " " + output.path;
    throw BadUsage(given, " ", what, " as well, and would be lost: give ", output.option, " another file");
}

// Whether the path is in the run folder `run`, under a name that runs use for their own files and folders
// (RunFolder::keeps). The path need not exist.
bool kept_by(const std::string& run, const std::string& path) {
    std::error_code none;
    const fs::path inside = fs::weakly_canonical(path, none).lexically_relative(fs::canonical(run, none));
    return !inside.empty() && RunFolder::keeps(inside.begin()->string());
}

// Whether the folder contains the file. If the folder is a run folder (`run` is true), only the files and folders whose
// names runs use (RunFolder::keeps) are searched.
bool holds(const std::string& folder, bool run, const File& file) {
    std::error_code none;
    for (fs::recursive_directory_iterator at(folder, none), end; file.regular() && !none && at != end;
         at.increment(none)) {
        const std::string name = at->path().lexically_relative(folder).begin()->string();
        if ((!run || RunFolder::keeps(name)) && file.same(File(at->path().string()))) return true;
    }
    return false;
}

void refuse_if_lost(const OutputFile& output, const std::string& read) {
    std::error_code none;
    if (fs::is_directory(output.path, none)) return;
    const File file(output.path);
    const bool folder = fs::is_directory(read, none), run = folder && fs::exists(read + "/run.json", none);
    if (file.same(File(read))) refuse(output, output.path == read ? "is read" : "is read as " + read);
    if (folder && ((run && kept_by(read, output.path)) || holds(read, run, file)))
        refuse(output, "is a file of " + read);
}

}  // namespace

void refuse_to_read(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs, bool standard) {
    const File in = standard ? File(STDIN_FILENO) : File(), out = standard ? File(STDOUT_FILENO) : File();
    for (const OutputFile& output : outputs) {
        const File file(output.path);
        if (file.same(in)) refuse(output, "is standard input");
        if (file.same(out)) refuse(output, "is standard output");
    }
    if (in.same(out)) refuse({"standard output", ""}, "is standard input");
    before_reading = [outputs, out](const std::string& path) {
        if (out.same(File(path))) refuse({"standard output", ""}, "is read as " + path);
        for (const OutputFile& output : outputs) refuse_if_lost(output, path);
    };
    std::error_code none;
    for (const std::string& input : inputs) {
        if (fs::is_directory(input, none))
            RunFolder::open(input);  // calls before_reading() for the run folder, even if `input` is a step's folder
        else
            before_reading(input);
    }
}

}  // namespace masquerade
