// SPDX-License-Identifier: MIT
// The parts that all functions of masquerade.h share: they catch exceptions, check arguments and handles, and return
// texts and arrays that C can free.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "library/masquerade.h"
#include "models/runs/run.h"
#include "tools/options.h"

struct masquerade_run {
    const masquerade::Family* family = nullptr;
    std::unique_ptr<masquerade::Run> run;
    std::string folder;  // as it was given, for messages
    std::string place;   // the absolute path
};
struct masquerade_tokenizer {
    std::unique_ptr<masquerade::WordPiece> reader;
};

namespace masquerade {

// Runs the body of a function of the interface, and returns its status. Calls of several threads wait for each other; a
// callback may call another function.
int call(const std::function<void()>& body);

// Throws BadUsage if an argument is null. `name` is its name, for the message.
void expect(const void* argument, const char* name);

// The strings of an array that ends with null; none if the array is null.
Strings strings_of(const char* const* array);
// The lines of a call. Throws BadUsage if one of them is null or has a line feed.
Strings lines_of(const char* const* lines, std::size_t count);
std::string line_of(const char* line);
// Reads options "key=value" as a program reads "--key=value": declares them by setup(), and calls body().
void with_keys(const char* const* options, const std::function<void(Options&)>& setup,
               const std::function<void()>& body);

// The handles of one type. A handle is a number that is never given twice, so a closed one is refused for ever.
inline std::uintptr_t last_handle = 0;  // of all types, so that a tokenizer is never taken for a run
template <class Handle>
class Handles {
  public:
    explicit Handles(const char* what) : what_(what) {}
    Handle* add(Handle opened) {
        open_.emplace(++last_handle, std::make_shared<Handle>(std::move(opened)));
        return reinterpret_cast<Handle*>(last_handle);
    }
    // Returns what the handle stands for, which lives until the result is gone, even if a callback closes the handle.
    // Throws BadUsage if the handle is null, unknown or closed.
    std::shared_ptr<Handle> at(const Handle* handle) const {
        expect(handle, what_);
        const auto number = reinterpret_cast<std::uintptr_t>(handle);
        if (const auto found = open_.find(number); found != open_.end()) return found->second;
        throw BadUsage(
            text("this ", what_, number <= last_handle ? " is closed" : " is none that the library has opened"));
    }
    void close(const Handle* handle) {
        at(handle);
        open_.erase(reinterpret_cast<std::uintptr_t>(handle));
    }

  private:
    const char* const what_;
    std::map<std::uintptr_t, std::shared_ptr<Handle>> open_;
};
Handles<masquerade_run>& runs();
Handles<masquerade_tokenizer>& tokenizers();
// Like call(), for a function with a handle: calls body() with what the handle stands for.
template <class Handle, class Body>
int call_with(const Handles<Handle>& opened, const Handle* handle, Body body) {
    return call([&] { body(*opened.at(handle)); });
}

// Sets the options of the device and of the threads that a call asks for, and returns the device.
struct DeviceOptions {
    std::string device = "cpu";
    int threads = 0;
    void declare(Options& options);
    Device choose() const;
};

// Results for C. give() stores them through the pointers of the caller.
void give(const std::string& from, char** to);
template <class T>
void give(const std::vector<T>& numbers, std::vector<std::int64_t> shape, masquerade_array* to);
// Returns each string with a line feed behind it.
std::string as_lines(const Strings& lines);
// Returns the numbers of an array with this many dimensions. Throws BadUsage if its type, its shape or its data are not
// as they must be; `types` are the types that are allowed.
Numbers numbers_in(const masquerade_array* array, const char* name, int dimensions, const std::set<int>& types);

}  // namespace masquerade
