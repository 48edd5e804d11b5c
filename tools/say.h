// SPDX-License-Identifier: MIT
// The words of a program about its work, on standard output: names, tables, numbers. Text that it makes, one line out
// for one line in, is written by write_out (tools/program.h) as it is.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "engine/base/printable.h"

namespace masquerade {

// A part with line breaks of its own, which are kept.
struct Lines {
    std::string text;
};

template <class Part>
auto part_to_say(const Part& part) {
    if constexpr (std::is_same_v<Part, Lines>)
        return printable_lines(part.text);
    else if constexpr (std::is_convertible_v<const Part&, std::string_view>)
        return printable(part);
    else
        return part;
}
template <class Part>
using Said = decltype(part_to_say(std::declval<const Part&>()));

template <class... Values>
void say_values(fmt::string_view form, const Values&... values) {
    fmt::vprint(stdout, form, fmt::make_format_args(values...));
}

// fmt::print, with every text among the parts as one printable line: a name cannot end the line, nor steer a terminal.
template <class... Parts>
void say(fmt::format_string<Said<Parts>...> form, const Parts&... parts) {
    say_values(form, part_to_say(parts)...);
}

}  // namespace masquerade
