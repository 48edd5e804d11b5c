// SPDX-License-Identifier: MIT
// Where numbers come from: the processor, what the program was built for, and the commit it lies in.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "engine/tensor/device.h"

namespace masquerade {

// What the JSON of a case begins with: "case", "device", of a GPU "driver", and "machine". There "load" is that of the
// start, the mean of a minute; "commit" has "+" where files have changed since, or is what a file `commit` beside the
// program says; it may be empty.
nlohmann::ordered_json json_head(const std::string& name, Device device);
// For people, in two lines, and one of the GPU where that is the device.
std::string described(const nlohmann::ordered_json& head);

}  // namespace masquerade
