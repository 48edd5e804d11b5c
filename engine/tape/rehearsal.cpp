// SPDX-License-Identifier: MIT
#include "engine/tape/rehearsal.h"

#include "engine/ops/table.h"
#include "engine/tensor/runtime.h"

namespace masquerade {
namespace {

template <class Slot>
struct Silent;
template <class... Parameters>
struct Silent<void (*)(Parameters...)> {
    static void call(Parameters...) {}
};
const OpTable silent_ops = {
#define OP(name, parameters, ...) &Silent<decltype(OpTable::name)>::call,
#include "engine/ops/ops.h"
#undef OP
};

DeviceRead* refuse_to_read(const void*, std::size_t) {
    throw Error(
        "a training step reads numbers from the device before the whole step is requested; read them after the step, "
        "or set graph=false");
}
void drop_copy(void*, const void* from, std::size_t bytes, Way way) {
    if (way == Way::from_device) refuse_to_read(from, bytes);
}

// While this object is alive, ops, fills and copies to or within the device do nothing, and copies from the device
// throw Error. Device memory is still allocated and freed.
class SilentDevice {
  public:
    SilentDevice() : runtime_(&cuda_runtime()), silent_runtime_(*runtime_), ops_(set_cuda_ops(&silent_ops)) {
        silent_runtime_.copy = drop_copy;
        silent_runtime_.begin_read = refuse_to_read;
        silent_runtime_.fill = [](void*, int, std::size_t) {};
        set_cuda_runtime(&silent_runtime_);
    }
    SilentDevice(const SilentDevice&) = delete;
    ~SilentDevice() {
        set_cuda_runtime(runtime_);
        set_cuda_ops(ops_);
    }

  private:
    const DeviceRuntime* runtime_;
    DeviceRuntime silent_runtime_;
    const OpTable* ops_;
};

}  // namespace

bool rehearse(Tape& tape, const std::string& bucket, std::uint64_t seed, std::uint32_t step, bool wanted,
              const std::function<void()>& work) {
    if (!wanted || tape.device == Device::cpu || tape.observed()) return false;
    tape.begin(bucket, seed, step, true, true);
    if (!tape.rehearses()) return false;
    const SilentDevice silent;
    work();
    tape.end();
    return true;
}

CapturedStep::CapturedStep(bool wanted) : capturing_(wanted) {
    if (capturing_) cuda_runtime().begin_graph();
}

CapturedStep::~CapturedStep() {
    if (capturing_) cuda_runtime().abandon_graph();
}

void CapturedStep::run(const std::string& bucket) {
    if (!capturing_) return;
    capturing_ = false;
    cuda_runtime().launch_graph(bucket.c_str());
}

void run_step(Tape& tape, const std::string& bucket, std::uint64_t seed, std::uint32_t step, bool graph,
              const std::function<void()>& work) {
    for (bool captures = !rehearse(tape, bucket, seed, step, graph, work) && graph;; captures = false) {
        tape.begin(bucket, seed, step, true);
        CapturedStep captured(tape, captures);
        try {
            work();
            return captured.run(bucket);
        } catch (const OutgrownInCapture&) {
            if (!captures) throw;
        }
    }
}

namespace {

// Returns false if work() cannot be captured. In this case, no op has run.
bool run_as_graph(const std::string& name, const std::function<void()>& work) {
    CapturedStep captured(true);
    try {
        work();
    } catch (const Error&) {
        return false;
    }
    captured.run(name);
    return true;
}

}  // namespace

void run_pass(Tape& tape, const std::string& name, bool graph, const std::function<void()>& work) {
    tape.begin(name);
    if (graph && CapturedStep::can_capture(tape)) {
        if (run_as_graph(name, work)) return;
        tape.begin(name);
    }
    work();
}

}  // namespace masquerade
