// SPDX-License-Identifier: MIT
// The side of the check: the stubs, and the start of the student's process. If the check runs as several processes,
// each of them starts one student's process, at its first call. Data from the student's process may be hostile, so the
// stubs check that it has the expected lengths.
#pragma once
#include "docs/labs/check.h"
#include "docs/labs/remote/wire.h"
#include "engine/base/error.h"

namespace remote {

// The student's process.
int student();                // starts the process if necessary; returns the socket for messages to it
double seconds_of_student();  // its processor time
double seconds_here();        // the processor time of this process
// Call this when the student's process has ended. Ends this process by the signal that ended the student's process, or
// by SIGABRT.
[[noreturn]] void end_as_student();

// An array of n numbers as an argument. If `beside` is not zero (docs/labs/check.h), the numbers just before and behind
// the array are sent with it, because the check reads them, too.
template <class T>
struct Many {
    T* first;
    std::size_t n;
    mutable const char* place;  // the copy in the arena; null if the array is sent in the message
    std::size_t count() const { return n + beside.before + beside.behind; }
};
template <class T, class N>
Many<T> many(T* first, N n) {
    return {first, std::size_t(n), nullptr};
}
// A reference argument that the function changes, and that is sent back.
template <class T>
struct Both {
    T& x;
};
template <class T>
Both<T> both(T& x) {
    return {x};
}

template <class T>
void put_value(Message& m, const Many<T>& a) {
    const std::size_t bytes = a.count() * sizeof(T);
    const auto* from = a.first - beside.before;
    const bool large = bytes >= arena_from && m.arena_used + bytes <= arena_bytes;
    put(m, large), put(m, std::uint64_t(beside.before));
    if (large) {
        put(m, std::uint64_t(m.arena_used));
        std::memcpy(arena + m.arena_used, from, bytes);
        a.place = arena + m.arena_used, m.arena_used += (bytes + 63) / 64 * 64;
    } else
        put(m, std::uint64_t(a.count())), m.put_bytes(from, bytes);
}
template <class T>
void put_value(Message& m, const Both<T>& a) {
    put(m, a.x);
}
template <class T>
void take_back(Message&, const T&) {}
template <class T>
void take_back(Message& m, const Both<T>& a) {
    take(m, a.x);
}
template <class T>
void take_back(Message& m, const Many<T>& a) {
    if constexpr (!std::is_const_v<T>) {
        std::uint64_t n = a.count();
        if (!a.place) take(m, n);
        if (n != a.count()) throw Broken("an array came back with another length");
        std::memcpy(a.first - beside.before, a.place ? a.place : m.take_bytes(n * sizeof(T)), n * sizeof(T));
    }
}

inline std::function<void(Message&)> also;  // reads additional data at the end of each result; may be empty

template <class R, class... Arguments>
R call(const char* name, const Arguments&... arguments) {
    std::vector<Callback> callbacks;
    Message m;
    m.callbacks = &callbacks;
    put(m, std::string(name));
    const int socket = student();
    const double here = seconds_here(), there = seconds_of_student();
    (put(m, arguments), ...);
    try {
        send(socket, m);
        for (;;) {
            Message said = receive(socket);
            if (said.kind == Kind::callback) {
                Message result;
                try {
                    std::uint64_t number;
                    take(said, number);
                    result.kind = Kind::result;
                    callbacks.at(number)(said, result);
                } catch (const std::runtime_error& error) {
                    result = {};
                    result.kind = Kind::error, put(result, std::string(error.what()));
                }
                send(socket, result);
                continue;
            }
            if (said.kind != Kind::result) {
                std::string what;
                take(said, what);
                if (said.kind == Kind::engine_error) throw masquerade::Error(what);
                throw std::runtime_error(what);
            }
            const auto rest = [&] {
                (take_back(said, arguments), ...);
                if (also) also(said);
                // The processor time of the student's process during this call, minus that of this process.
                elsewhere += seconds_of_student() - there - (seconds_here() - here);
            };
            if constexpr (std::is_void_v<R>)
                return rest();
            else {
                R result{};
                take(said, result);
                rest();
                return result;
            }
        }
    } catch (const Gone&) {
        end_as_student();
    }
}

}  // namespace remote

// Defines the stub of a student's function. After the parameters of the function follow its arguments as they are sent:
// a value, many(array, count), or both(reference).
#define REMOTE(result, name, parameters, ...) \
    result name parameters { return remote::call<result>(#name, __VA_ARGS__); }
