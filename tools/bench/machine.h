// SPDX-License-Identifier: MIT
// Where numbers come from: the processor, what the program was built for, and the commit it lies in.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/tensor/device.h"

namespace masquerade {

struct Machine {
    std::string processor;
    int threads;               // those this program may use
    double load;               // programs that ran at the start, the mean of a minute; -1: not known
    std::string instructions;  // the widest the compiler was allowed
    std::string compiler;
    bool optimised;
    // Of the folder the program lies in, "+" where files have changed since; or what a file `commit` beside the program
    // says. May be empty.
    std::string commit;
};

Machine this_machine();
// What the JSON of a case begins with: "case", "device", of a GPU "driver", and "machine".
nlohmann::ordered_json json_head(const char* name, Device device, const Machine& machine);
// For people, in two lines, and one of the GPU where that is the device; a warning where the build says
// nothing of speed.
std::string described(const Machine& machine, Device device);

// Writes it into a file, which is whole or as it was: under another name first.
void save_json(const std::string& file, const nlohmann::ordered_json& json);

// Of a file of the source tree, from its root: found from where the program lies, else from here.
std::filesystem::path source_file(const std::string& name);

}  // namespace masquerade
