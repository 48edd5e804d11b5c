// SPDX-License-Identifier: MIT
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "input/input.h"
#include "input/open_file.h"

namespace masquerade {

std::string read_whole(const std::string& path, std::string& bytes, std::size_t largest) {
    const auto failed = [&](const char* what) { return std::string(what) + path + ": " + std::strerror(errno); };
    before_reading(path);
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    const OpenFile file(path, O_RDONLY | O_NONBLOCK);
    struct stat about {};
    if (file < 0 || ::fstat(file, &about) != 0) return failed("cannot open ");
    if (S_ISDIR(about.st_mode)) return errno = EISDIR, failed("cannot open ");
    const bool pipe = S_ISFIFO(about.st_mode);
    if (!S_ISREG(about.st_mode) && !pipe && !::isatty(file)) return path + " is a device; a file or a pipe is expected";
    if (::fcntl(file, F_SETFL, 0) != 0) return failed("cannot read ");
    bytes.clear();
    for (std::size_t done = 0;;) {
        if (done > largest)
            return path + " is larger than " + std::to_string(largest) +
                   " bytes, the most that is read; is it another kind of file?";
        if (done == bytes.size())
            bytes.resize(std::max({std::size_t(1) << 16, 2 * done, std::min(std::size_t(about.st_size), largest) + 1}));
        const ssize_t more = ::read(file, bytes.data() + done, std::min(bytes.size() - done, std::size_t(1) << 30));
        if (more < 0 && errno == EINTR) continue;
        if (more < 0) return failed("cannot read ");
        if (more == 0) {
            bytes.resize(done);
            break;
        }
        done += more;
    }
    return pipe && bytes.empty() ? path + " is an empty pipe, into which nobody writes; a file is expected" : "";
}

}  // namespace masquerade
