// SPDX-License-Identifier: MIT
// A run folder holds everything that a training run writes. A crash at any moment, or a full disk, leaves the earlier
// checkpoints complete.
//
//   run.json  vocab.txt  log.jsonl  samples.txt
//   step-000100/  config.json  model.safetensors  state.safetensors
//   latest -> step-000100    best -> step-000060
//
// A step is written completely under a temporary name, flushed to disk and renamed; then the links are replaced.
// Temporary names begin with ".new-" or ".old-" and are removed when the run is resumed. Until the first checkpoint,
// run.json is called .run.json: a folder in this state cannot be resumed, and a new run may reuse it.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "input/open_file.h"

namespace masquerade {

class RunFolder {
  public:
    RunFolder() = default;  // no run is open; nothing can be read or written
    // Creates a new run. If the folder exists, it must be empty or hold a run without a checkpoint; otherwise, throws
    // BadInput. Also throws BadInput if the path is named like a step folder or a link. create_next() creates the run
    // in the folder `parent`, under the name `model` with the next free number: runs/univae-003.
    static RunFolder create(const std::string& path);
    static void expect_free(const std::string& path);  // does the checks of create() and changes nothing
    static RunFolder create_next(const std::string& parent, const std::string& model);
    // Opens a run for reading and changes nothing on disk. `path` is a run folder, or a step folder or the link
    // `latest` or `best` in a run folder.
    static RunFolder open(const std::string& path);
    // Opens a run to continue it: locks the folder against a second writer and removes what a crash left behind.
    static RunFolder resume(const std::string& path);

    const std::string& path() const { return path_; }
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    bool has(const std::string& name) const;  // whether there is a file, folder or link that leads to something
    std::string step_folder(std::int64_t step) const { return file(step_name(step)); }
    static std::string step_name(std::int64_t step);  // step-000100
    // Returns true if a run itself writes a file, link or folder with this name: run.json, latest, step-000100 and so
    // on.
    static bool keeps(const std::string& name);

    std::vector<std::int64_t> steps() const;  // all steps that have a folder, in ascending order
    // If open() or resume() was called with a step folder or a link, returns the step of this folder or link.
    // Otherwise, returns the step that `latest` links to. If `latest` is missing or broken, prints a warning and
    // returns the newest complete step. Throws BadInput if there is no complete step. If the chosen step or the target
    // of `latest` is damaged, also throws BadInput, because the user must choose an older step.
    std::int64_t latest_step() const;

    // Saves a step. `write` puts config.json, model.safetensors and state.safetensors into `folder`. Afterwards the
    // link `latest` leads to this step; if the argument `best` is true, the link `best` leads to this step, too. Only
    // this step, the `keep` - 1 steps before it and the best step are kept; all other steps are removed. Throws
    // BadInput if the disk is full; the earlier checkpoints are then intact.
    void save_step(std::int64_t step, const std::function<void(const std::string& folder)>& write, bool best = false);
    int keep = 3;

    // Writes `record`, the contents of run.json, to the file .run.json. The first checkpoint renames the file to
    // run.json.
    void begin(const std::string& record) const;
    // The path of run.json. If a run was killed after it had saved its first step and before it could rename .run.json,
    // returns the path of .run.json, so that this step can be read.
    std::string record_file() const;
    // Writes a file such as vocab.txt atomically: even after a crash, the file is either complete or unchanged.
    void write(const std::string& name, const std::string& bytes) const;
    // Appends a JSON object to log.jsonl as one line. The object should contain a "step": rewind() removes the lines
    // of later steps.
    void append_log(const std::string& json_line) const;
    // Appends to samples.txt a line with the step, and then the samples, indented. The samples are texts that the model
    // generated after this step.
    void append_samples(std::int64_t step, const std::string& lines) const;
    // The part of log.jsonl that rewind() keeps.
    struct Past {
        double seconds = 0;  // of the last line that has them
        // The lowest held-out loss of a step that still has a folder; infinity if there is none.
        double best = std::numeric_limits<double>::infinity();
    };
    // Call this when training has continued from a checkpoint, before anything is written. Makes `latest` link to the
    // step of the checkpoint; if `best` links to a later step, makes it link to the best step up to this one. Removes
    // the entries of later steps, and an incomplete last line, from log.jsonl and samples.txt. Also removes lines that
    // are not JSON from log.jsonl.
    Past rewind(std::int64_t step) const;

  private:
    void lock();
    void remove_leftovers() const;
    void promote_record() const;
    std::int64_t led_to(const std::string& name) const;
    void mend_links() const;
    void append(const std::string& name, const std::string& lines) const;
    void link(const std::string& name, const std::string& target) const;
    void prune(std::int64_t saved) const;

    std::string path_;
    std::int64_t chosen_ = -1;  // the step whose folder or link was named when the run was opened; -1 if none was
    OpenFile lock_;             // holds the lock; no file is open if the run was opened for reading
};

// Moves the folder `fresh`, which lies in a PrivateFolder (a temporary folder), to `place`, and flushes the change to
// disk. If `place` exists, the two folders are exchanged in one atomic operation, and the old folder is removed with
// the PrivateFolder. If the file system cannot exchange names, the old folder is renamed first, and for a short moment
// there is no folder at `place`.
void move_into_place(const std::string& fresh, const std::string& place);

}  // namespace masquerade
