// SPDX-License-Identifier: MIT
// Prints reports of a program (names, tables, numbers) to standard output. To print generated text unchanged, use
// write_out() (tools/program.h).
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "engine/base/printable.h"
#include "engine/base/wrap.h"
#include "tools/program.h"

namespace masquerade {

// An argument of say() that may have several lines: say() keeps its line breaks.
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

// Like fmt::print, but escapes control characters and line breaks in text arguments, so that a name can neither end the
// line nor control the terminal.
template <class... Parts>
void say(fmt::format_string<Said<Parts>...> form, const Parts&... parts) {
    say_values(form, part_to_say(parts)...);
}

// Like say(), but if standard output is a terminal, wraps the lines to its width. Continuation lines are indented by
// `hang` columns more than their line or, if this leaves them less than 20 columns, by 2.
template <class... Parts>
void say_wrapped(int hang, fmt::format_string<Said<Parts>...> form, const Parts&... parts) {
    const auto format = [&](const auto&... values) { return fmt::vformat(form, fmt::make_format_args(values...)); };
    const std::string lines = format(part_to_say(parts)...);
    const int width = terminal_width(stdout);
    say("{}", Lines{is_terminal(stdout) ? wrapped(lines, width, hang + 20 <= width ? hang : 2) : lines});
}

}  // namespace masquerade
