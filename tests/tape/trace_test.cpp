// SPDX-License-Identifier: MIT
// Tests the tools that observe the tape.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/tape/trace.h"
#include "tests/folder.h"
#include "tests/tape/net.h"

using namespace masquerade;

namespace {

std::string message_of(Net& net) {
    try {
        net.step(9);
    } catch (const Error& e) {
        return e.what();
    }
    return "nothing";
}

// Writes infinity into a gradient, after the backward of the op that computed it.
struct Spoil : Observer {
    void after(const Record& r, bool backward) override {
        if (backward && r.path == "layer.1.ffn.gelu") r.in[0]->grad_view().as<float>()[3] = INFINITY;
    }
};

std::string read(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
}

}  // namespace

TEST_CASE("trace: the first number that is not finite is named, with the op that wrote it") {
    Net net;
    NanTrace trace;
    net.tape.observe(&trace);
    CHECK(message_of(net) == "nothing");
    net.stack[1].up_b->view().as<float>()[2] = INFINITY;
    CHECK(message_of(net) ==
          "first number that is not finite: value of layer.1.ffn.up[0,2] = inf, written by linear "
          "layer.1.ffn.up");
    net.stack[1].up_b->view().as<float>()[2] = 0;
    net.table->view().as<float>()[1 * Net::C + 5] = NAN;  // row 1, because the first id is 1
    CHECK(message_of(net).find("value of embedding[0,5] = nan, written by embedding embedding") != std::string::npos);
}

TEST_CASE("trace: a gradient is named, too") {
    Net net;
    Spoil spoil;
    NanTrace trace;
    net.tape.observe(&spoil);
    net.tape.observe(&trace);
    CHECK(message_of(net) ==
          "first number that is not finite: gradient of layer.1.ffn.up[0,3] = inf, written by gelu backward of "
          "layer.1.ffn.gelu");
}

TEST_CASE("trace: a dump holds every value, every gradient and the program, as numpy reads them") {
    TemporaryFolder folder;
    Net net;
    Dump dump(folder.path + "/dump");
    net.tape.observe(&dump);
    Tensor* total = net.loss(9);
    double loss = number_at(total->view(), 0);
    net.parameters.start_gradients();
    net.tape.backward(total);
    dump.write_program(net.tape);
    CHECK(read(folder.path + "/dump/program.txt") == net.tape.program());
    for (const Record& r : net.tape.records()) CHECK(std::filesystem::exists(folder.path + "/dump/" + r.path + ".npy"));

    std::string file = read(folder.path + "/dump/loss.npy");
    REQUIRE(file.size() == 136);
    CHECK(file.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
    CHECK(file.find("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }") == 10);
    double stored;
    std::memcpy(&stored, file.data() + 128, 8);
    CHECK(stored == loss);

    file = read(folder.path + "/dump/table.grad.npy");
    REQUIRE(file.size() == 128 + 8 * Net::V * Net::C);
    for (int i = 0; i < Net::V * Net::C; i++) {
        std::memcpy(&stored, file.data() + 128 + 8 * i, 8);
        CHECK(stored == number_at(net.table->grad_view(), i));
    }
    CHECK_THROWS_AS(Dump("/proc/no/such/folder"), BadInput);
}

TEST_CASE("trace: the clock counts every call") {
    Net net;
    Clock clock;
    net.tape.observe(&clock);
    net.step(9);
    CHECK(clock.shares().at("gelu").calls == 2 * Net::layers);
    CHECK(clock.shares().at("linear").calls == 4 * Net::layers);
    CHECK(clock.shares().at("linear").forward > 0);
    CHECK(clock.shares().at("linear").backward > 0);
}
