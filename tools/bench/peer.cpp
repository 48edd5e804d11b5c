// SPDX-License-Identifier: MIT
#include "tools/bench/peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "tools/bench/measure.h"
#include "tools/program.h"

namespace masquerade {
namespace {

std::vector<std::string> changed_environment(const Peer::Environment& changes) {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; entry++) {
        std::string_view name(*entry, std::strcspn(*entry, "="));
        if (std::none_of(changes.begin(), changes.end(), [&](auto& change) { return change.first == name; }))
            all.emplace_back(*entry);
    }
    for (const auto& [name, value] : changes) all.push_back(name + '=' + value);
    return all;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> all;
    for (std::string& s : strings) all.push_back(s.data());
    all.push_back(nullptr);
    return all;
}

std::string last_line(const std::string& said) {
    std::size_t end = said.find_last_not_of(" \r\n");
    if (end == said.npos) return "";
    std::size_t before = said.find_last_of("\r\n", end);
    return said.substr(before == said.npos ? 0 : before + 1, end - (before == said.npos ? -1 : before));
}

std::string system_error(const char* call) { return text(call, ": ", std::strerror(errno)); }

}  // namespace

Peer::Peer(const std::string& python, const std::string& script, const Environment& environment)
    : python_(python) {
    std::vector<std::string> words = {python, script}, variables = changed_environment(environment);
    std::vector<char*> argv = pointers(words), envp = pointers(variables);
    int sockets[2], errors[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        throw PeerError(system_error("socketpair"));
    line_ = sockets[0];
    if (pipe2(errors, O_CLOEXEC) != 0) {
        close(sockets[1]);
        fail(system_error("pipe"));
    }
    errors_ = errors[0];
    const pid_t parent = getpid();
    child_ = fork();
    if (child_ == 0) {
        setpgid(0, 0);  // Ctrl-C is for this program, which then ends the child
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(127);
        dup2(sockets[1], STDIN_FILENO);
        dup2(sockets[1], STDOUT_FILENO);
        dup2(errors[1], STDERR_FILENO);
        execvpe(argv[0], argv.data(), envp.data());
        const char* why = std::strerror(errno);
        if (write(STDERR_FILENO, why, std::strlen(why)) < 0) _exit(126);
        _exit(127);
    }
    if (child_ > 0) setpgid(child_, child_);  // whoever comes first
    close(sockets[1]);
    close(errors[1]);
    if (child_ < 0) fail(system_error("fork"));
}

nlohmann::json Peer::ask(const nlohmann::json& request, double seconds) {
    if (child_ <= 0) throw PeerError(text("the peer ", python_, " has ended"));
    const std::string what =
        request.value("do", "") + (request.contains("work") ? " " : "") + request.value("work", "");
    send(request.dump() + '\n');
    const std::string line = receive(seconds, what);
    nlohmann::json answer = nlohmann::json::parse(line, nullptr, false);
    if (!answer.is_object()) fail(text("answered \"", line.substr(0, 60), "\", which is no JSON object"));
    if (answer.contains("error")) fail(text("cannot ", what, ": ", answer["error"].get<std::string>()));
    return answer;
}

void Peer::send(const std::string& line) {
    for (std::size_t sent = 0; sent < line.size();) {
        ssize_t n = ::send(line_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return;  // it has ended: receive() tells why
        sent += std::size_t(n);
    }
}

std::string Peer::receive(double seconds, const std::string& what) {
    const double deadline = steady_seconds() + seconds;
    pollfd files[2] = {{line_, POLLIN, 0}, {errors_, POLLIN, 0}};
    while (true) {
        if (std::size_t end = received_.find('\n'); end != received_.npos) {
            std::string line = received_.substr(0, end);
            received_.erase(0, end + 1);
            return line;
        }
        if (stop_requested()) {
            end();
            throw Stopped{};
        }
        if (steady_seconds() > deadline)
            fail(text("gave no answer to \"", what, "\" in ", int(seconds), " s"));
        if (poll(files, 2, 100) <= 0) continue;
        char bytes[4096];
        if (files[1].revents != 0) {
            ssize_t n = read(errors_, bytes, sizeof bytes);
            if (n > 0) said_.append(bytes, std::size_t(n));
            if (n == 0) files[1].fd = -1;
            if (said_.size() > 20000) said_.erase(0, said_.size() - 10000);
        }
        if (files[0].revents != 0) {
            ssize_t n = read(line_, bytes, sizeof bytes);
            if (n > 0) received_.append(bytes, std::size_t(n));
            if (n == 0 || (n < 0 && errno != EINTR)) fail(text("ended at \"", what, '"'), true);
        }
    }
}

void Peer::fail(std::string what, bool by_itself) {
    char bytes[4096];
    if (errors_ >= 0) {
        fcntl(errors_, F_SETFL, O_NONBLOCK);
        for (ssize_t n; (n = read(errors_, bytes, sizeof bytes)) > 0;) said_.append(bytes, std::size_t(n));
    }
    const int status = end();
    if (by_itself) what += status < 0 ? text(", by signal ", -status) : text(", with status ", status);
    const std::string last = last_line(said_);
    throw PeerError(text("the peer ", python_, ' ', what, last.empty() ? "" : "; it said: ", last));
}

int Peer::end() {
    int status = 0;
    if (child_ > 0) {
        kill(-child_, SIGKILL);
        while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
        }
    }
    child_ = -1;
    for (int* file : {&line_, &errors_}) {
        if (*file >= 0) close(*file);
        *file = -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

SharedFile::SharedFile(std::string_view bytes) : file_(memfd_create("bench", 0)) {
    if (file_ < 0) throw BadInput(system_error("memfd_create"));
    for (std::size_t done = 0; done < bytes.size();) {
        ssize_t n = write(file_, bytes.data() + done, bytes.size() - done);
        if (n < 0) {
            if (errno == EINTR) continue;
            close(file_);
            throw BadInput(system_error("a file in memory cannot be written"));
        }
        done += std::size_t(n);
    }
}

SharedFile::~SharedFile() { close(file_); }

std::string SharedFile::read() const {
    std::string bytes;
    char part[1 << 16];
    for (ssize_t n; (n = pread(file_, part, sizeof part, off_t(bytes.size()))) > 0;)
        bytes.append(part, std::size_t(n));
    return bytes;
}

std::vector<std::string> pythons() {
    std::vector<std::string> all;
    if (const char* folder = std::getenv("VIRTUAL_ENV"); folder != nullptr && *folder != 0)
        all.push_back(std::string(folder) + "/bin/python3");
    all.push_back("python3");
    return all;
}

}  // namespace masquerade
