// SPDX-License-Identifier: MIT
// A run folder holds everything that a training run writes. A crash at any moment, or a full disk, leaves a complete
// checkpoint.
//
//   run.json  vocab.txt  log.jsonl  samples.txt
//   step-000100/  config.json  model.safetensors  state.safetensors
//   latest -> step-000100    best -> step-000060
//
// A step is written completely under a temporary name, flushed to disk and renamed; then the links are swapped.
// Temporary names begin with ".new-" or ".old-" and are removed when the run is resumed. Until the first checkpoint,
// run.json is called .run.json: a folder in this state cannot be resumed, and a new run may reuse it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace masquerade {

class RunFolder {
  public:
    RunFolder() = default;  // no run is open; nothing can be read or written
    // Creates a new run. Throws BadInput if the folder holds anything but a run without a checkpoint, or if the path is
    // named like a step folder or a link. create_next() uses the next free number: runs/univae-003.
    static RunFolder create(const std::string& path);
    static void expect_free(const std::string& path);  // only does the checks of create()
    static RunFolder create_next(const std::string& parent, const std::string& model);
    // Opens a run for reading and changes nothing on disk. `path` is a run folder, or a step folder or one of the links
    // `latest` and `best` in it.
    static RunFolder open(const std::string& path);
    // Opens a run to continue it: locks the folder against a second writer and removes what a crash left behind.
    static RunFolder resume(const std::string& path);

    RunFolder(RunFolder&& other) noexcept { *this = std::move(other); }
    RunFolder& operator=(RunFolder&& other) noexcept;
    ~RunFolder();

    const std::string& path() const { return path_; }
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    std::string step_folder(std::int64_t step) const { return file(step_name(step)); }
    static std::string step_name(std::int64_t step);  // step-000100
    // Whether a run itself writes a file, link or folder of this name: run.json, latest, step-000100 and so on.
    static bool keeps(const std::string& name);

    std::vector<std::int64_t> steps() const;  // ascending
    // Returns the step that was named when the folder was opened. If none was named, returns the step that `latest`
    // links to. If this link is missing or broken, returns the newest complete step and prints a warning. Throws
    // BadInput if there is no complete step, or if `latest` links to a damaged one: the user must choose an older step.
    std::int64_t latest_step() const;

    // Saves a step. `write` puts config.json, model.safetensors and state.safetensors into `folder`. Afterwards
    // `latest` links to this step, and so does `best` if `best` is true. All steps are removed except the last `keep`
    // steps up to this one, and the best step. Throws BadInput if the disk is full; the earlier checkpoints are then
    // intact.
    void save_step(std::int64_t step, const std::function<void(const std::string& folder)>& write, bool best = false);
    int keep = 3;

    // Writes the record of a new run as .run.json; the first checkpoint renames it to run.json.
    void begin(const std::string& record) const;
    // Writes a file such as vocab.txt atomically: afterwards it is complete or unchanged.
    void write(const std::string& name, const std::string& bytes) const;
    // Appends a JSON object as one line. It should contain a "step", so that rewind() can remove it.
    void append_log(const std::string& json_line) const;
    // Appends samples that were generated after this step: a line with the step, then the samples, indented.
    void append_samples(std::int64_t step, const std::string& lines) const;
    // Call after loading a checkpoint to continue from it. Makes `latest` link to the step and removes the entries of
    // later steps, and an incomplete last line, from log.jsonl and samples.txt.
    void rewind(std::int64_t step) const;

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
    std::int64_t chosen_ = -1;  // the step folder that was named when the run was opened; -1: none
    int lock_ = -1;             // file descriptor with the lock; -1 for a reader
};

// Moves the folder `fresh`, inside a PrivateFolder, to `place`, and flushes the change to disk. If `place` exists, the
// two are exchanged, and the old one is removed with the PrivateFolder. At every moment one of the two is in place,
// unless the file system cannot exchange names.
void move_into_place(const std::string& fresh, const std::string& place);

}  // namespace masquerade
