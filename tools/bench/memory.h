// SPDX-License-Identifier: MIT
// What a process takes: resident memory, page faults; and work done in a process of its own, so that one
// measurement does not find the memory of another.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "engine/base/memory.h"

namespace masquerade {

void forget_peak();           // peak_resident_bytes() is then the most from here on
std::int64_t minor_faults();  // of all threads, since the start

// Runs work() in a child process and returns what it gave; an exception there is one here, an Error. Ctrl-C
// reaches the child once, as SIGINT: what it gives then is still returned. No threads may have been started.
nlohmann::ordered_json in_own_process(const std::function<nlohmann::ordered_json()>& work);

}  // namespace masquerade
