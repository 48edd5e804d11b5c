// SPDX-License-Identifier: MIT
// Tests that every op checks the devices of all its tensors: it refuses a call in which one tensor, whichever it is, is
// on another device.
#include <doctest/doctest.h>

#include <deque>

#include "engine/ops/ops.h"

using namespace masquerade;

namespace {

// Makes the arguments of calls that must be refused before they compute: tensors of one number, with the paths "tensor
// 0", "tensor 1" and so on.
class Arguments {
  public:
    // All tensors are on `device`, except tensor number `other`, which is `apart`.
    Arguments(Device device, int other, View apart) : device_(device), other_(other), apart_(apart) {}

    template <class T>
    T next() {
        if constexpr (std::is_same_v<T, View>)
            return tensor();
        else if constexpr (std::is_same_v<T, Grad>)
            return {tensor()};
        else if constexpr (std::is_same_v<T, Views>)
            return {tensor(), tensor()};
        else if constexpr (std::is_same_v<T, Grads>)
            return {{tensor()}, {tensor()}};
        else if constexpr (std::is_same_v<T, const SegmentGraph&>)
            return graph_;
        else
            return T();
    }
    int tensors() const { return tensors_; }

  private:
    View tensor() {
        paths_.push_back(text("tensor ", tensors_));
        View view = tensors_++ == other_ ? apart_ : View{&number_, DType::f32, device_, {1}};
        view.path = paths_.back().c_str();
        return view;
    }
    Device device_;
    int other_, tensors_ = 0;
    View apart_;
    SegmentGraph graph_;
    float number_ = 0;
    std::deque<std::string> paths_;
};

template <class Op, class... T>
void call(Arguments& a, std::tuple<T...>*) {
    typename Op::InOrder{a.next<T>()...};
}
template <class Op>
void call(Arguments& a) {
    call<Op>(a, static_cast<typename Op::Parameters*>(nullptr));
}

// call(arguments) calls the op. check_devices() is not a template, because it would take half a minute to compile it
// for every op.
void check_devices(const std::string& op, void (*call)(Arguments&)) {
    CAPTURE(op);
    const auto error_of = [&](Arguments& a) -> std::string {
        try {
            call(a);
        } catch (const Error& error) {
            return error.what();
        }
        return "none";
    };
    const auto said = [&](Device device, int other, const View& apart) {
        Arguments a(device, other, apart);
        return error_of(a);
    };
    float number = 0;
    Arguments all(Device::cuda, -1, {});
    CHECK(error_of(all).find("no CUDA library is in use") == 0);
    REQUIRE(all.tensors() > 1);
    for (int i = 0; i < all.tensors(); i++) {
        const std::string error = said(Device::cpu, i, {&number, DType::f32, Device::cuda, {1}});
        CAPTURE(error);
        CHECK(error.find(text(op, ": tensor ")) == 0);
        CHECK(error.find(text("tensor ", i, " (1) is on cuda")) != std::string::npos);
        CHECK(error.find(text("tensor ", i == 0 ? 1 : 0, " (1) is on cpu")) != std::string::npos);
        CHECK(said(Device::cuda, i, {}).find("no CUDA library is in use") == 0);  // an absent tensor is on no device
    }
}

}  // namespace

TEST_CASE("devices: every op wants all its tensors on one device") {
    const OpTable* before = set_cuda_ops(nullptr);
#define OP(name, parameters, ...) check_devices(#name, call<decltype(name)>);
#include "engine/ops/ops.h"
#undef OP
    set_cuda_ops(before);
}
