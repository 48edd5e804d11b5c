// SPDX-License-Identifier: MIT
// A run folder: everything a training run leaves behind, and the promise that a crash at any moment, or a
// full disk, leaves a complete checkpoint.
//
//   run.json  vocab.txt  log.jsonl  samples.txt
//   step-000100/  config.json  model.safetensors  state.safetensors
//   latest -> step-000100    best -> step-000060
//
// A step is written whole under a temporary name, flushed, renamed; then the links are swapped. Temporary
// names begin with ".new-" or ".old-" and are removed when the run is taken up again. Until there is a checkpoint,
// run.json is called .run.json: such a folder cannot be resumed, and a new run may have it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace masquerade {

class RunFolder {
  public:
    RunFolder() = default;  // none yet: there is nothing to read, and nothing can be written
    // A new run; a folder that holds anything else than a run without a checkpoint is refused, and so is a name that
    // checkpoints have. With the second form: runs/univae-003, the next free number.
    static RunFolder create(const std::string& path);
    static void expect_free(const std::string& path);  // refuses as create() does, and makes nothing
    static RunFolder create_next(const std::string& parent, const std::string& model);
    // To read. `path` is a run folder, one of its step folders, or its `latest` or `best`. Changes nothing on
    // the disk.
    static RunFolder open(const std::string& path);
    // To go on. Locks the folder against a second writer and removes what a crash has left.
    static RunFolder resume(const std::string& path);

    RunFolder(RunFolder&& other) noexcept { *this = std::move(other); }
    RunFolder& operator=(RunFolder&& other) noexcept;
    ~RunFolder();

    const std::string& path() const { return path_; }
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    std::string step_folder(std::int64_t step) const { return file(step_name(step)); }
    static std::string step_name(std::int64_t step);  // step-000100
    // Whether a run keeps what it needs under this name: run.json, latest, step-000100 ...
    static bool keeps(const std::string& name);

    std::vector<std::int64_t> steps() const;  // those there are, ascending
    // The step that was asked for when the folder was opened, else that of `latest`. Where that link
    // is missing or leads nowhere the newest complete one, with a warning. Throws BadInput when there is none, and
    // when `latest` leads to a damaged one: which older one to take is the user's choice.
    std::int64_t latest_step() const;

    // `write` puts config.json, model.safetensors and state.safetensors into the folder it is given.
    // Afterwards `latest` (and `best`) lead to this step, and all but the last `keep` steps and the best one
    // are removed. Throws BadInput when the disk is full; what was there before is then still there.
    void save_step(std::int64_t step, const std::function<void(const std::string& folder)>& write, bool best = false);
    int keep = 3;

    // Writes run.json of a new run, whose name it gets with the first checkpoint.
    void begin(const std::string& record) const;
    // vocab.txt, and run.json of a resumed run: whole or not at all.
    void write(const std::string& name, const std::string& bytes) const;
    // One JSON object with a "step", on one line.
    void append_log(const std::string& json_line) const;
    // Samples drawn after this step; the lines are indented under it.
    void append_samples(std::int64_t step, const std::string& lines) const;
    // After a checkpoint was loaded to go on from it: `latest` leads there, and what log.jsonl and
    // samples.txt say of later steps, or a torn last line, is dropped.
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
    std::int64_t chosen_ = -1;  // the step folder that was asked for
    int lock_ = -1;             // of a writer
};

// Puts a whole folder of a PrivateFolder where another may be, which ends in there: at every moment one of the two is
// in place.
// Flushed.
void move_into_place(const std::string& fresh, const std::string& place);

}  // namespace masquerade
