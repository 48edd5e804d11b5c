// SPDX-License-Identifier: MIT
// Options that belong to one model, in a program that knows several.
#pragma once
#include <string>

#include "tools/program.h"

namespace masquerade {

// An option that is a number from `least` to `most`, called `unit` in --help.
template <class Value, class Number>
CLI::Option* number_option(CLI::App& app, const std::string& name, Value& value, Number least, Number most,
                           const std::string& what, const std::string& unit = "N") {
    return app.add_option(name, value, what)->check(CLI::Range(least, most))->option_text(unit);
}

// Refuses the options of a group "of A and B" that are not of the run's model.
inline void refuse_options(const CLI::App* group, const std::string& run, const std::string& model) {
    for (const CLI::Option* option : group->get_options())
        if (option->count() > 0)
            throw BadUsage(
                text(option->get_name(), " is an option ", group->get_group(), ", and ", run, " is a run of ", model));
}

}  // namespace masquerade
