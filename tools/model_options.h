// SPDX-License-Identifier: MIT
// Options that belong to one model, in a program that knows several.
#pragma once
#include <string>

#include "tools/program.h"

namespace masquerade {

// Refuses `options`, which are `of` another model than the run's.
inline void refuse_options(const CLI::App* options, const char* of, const std::string& run,
                           const std::string& model) {
    for (const CLI::Option* option : options->get_options())
        if (option->count() > 0)
            throw BadUsage(
                text(option->get_name(), " is an option of ", of, ", and ", run, " is a run of ", model));
}

}  // namespace masquerade
