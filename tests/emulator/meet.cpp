// SPDX-License-Identifier: MIT
// The calls in which threads wait for each other: the barrier of a block, and the calls of a warp.
#include "tests/emulator/block.h"

namespace masquerade::emulator {

bool same(Place a, Place b) { return a.line == b.line && (a.file == b.file || !std::strcmp(a.file, b.file)); }

std::string at(const char* call, Place place) { return text(call, " at ", place.file, ":", place.line); }

std::string what_of(const Thread& t) {
    std::string who = text("thread ", name_of(t.index));
    if (t.state == Thread::State::finished) return who + " has finished";
    return t.state == Thread::State::waits ? text(who, " waits in ", at(t.call, t.place)) : who + " runs";
}

namespace {

void wait() {
    Thread& self = *running;
    self.state = Thread::State::waits;
    current_block().warps[std::size_t(self.warp)].ready &= ~(1u << self.lane);
    self.fiber->leave(false);
}

}  // namespace

int meet_block(bool vote, const char* call, Place place) {
    Block& b = current_block();
    Thread& self = *running;
    self.call = call, self.place = place, self.mask = 0;
    if (b.finished)
        fail(text("waits in ", at(call, place), ", but ", what_of(*b.finished),
                  "; every thread of a block comes to every barrier"));
    if (b.arrived++ == 0) b.first = &self;
    if (!same(b.first->place, place))
        fail(text("waits in ", at(call, place), ", but ", what_of(*b.first),
                  "; a block comes to one barrier at a time"));
    b.votes += vote;
    if (b.arrived < int(b.threads.size())) {
        wait();
        return int(self.result);
    }
    for (Thread& t : b.threads) {
        t.result = std::uint64_t(b.votes);
        t.state = Thread::State::ready;
        b.warps[std::size_t(t.warp)].ready |= 1u << t.lane;
    }
    b.arrived = b.votes = 0;
    memory::block_met();
    self.fiber->leave(false);  // the host decides which thread of the block continues first
    return int(self.result);
}

namespace {

// Returns the lane of the group from which lane t gets its value: lane t itself if the other lane is outside of the
// group.
int source_of(const Thread& t) {
    const int first = t.lane / t.width * t.width, in = t.lane - first;
    int from = in;
    if (t.kind == Exchange::lane) from = t.argument & (t.width - 1);
    if (t.kind == Exchange::up && in >= t.argument) from = in - t.argument;
    if (t.kind == Exchange::down && in + t.argument < t.width) from = in + t.argument;
    if (t.kind == Exchange::across && (in ^ t.argument) < t.width) from = in ^ t.argument;
    return first + from;
}

}  // namespace

std::uint64_t meet_warp(Exchange kind, unsigned mask, std::uint64_t value, int argument, int width, const char* call,
                        Place place) {
    Thread& self = *running;
    Warp& warp = current_block().warps[std::size_t(self.warp)];
    Thread* lanes = &current_block().threads[std::size_t(self.warp * 32)];
    const unsigned named = mask & warp.exists, own = 1u << self.lane;
    self.call = call, self.place = place, self.kind = kind, self.mask = mask;
    self.value = value, self.argument = argument, self.width = width;
    auto complain = [&](const std::string& why) { fail(text("in ", at(call, place), ": ", why)); };
    auto expect_beside = [&](const Thread& other) {
        if (other.mask == mask && other.kind == kind && same(other.place, place)) return;
        complain(text("the mask 0x", std::hex, mask, " names lane ", std::dec, other.lane, ", but ", what_of(other),
                      " with mask 0x", std::hex, other.mask, ": the lanes have parted"));
    };
    if (!(mask & own)) complain(text("lane ", self.lane, " is not in its own mask 0x", std::hex, mask));
    if (width < 1 || width > 32 || (width & (width - 1)))
        complain(text("the width is ", width, ", expected a power of two up to 32"));
    if (named & warp.finished) {
        const Thread& gone = lanes[__builtin_ctz(named & warp.finished)];
        complain(text("the mask 0x", std::hex, mask, " names lane ", std::dec, gone.lane, ", but ", what_of(gone)));
    }
    if (named & warp.meets) expect_beside(lanes[__builtin_ctz(named & warp.meets)]);
    warp.meets |= own;
    if (named & ~warp.meets) {
        wait();
        return self.result;
    }
    for (unsigned left = named & ~own; left; left &= left - 1) expect_beside(lanes[__builtin_ctz(left)]);
    warp.meets &= ~named;
    const bool exchanges = kind != Exchange::barrier && kind != Exchange::ballot;
    std::uint64_t votes = 0;
    for (unsigned left = named; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (lanes[lane].value) votes |= 1u << lane;
    }
    for (unsigned left = named; left; left &= left - 1) {
        Thread& t = lanes[__builtin_ctz(left)];
        const int from = exchanges ? source_of(t) : t.lane;
        if (!(named >> from & 1u))
            complain(
                text("lane ", t.lane, " reads lane ", from, ", which takes no part (mask 0x", std::hex, mask, ")"));
        t.result = kind == Exchange::ballot ? votes : lanes[from].value;
        t.state = Thread::State::ready;
        warp.ready |= 1u << t.lane;
    }
    if (kind == Exchange::barrier) memory::warp_met(self.warp, named);
    self.fiber->leave(false);
    return self.result;
}

}  // namespace masquerade::emulator
