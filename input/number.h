// SPDX-License-Identifier: MIT
// Parses numbers in input files, file names, options and settings.
#pragma once
#include <charconv>
#include <cmath>
#include <string_view>
#include <type_traits>

namespace masquerade {

// Reads all of `text` as one finite number; a plus sign is allowed. If the text is anything else, or the type T cannot
// hold the number, returns false and leaves `number` unchanged.
template <class T>
bool read_number(std::string_view text, T& number, [[maybe_unused]] int base = 10) {
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
    const char* const end = text.data() + text.size();
    T read{};
    std::from_chars_result stopped{};
    if constexpr (std::is_integral_v<T>)
        stopped = std::from_chars(text.data(), end, read, base);
    else
        stopped = std::from_chars(text.data(), end, read);
    if (stopped.ec != std::errc() || stopped.ptr != end || !std::isfinite(double(read))) return false;
    number = read;
    return true;
}

}  // namespace masquerade
