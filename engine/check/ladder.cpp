// SPDX-License-Identifier: MIT
#include "engine/check/ladder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/tensor/copy.h"
#include "engine/tensor/numbers.h"
#include "engine/tensor/runtime.h"

namespace masquerade::ladder {
std::vector<Sizes> boundary_sizes() {
    std::vector<Sizes> all;
    for (int n : {1, 2, 31, 32, 33, 63, 65, 127, 129, 1000}) {
        all.push_back({n, 33, 5});
        all.push_back({3, n, 4});
        all.push_back({5, 31, n});
    }
    all.insert(all.end(), {{1, 1, 1}, {257, 65, 64}});
    return all;
}

std::vector<Sizes> far_sizes() { return {{2571, 5, 3}, {3, 2571, 4}, {5, 3, 2571}}; }

Draw by_index(const std::function<double(int, Sequence&)>& number) {
    return [number](std::vector<double>& numbers, Sequence& random) {
        for (std::size_t i = 0; i < numbers.size(); i++) numbers[i] = number(int(i), random);
    };
}

Draw each(const std::function<double(Sequence&)>& number) {
    return by_index([number](int, Sequence& random) { return number(random); });
}

Draw uniform(double low, double high) {
    return each([=](Sequence& random) { return low + (high - low) * random.uniform_double(); });
}

Operand& Case::add(const std::string& name, Role role, const Shape& shape, Kind kind) {
    Operand& o = operands.emplace_back(usual);
    o.name = name;
    o.path = "path.of." + name;
    o.role = role;
    o.shape = shape;
    o.kind = kind;
    // Cotangents vary and are not centred at 0. With a constant cotangent, errors in softmax and layernorm would not be
    // found, because the sum of the outputs of a row is constant.
    o.draw = role == Role::output ? uniform(-1, 1.7) : uniform(-1.5, 1.5);
    return o;
}

std::size_t Case::find(const std::string& name) const {
    for (std::size_t i = 0; i < operands.size(); i++)
        if (operands[i].name == name) return i;
    throw Error("the table names no operand ", name);
}

bool Case::has_storage() const {
    return std::any_of(operands.begin(), operands.end(), [](const Operand& o) { return o.kind == Kind::storage; });
}

Case Case::restricted(int begin, int end) const {
    Case part = *this;
    part.rows = end - begin;
    for (Operand& o : part.operands) {
        if (!o.of_row) continue;
        std::int64_t columns = o.shape.rank == 1 ? 1 : o.shape.columns();
        o.shape.size[0] = end - begin;
        o.numbers.assign(o.numbers.begin() + begin * columns, o.numbers.begin() + end * columns);
    }
    for (Indices& i : part.indices)
        if (i.of_row) i.numbers.assign(i.numbers.begin() + begin, i.numbers.begin() + end);
    return part;
}

Case prepared(const Op& op, Sizes sizes) {
    Case c = op.make(sizes);
    c.rows = sizes.rows;
    for (Operand& o : c.operands) {
        Sequence random(hash_of(op.name), o.name, std::uint32_t(sizes.rows * 1009 + sizes.columns),
                        std::uint32_t(sizes.other));
        o.numbers.resize(o.shape.count());
        o.draw(o.numbers, random);
    }
    return c;
}

Guarded::Guarded(const Shape& shape, DType dtype, const char* path, Device device)
    : memory_(std::size_t(shape.count()) * bytes_of(dtype) + 2 * guard),
      view_{memory_.at(guard), dtype, device, shape, path} {
    std::memset(memory_.data(), 0xa5, memory_.bytes());
    fill_with_nan();
    if (lies_apart(device)) there_ = Buffer(memory_.bytes(), device);
}

View Guarded::there() const {
    View v = view_;
    if (there_.data()) v.data = there_.at(guard);
    return v;
}

void Guarded::send() const {
    if (there_.data()) copy_bytes(memory_.data(), Device::cpu, there_.data(), there_.device(), memory_.bytes());
}

void Guarded::fetch() const {
    if (there_.data()) copy_bytes(there_.data(), there_.device(), memory_.data(), Device::cpu, memory_.bytes());
}

bool lies_apart(Device device) { return device == Device::cuda && has_cuda_runtime(); }

void Guarded::fill(const std::vector<double>& numbers) const {
    for (std::size_t i = 0; i < numbers.size(); i++) set_number(view_, std::int64_t(i), numbers[i]);
}

void Guarded::fill_with_nan() const { std::memset(view_.data, 0xff, view_.bytes()); }

bool Guarded::guards_intact() const {
    const char* all = memory_.at(0);
    auto intact = [](char c) { return c == char(0xa5); };
    return std::all_of(all, all + guard, intact) &&
           std::all_of(all + guard + view_.bytes(), all + 2 * guard + view_.bytes(), intact);
}

bool Guarded::has_nan() const {
    for (std::int64_t i = 0; i < view_.count(); i++) {
        complex x = number(view_, i);
        if (std::isnan(x.real()) || std::isnan(x.imag())) return true;
    }
    return false;
}

std::string Guarded::bytes() const { return std::string(static_cast<const char*>(view_.data), view_.bytes()); }

std::string at(Sizes s) { return text(" at ", s.rows, "x", s.columns, "x", s.other); }

complex number(const View& view, std::int64_t i) {
    return with_numbers(view, [&](auto* numbers) {
        using T = std::remove_pointer_t<decltype(numbers)>;
        if constexpr (std::is_same_v<T, complex>)
            return numbers[i];
        else
            return complex(double(numbers[i]));
    });
}

void set_number(const View& view, std::int64_t i, complex x) {
    with_numbers(view, [&](auto* numbers) {
        using T = std::remove_pointer_t<decltype(numbers)>;
        if constexpr (std::is_same_v<T, complex>)
            numbers[i] = x;
        else if constexpr (std::is_same_v<T, double>)
            numbers[i] = x.real();
        else
            numbers[i] = T(float(x.real()));
    });
}

double rounded(double x, DType type) {
    if (type == DType::f32) return double(float(x));
    return type == DType::bf16 ? double(float(bfloat16(float(x)))) : x;
}

Call::Call(const Case& c, DType type, DType like, Device device)
    : op(c), unwanted_(c.operands.size(), false), added_(c.operands.size(), false) {
    for (const Operand& o : op.operands) {
        bool storage = o.kind == Kind::storage;
        DType value_type = storage ? type : arithmetic_of(type), rounded_to = storage ? like : arithmetic_of(like);
        std::vector<double> numbers = o.numbers;
        for (double& x : numbers) x = rounded(x, rounded_to);
        values.emplace_back(o.shape, value_type, o.path.c_str(), device);
        if (!o.written() || o.role == Role::updated) values.back().fill(numbers);
        bool differentiated = op.backward && (o.role == Role::input || o.role == Role::output);
        DType gradient_type = o.weight ? arithmetic_of(type) : value_type;
        gradients.push_back(differentiated ? std::make_unique<Guarded>(o.shape, gradient_type, o.path.c_str(), device)
                                           : nullptr);
        if (differentiated && o.role == Role::output) gradients.back()->fill(numbers);
    }
    for (const Indices& i : op.indices) {
        if (!lies_apart(device)) break;
        const std::size_t bytes = i.numbers.size() * sizeof(int);
        lists_.emplace_back(bytes + 1, device);
        copy_bytes(i.numbers.data(), Device::cpu, lists_.back().data(), device, bytes);
    }
}

void Call::run(const std::function<void(const Call&)>& ops) const {
    auto each_tensor = [&](void (Guarded::*f)() const) {
        for (const Guarded& value : values) (value.*f)();
        for (const auto& gradient : gradients)
            if (gradient) (*gradient.*f)();
    };
    each_tensor(&Guarded::send);
    ops(*this);
    each_tensor(&Guarded::fetch);
}

bool Call::has(const std::string& name) const {
    return std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& o) { return o.name == name; });
}

