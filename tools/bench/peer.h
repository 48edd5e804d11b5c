// SPDX-License-Identifier: MIT
// Other software beside ours: a script in a child process that answers a line of JSON with a line of JSON.
// The child ends with its Peer, with this program however that ends, or when it takes too long.
#pragma once
#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace masquerade {

// It did not start, ended, took too long, or said that something is wrong.
struct PeerError : BadInput {
    using BadInput::BadInput;
};

// Ctrl-C.
struct Stopped {};

class Peer {
  public:
    using Environment = std::vector<std::pair<std::string, std::string>>;

    // Runs `python script`, with these variables changed.
    Peer(const std::string& python, const std::string& script, const Environment& environment = {});
    ~Peer() { end(); }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    // The answer, at the latest after so many seconds. After a PeerError the child has ended.
    nlohmann::json ask(const nlohmann::json& request, double seconds);

  private:
    void send(const std::string& line);
    std::string receive(double seconds, const std::string& what);
    [[noreturn]] void fail(std::string what, bool by_itself = false);
    int end();  // the child's exit status, or the signal that ended it, negative

    std::string python_;
    pid_t child_ = -1;
    int line_ = -1, errors_ = -1;  // a socket for requests and answers; the child's standard error
    std::string received_, said_;  // what came of the next answer; the end of what it said on standard error
};

// Does what asks a peer. Why that failed, in a line; "" where it did not. Ctrl-C goes on.
template <class Ask>
std::string failure_of(Ask ask) {
    try {
        ask();
        return "";
    } catch (const PeerError& error) {
        return error.what();
    } catch (const nlohmann::json::exception& error) {
        return text("the peer's answer is not what was asked for: ", error.what());
    }
}

// A file in memory that children, if they start later, can open by its path.
class SharedFile {
  public:
    explicit SharedFile(std::string_view bytes);
    ~SharedFile();
    SharedFile(const SharedFile&) = delete;
    SharedFile& operator=(const SharedFile&) = delete;

    std::string path() const { return text("/dev/fd/", file_); }
    std::string read() const;  // what it holds by now

  private:
    int file_;
};

// The Pythons to try: those of the virtual environment and of PATH.
std::vector<std::string> pythons();

}  // namespace masquerade
