// SPDX-License-Identifier: MIT
// Options that belong to one model, in a program that knows several.
#pragma once
#include <string>

#include "tools/program.h"

namespace masquerade {

// Refuses the options of a group "of A and B" that are not of the run's model.
inline void refuse_options(const CLI::App* group, const std::string& run, const std::string& model) {
    for (const CLI::Option* option : group->get_options())
        if (option->count() > 0)
            throw BadUsage(
                text(option->get_name(), " is an option ", group->get_group(), ", and ", run, " is a run of ", model));
}

}  // namespace masquerade