RowNames Call::rows() const {
    for (const Indices& i : op.indices)
        if (i.name == "document") return {ints("document"), ints("position")};
    return {};
}

View Call::operator()(const std::string& name) const {
    asked.insert(name);
    return values[op.find(name)].there();
}

View Call::d(const std::string& name) const {
    asked.insert("d" + name);
    return gradients[op.find(name)]->there();
}

Grad Call::grad(const std::string& name) const {
    asked.insert("d" + name);
    const std::size_t i = op.find(name);
    return unwanted_[i] ? Grad{} : Grad{gradients[i]->there(), added_[i]};
}

Ints Call::ints(const std::string& name) const {
    asked.insert(name);
    for (std::size_t i = 0; i < op.indices.size(); i++) {
        if (op.indices[i].name != name) continue;
        const std::vector<int>& numbers = op.indices[i].numbers;
        const void* data = lists_.empty() ? numbers.data() : lists_[i].data();
        return Ints{static_cast<const int*>(data), std::int64_t(numbers.size()), numbers.data()};
    }
    throw Error("the table names no indices ", name);
}

Errors& Findings::of(const std::string& tensor) {
    for (auto& [name, errors] : tensors)
        if (name == tensor) return errors;
    tensors.emplace_back(tensor, Errors());
    return tensors.back().second;
}

void Findings::expect(bool good, const std::string& tensor, const std::string& kind, const std::string& details) {
    checks++;
    if (good || !kinds_.insert(tensor + ":" + kind).second) return;
    faults.push_back(text(op, " ", tensor, ": ", kind, " ", details));
}

void Findings::attempt(Sizes sizes, const std::function<void()>& check) {
    try {
        check();
    } catch (const std::exception& e) {
        expect(false, "call", "throws", text("\"", e.what(), "\"", at(sizes)));
    }
}

}  // namespace masquerade::ladder
