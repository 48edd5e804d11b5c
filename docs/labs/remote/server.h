// SPDX-License-Identifier: MIT
// The side of the student's process. The signature of a function decides how its arguments are read and sent back. A
// pointer is an array, whose length the judge sends. Arrays and references that are not const are sent back.
#pragma once
#include <sys/mman.h>
#include <sys/prctl.h>

#include <memory>
#include <tuple>

#include "docs/labs/remote/wire.h"
#include "engine/base/error.h"

namespace remote {

template <class P>
struct Parameter {  // a parameter that is passed by value
    std::decay_t<P> x{};
    void read(Message& m) { take(m, x); }
    P value() { return x; }
    void back(Message&) {}
};
template <class T>
struct Parameter<T&> {
    std::decay_t<T> x{};
    void read(Message& m) { take(m, x); }
    T& value() { return x; }
    void back(Message& m) {
        if constexpr (!std::is_const_v<T>) put(m, x);
    }
};
template <class T>
struct Parameter<T*> {
    using Number = std::remove_const_t<T>;
    std::vector<Number> here;
    bool large = false;
    Number* first = nullptr;
    void read(Message& m) {
        std::uint64_t before, place = 0;
        take(m, large), take(m, before);
        if (large)
            take(m, place), first = reinterpret_cast<Number*>(arena + place) + before;
        else
            take(m, here), first = here.data() + before;
    }
    T* value() { return first; }
    void back(Message& m) {
        if constexpr (!std::is_const_v<T>)
            if (!large) put(m, here);
    }
};

using Service = std::function<void(Message&, Message&)>;
inline std::map<std::string, Service>& services() {
    static std::map<std::string, Service> all;
    return all;
}
inline std::function<void(Message&)> also;  // appends additional data to each result; may be empty

struct Served {
    template <class R, class... P>
    Served(const char* name, R (*f)(P...)) {
        services()[name] = [f](Message& in, Message& out) {
            std::tuple<Parameter<P>...> all;
            std::apply([&](auto&... each) { (each.read(in), ...); }, all);
            std::apply(
                [&](auto&... each) {
                    if constexpr (std::is_void_v<R>)
                        f(each.value()...);
                    else
                        put(out, f(each.value()...));
                    (each.back(out), ...);
                },
                all);
            if (also) also(out);
        };
    }
};

// Answers calls until the judge's process has ended.
inline int serve() {
    arena = static_cast<char*>(mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena_of_server, 0));
    services()[""] = [](Message&, Message&) {};
    for (;;) {
        Message out;
        out.kind = Kind::result;
        try {
            Message in = receive(socket_of_server);
            std::string name;
            take(in, name);
            try {
                services().at(name)(in, out);
            } catch (const Gone&) {
                return 0;
            } catch (const std::exception& error) {
                out = {};
                out.kind = dynamic_cast<const masquerade::Error*>(&error) ? Kind::engine_error : Kind::error;
                put(out, std::string(error.what()));
            } catch (...) {
                out = {};
                out.kind = Kind::error, put(out, std::string("it is no std::exception"));
            }
            send(socket_of_server, out);
        } catch (const Gone&) {
            return 0;
        }
    }
}

}  // namespace remote

// Registers a function, given by its result type, name and parameters. The further arguments of the macro, the
// arguments of the stub's call, are used only in the judge.
#define REMOTE(result, name, parameters, ...) \
    const remote::Served served_##name(#name, static_cast<result(*) parameters>(name));
