// SPDX-License-Identifier: MIT
#include "library/call.h"

#include <cxxabi.h>
#include <pthread.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "engine/base/log.h"
#include "engine/base/printable.h"
#include "engine/base/version.h"
#include "engine/ops/cpu/parallel.h"
#include "tools/device.h"

namespace masquerade {
namespace {

thread_local std::string last_error;

struct LineUse {
    masquerade_use_line use = nullptr;
    void* user = nullptr;
} log_use;

std::mutex one_at_a_time;             // not a recursive one: a child of fork() could not unlock it
thread_local bool in_a_call = false;  // whether this thread has locked it
bool abandoned = false;               // whether another thread had locked it when this process was forked

[[maybe_unused]] const int after_fork = pthread_atfork(nullptr, nullptr, [] {
    if (in_a_call) return;  // a callback has forked
    abandoned = !one_at_a_time.try_lock();
    if (!abandoned) one_at_a_time.unlock();
});

// A call, which waits for the calls of other threads. Within a callback, the lock is held already.
class Turn {
  public:
    Turn() : outermost_(!in_a_call) {
        if (abandoned)
            throw BadUsage(
                "this process was forked while another thread was in a call of the library, so the library cannot be "
                "used here: start a new process instead (in Python, multiprocessing with \"spawn\")");
        if (outermost_) one_at_a_time.lock();
        in_a_call = true;
    }
    ~Turn() {
        if (!outermost_) return;
        in_a_call = false;
        one_at_a_time.unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

  private:
    const bool outermost_;
};

template <class T>
Numbers widened(const void* data, std::size_t count) {
    const T* const numbers = static_cast<const T*>(data);
    return {numbers, numbers + count};
}

// The memory of a result. Throws std::bad_alloc, which call() turns into a message.
void* memory_for(std::size_t bytes) {
    if (void* memory = std::malloc(std::max<std::size_t>(bytes, 1))) return memory;
    throw std::bad_alloc();
}

template <class T>
constexpr int type_of() {
    return std::is_same_v<T, double> ? MASQUERADE_FLOAT64 : std::is_same_v<T, int> ? MASQUERADE_INT32 : MASQUERADE_BOOL;
}

}  // namespace

int call(const std::function<void()>& body) {
    try {
        const Turn turn;
        body();
        last_error.clear();
        return MASQUERADE_OK;
    } catch (const BadUsage& e) {
        last_error = printable(e.what());
        return MASQUERADE_MISUSE;
    } catch (const abi::__forced_unwind&) {
        throw;  // a callback has ended this thread, as Python does when the interpreter ends
    } catch (...) {
        last_error = printable(reason_of_failure());
        return MASQUERADE_FAILURE;
    }
}

void expect(const void* argument, const char* name) {
    if (!argument) throw BadUsage("the argument ", name, " is NULL");
}

Strings strings_of(const char* const* array) {
    Strings all;
    for (; array && *array; array++) all.emplace_back(*array);
    return all;
}

std::string line_of(const char* line) {
    expect(line, "line");
    if (std::strchr(line, '\n')) throw BadUsage("a line has a line feed; expected one line in each string");
    return line;
}

Strings lines_of(const char* const* lines, std::size_t count) {
    if (count > 0) expect(lines, "lines");
    if (count > INT_MAX) throw BadUsage(count, " lines, expected at most ", INT_MAX);
    Strings all;
    for (std::size_t i = 0; i < count; i++) all.push_back(line_of(lines[i]));
    return all;
}

void with_keys(const char* const* options, const std::function<void(Options&)>& setup,
               const std::function<void()>& body) {
    Strings words;
    for (const std::string& option : strings_of(options)) {
        const std::size_t equals = option.find('=');
        if (equals == option.npos || equals == 0)
            throw BadUsage("the option \"", option, "\" is not of the form key=value");
        std::string key = option.substr(0, equals);
        std::replace(key.begin(), key.end(), '_', '-');
        words.push_back("--" + key + option.substr(equals));
    }
    with_options("masquerade", words, setup, body);
}

Handles<masquerade_run>& runs() {
    static Handles<masquerade_run> all("run");
    return all;
}

Handles<masquerade_tokenizer>& tokenizers() {
    static Handles<masquerade_tokenizer> all("tokenizer");
    return all;
}

void DeviceOptions::declare(Options& options) {
    options.choice("--device", device, {"cpu", "cuda"}, "cpu (default) or cuda");
    options.number("--threads", threads, 1, 1024, "CPU threads of the process");
}

Device DeviceOptions::choose() const {
    if (threads > 0) set_threads(threads);
    return choose_device(device, "the library", Work::models);
}

void give(const std::string& from, char** to) {
    char* const memory = static_cast<char*>(memory_for(from.size() + 1));
    std::memcpy(memory, from.c_str(), from.size() + 1);
    *to = memory;
}

template <class T>
void give(const std::vector<T>& numbers, std::vector<std::int64_t> shape, masquerade_array* to) {
    void* const memory = numbers.empty() ? nullptr : memory_for(numbers.size() * sizeof(T));
    if (memory) std::memcpy(memory, numbers.data(), numbers.size() * sizeof(T));
    *to = {type_of<T>(), int(shape.size()), {}, memory};
    std::copy(shape.begin(), shape.end(), to->shape);
}
template void give(const std::vector<double>&, std::vector<std::int64_t>, masquerade_array*);
template void give(const std::vector<int>&, std::vector<std::int64_t>, masquerade_array*);
template void give(const std::vector<unsigned char>&, std::vector<std::int64_t>, masquerade_array*);

std::string as_lines(const Strings& lines) {
    std::string all;
    for (const std::string& line : lines) all += line + '\n';
    return all;
}

Numbers numbers_in(const masquerade_array* array, const char* name, int dimensions, const std::set<int>& types) {
    expect(array, name);
    if (array->dimensions != dimensions)
        throw BadUsage(name, " has ", array->dimensions, " dimensions, expected ", dimensions);
    if (!types.count(array->type))
        throw BadUsage(name, " has the type ", array->type,
                       "; masquerade.h names the types, and which this function reads");
    std::int64_t count = 1;
    for (int d = 0; d < dimensions; d++) {
        const std::int64_t size = array->shape[d];
        if (size < 0 || (count > 0 && size > INT_MAX / count))
            throw BadUsage(name, " has the size ", size, " in dimension ", d, "; expected at least 0, and at most ",
                           INT_MAX, " numbers in all");
        count *= size;
    }
    if (count > 0) expect(array->data, text(name, ".data").c_str());
    switch (array->type) {
        case MASQUERADE_FLOAT64: return widened<double>(array->data, count);
        case MASQUERADE_FLOAT32: return widened<float>(array->data, count);
        case MASQUERADE_INT32: return widened<std::int32_t>(array->data, count);
        default: return widened<unsigned char>(array->data, count);
    }
}

}  // namespace masquerade

// The linker puts this function in the place of __cxa_atexit() (Makefile), which would have the static objects of the
// library destroyed by exit(), even if another thread is in a call that uses them. So they are never destroyed.
extern "C" int __wrap___cxa_atexit(void (*)(void*), void*, void*) { return 0; }

using namespace masquerade;

const char* masquerade_version() { return version; }
const char* masquerade_error() { return last_error.c_str(); }
void masquerade_free_text(char* text) { std::free(text); }
void masquerade_free_array(masquerade_array* array) {
    if (!array) return;
    std::free(array->data);
    *array = {};
}

int masquerade_log(masquerade_use_line use, void* user) {
    return call([&] {
        log_use = {use, user};
        log_sink = nullptr;
        if (use) log_sink = [](const char* line) { log_use.use(line, log_use.user); };
    });
}
