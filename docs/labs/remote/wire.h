// SPDX-License-Identifier: MIT
// Calls a student's functions in another process. The judge is the check of a lab, linked with stubs; a stub puts its
// arguments into a message and waits for the result. The server is the student's file, linked with a loop that reads
// the messages and calls the functions.
// docs/labs/NN/remote.cpp is compiled for the judge and for the server, and has one line for each function. See judge.h
// and server.h.
#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace remote {

constexpr int socket_of_server = 3, arena_of_server = 4;  // file descriptors in the server
constexpr std::size_t arena_bytes = 64 << 20;             // memory that both processes map, for large arrays
constexpr std::size_t arena_from = 64 << 10;              // an array with at least this many bytes is large
constexpr std::size_t longest = 64 << 20;                 // largest size of a message, in bytes
inline char* arena = nullptr;

// The kinds of messages. callback: the server calls an argument that is a function. error: the called function threw an
// exception. engine_error: it threw masquerade::Error, which the judge throws again.
enum class Kind : std::uint8_t { call, result, error, engine_error, callback };

// Exception: the other process has sent a message that violates the protocol.
struct Broken : std::runtime_error {
    using std::runtime_error::runtime_error;
};
// Exception: the other process has ended.
struct Gone : std::runtime_error {
    Gone() : std::runtime_error("the other process has ended") {}
};

using Callback = std::function<void(struct Message& arguments, struct Message& result)>;

struct Message {
    Kind kind = Kind::call;
    std::string bytes;
    std::size_t at = 0;          // offset in `bytes` of the next value to take
    std::size_t arena_used = 0;  // in the judge: bytes of the arena that the large arrays of this call occupy
    std::vector<Callback>* callbacks = nullptr;  // in the judge: the arguments that are functions

    void put_bytes(const void* from, std::size_t n) { bytes.append(static_cast<const char*>(from), n); }
    const char* take_bytes(std::size_t n) {
        if (n > bytes.size() - at) throw Broken("a message is too short");
        at += n;
        return bytes.data() + (at - n);
    }
};

inline std::size_t some_of(ssize_t (*by)(int, void*, std::size_t), int file, void* bytes, std::size_t most) {
    for (;;) {
        const ssize_t now = by(file, bytes, most);
        if (now > 0) return std::size_t(now);
        if (now == 0 || errno != EINTR) throw Gone();
    }
}
inline void all_of(ssize_t (*by)(int, void*, std::size_t), int file, char* bytes, std::size_t n) {
    for (std::size_t done = 0; done < n;) done += some_of(by, file, bytes + done, n - done);
}
// Sends the length and the kind of a message, then its bytes, in one call if possible: each call may wake up the other
// process.
inline void send(int file, const Message& m) {
    const std::uint64_t head[2] = {m.bytes.size(), std::uint64_t(m.kind)};
    std::string all(reinterpret_cast<const char*>(head), sizeof head);
    all += m.bytes;
    all_of([](int f, void* p, std::size_t n) { return write(f, p, n); }, file, all.data(), all.size());
}
// Receives a message. The first call reads all bytes that have arrived: they belong to this message, because the other
// process sends the next one only after an answer.
inline Message receive(int file) {
    std::uint64_t head[2];
    char first[4096];
    std::size_t n = 0;
    while (n < sizeof head) n += some_of(read, file, first + n, sizeof first - n);
    std::memcpy(head, first, sizeof head);
    n -= sizeof head;
    if (head[0] > longest) throw Broken("a message is too long");
    if (head[0] < n) throw Broken("a message is longer than it says");
    Message m;
    m.kind = Kind(head[1]), m.bytes.assign(first + sizeof head, n), m.bytes.resize(head[0]);
    all_of(read, file, m.bytes.data() + n, m.bytes.size() - n);
    return m;
}

// ---- values: numbers, strings, vectors, maps, pairs, and structs, for which fields(f, x) calls f with all members.

template <class T>
constexpr bool is_plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
constexpr bool is_bulk = is_plain<T> && !std::is_same_v<T, bool>;

template <class T>
void put(Message& m, const T& x);
template <class T>
void take(Message& m, T& x);

