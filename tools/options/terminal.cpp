// SPDX-License-Identifier: MIT
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "tools/program.h"

namespace masquerade {

bool is_terminal(FILE* file) { return isatty(fileno(file)); }

int terminal_width(FILE* file, int most) {
    winsize size{};
    bool known = ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? std::min<int>(size.ws_col, most) : 80;
}

}  // namespace masquerade