inline void put_value(Message& m, const std::string& s) {
    put(m, std::uint64_t(s.size())), m.put_bytes(s.data(), s.size());
}
inline void take_value(Message& m, std::string& s) {
    std::uint64_t n;
    take(m, n);
    s.assign(m.take_bytes(n), n);
}
template <class T>
void put_value(Message& m, const std::vector<T>& all) {
    put(m, std::uint64_t(all.size()));
    if constexpr (is_bulk<T>)
        m.put_bytes(all.data(), all.size() * sizeof(T));
    else
        for (const T& each : all) put(m, each);
}
template <class T>
void take_value(Message& m, std::vector<T>& all) {
    std::uint64_t n;
    take(m, n);
    if (n > (m.bytes.size() - m.at) / (is_bulk<T> ? sizeof(T) : 1)) throw Broken("a list is longer than its message");
    all.clear();
    if constexpr (is_bulk<T>) {
        all.resize(n);
        const char* from = m.take_bytes(n * sizeof(T));
        if (n > 0) std::memcpy(all.data(), from, n * sizeof(T));
    } else
        for (std::uint64_t i = 0; i < n; i++) {
            T each{};
            take(m, each), all.push_back(std::move(each));
        }
}
template <class K, class V>
void put_value(Message& m, const std::map<K, V>& all) {
    put(m, std::vector<std::pair<K, V>>(all.begin(), all.end()));
}
template <class K, class V>
void take_value(Message& m, std::map<K, V>& all) {
    std::vector<std::pair<K, V>> list;
    take(m, list);
    all = {list.begin(), list.end()};
}
template <class A, class B>
void put_value(Message& m, const std::pair<A, B>& x) {
    put(m, x.first), put(m, x.second);
}
template <class A, class B>
void take_value(Message& m, std::pair<A, B>& x) {
    take(m, x.first), take(m, x.second);
}

// An argument that is a function is sent as its number. If the server calls it, the server sends a message with the
// number and the arguments, and waits until the judge has run the function and sent its result. The first results of a
// function without arguments, such as a source of random numbers, are sent ahead, which saves most of these messages.
constexpr int results_ahead = 12;
template <class R, class... Arguments>
void put_value(Message& m, const std::function<R(Arguments...)>& f) {
    put(m, std::uint64_t(m.callbacks->size()));
    if constexpr (sizeof...(Arguments) == 0)
        for (int i = 0; i < results_ahead; i++) put(m, f());
    m.callbacks->push_back([f](Message& in, Message& out) {
        std::tuple<std::decay_t<Arguments>...> arguments;
        std::apply([&](auto&... each) { (take(in, each), ...); }, arguments);
        put(out, std::apply(f, arguments));
    });
}
[[noreturn]] void rethrow(Message& error);
template <class R, class... Arguments>
void take_value(Message& m, std::function<R(Arguments...)>& f) {
    std::uint64_t number;
    take(m, number);
    // Copies of f share the results that were sent ahead.
    const auto ahead = std::make_shared<std::deque<R>>(sizeof...(Arguments) == 0 ? results_ahead : 0);
    for (R& each : *ahead) take(m, each);
    f = [number, ahead](const std::decay_t<Arguments>&... arguments) {
        if (!ahead->empty()) {
            R first = std::move(ahead->front());
            ahead->pop_front();
            return first;
        }
        Message call;
        call.kind = Kind::callback;
        put(call, number), (put(call, arguments), ...);
        send(socket_of_server, call);
        Message said = receive(socket_of_server);
        if (said.kind != Kind::result) rethrow(said);
        R result{};
        take(said, result);
        return result;
    };
}
inline void rethrow(Message& error) {
    std::string what;
    take(error, what);
    throw std::runtime_error(what);
}

struct Nothing {
    template <class... T>
    void operator()(T&...) const {}
};
template <class T>
auto put_value(Message& m, const T& x) -> decltype(fields(Nothing{}, const_cast<T&>(x))) {
    fields([&](auto&... each) { (put(m, each), ...); }, const_cast<T&>(x));
}
template <class T>
auto take_value(Message& m, T& x) -> decltype(fields(Nothing{}, x)) {
    fields([&](auto&... each) { (take(m, each), ...); }, x);
}
template <class T>
void put(Message& m, const T& x) {
    if constexpr (is_plain<T>)
        m.put_bytes(&x, sizeof x);
    else
        put_value(m, x);
}
template <class T>
void take(Message& m, T& x) {
    if constexpr (std::is_same_v<T, bool>)
        x = *m.take_bytes(1) != 0;
    else if constexpr (is_plain<T>)
        std::memcpy(&x, m.take_bytes(sizeof x), sizeof x);
    else
        take_value(m, x);
}

}  // namespace remote
