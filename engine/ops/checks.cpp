// SPDX-License-Identifier: MIT
// The checks of every call of an op: all tensors are on one device, and have the shapes and types that ops.h states.
#include <algorithm>
#include <cctype>
#include <limits>
#include <sstream>

#include "engine/ops/check.h"
#include "engine/ops/table.h"

namespace masquerade {
namespace {

// A size as ops.h states it: the product of digits and letters, such as "2Z" or "HD". ("12" would be 1 times 2.)
struct Size {
    std::int64_t number = 1;
    std::string letters;
    explicit Size(const std::string& text) {
        for (char c : text)
            if (std::isdigit(c))
                number *= c - '0';
            else
                letters += c;
    }
};

// A tensor or list as ops.h states it. For example, "w?(V,C)A" states that w may be absent, and that it has the sizes
// "V" and "C" and the type 'A', the type of the arithmetic (f32 if the activations are bf16).
struct Stated {
    std::string name;
    bool optional = false;
    std::vector<Size> sizes;  // empty for (*), any shape
    char type = 'S';          // 'S', 'A', or 'E' for either
};

// The shapes that ops.h states for an op, and the parameters of the op. Both are prepared only once, so that the check
// of each call is fast.
struct Shapes {
    struct Parameter {
        std::string name;
        bool tensor, gradient;
        // For an int parameter, the letter that stands for its value in the shapes: the initial of its name, such as
        // 'H' for `heads`. For any other parameter, 0.
        char letter;
        int stated;  // index in `all` of what ops.h states for this parameter; -1 if it states nothing
    };
    std::string base, text;
    std::vector<Stated> all;
    std::vector<Parameter> parameters;
    std::vector<int> order;  // indices of the parameters for which ops.h states something, in the order of `all`

    // Parses the string of an op. An op with an empty string, such as a backward, has the string of the op before it.
    explicit Shapes(int op) : base(op_names[op]), text(*op_shapes[op] || op == 0 ? op_shapes[op] : op_shapes[op - 1]) {
        base.resize(std::min(base.size(), base.find("_forward")));
        std::istringstream in(text);
        for (std::string group; std::getline(in, group, ')');) {
            Stated one;
            if (std::isalpha(in.peek())) in >> one.type;
            const std::size_t open = group.find('(');
            std::istringstream names(group.substr(0, open)), sizes(group.substr(open + 1));
            for (std::string size; std::getline(sizes, size, ',');)
                if (size != "*") one.sizes.emplace_back(size);
            while (names >> one.name) {
                one.optional = one.name.back() == '?';
                if (one.optional) one.name.pop_back();
                all.push_back(one);
            }
        }
        std::istringstream list(op_parameters[op]);
        for (std::string type; std::getline(list, type, ',');) {
            const std::string name(name_of_parameter(op_parameters[op], parameters.size()));
            // If ops.h does not state a gradient dx itself, dx has the shape and type of x.
            const int own = find(name), stated = own < 0 && name[0] == 'd' ? find(name.substr(1)) : own;
            parameters.push_back({name, type.find("View") != type.npos, type.find("Grad") != type.npos,
                                  char(type.find("int ") != type.npos ? std::toupper(name[0]) : 0), stated});
        }
        for (int k = 0; k < int(all.size()); k++)
            for (int i = 0; i < int(parameters.size()); i++)
                if (parameters[i].stated == k) order.push_back(i);
    }
    int find(const std::string& name) const {
        for (std::size_t i = 0; i < all.size(); i++)
            if (all[i].name == name) return int(i);
        return -1;
    }
};

const Shapes& shapes_of(OpNumber op) {
    static const std::vector<Shapes> all = [] {
        std::vector<Shapes> made;
        for (int i = 0; i < op_count; i++) made.emplace_back(i);
        return made;
    }();
    return all[int(op)];
}

// Finds the values of the letters and types in the shapes of an op from the arguments of a call. For example, if ops.h
// states x(N,C) and x is (8,128), N is 8 and C is 128. The constructor throws Error if an argument contradicts an
// earlier one.
class Call {
  public:
    Call(OpNumber op, const Argument* arguments) : shapes_(shapes_of(op)) {
        std::fill_n(letters_, 26, unknown);
        for (std::size_t i = 0; i < shapes_.parameters.size(); i++)
            if (const char letter = shapes_.parameters[i].letter; letter && arguments[i].number)
                letters_[letter - 'A'] = *arguments[i].number;
        for (int i : shapes_.order)
            if (!fits(shapes_.parameters[i], arguments[i]))
                throw Error(op_names[int(op)], ": ", shapes_.parameters[i].name, " does not fit:", seen_in(arguments),
                            "; expected ", shapes_.text);
    }
    Output output(const Shapes::Parameter& p) const {
        const Stated& stated = shapes_.all[p.stated];
        Shape shape = stated.sizes.empty() ? *any_ : Shape();
        for (const Size& size : stated.sizes) shape.size[shape.rank++] = product(size).first;
        return {p.name.c_str(), shape, stated.type == 'S' && storage_ ? *storage_ : *arithmetic_};
    }

  private:
    static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();

    bool fits(const Shapes::Parameter& p, const Argument& a) {
        const Stated& stated = shapes_.all[p.stated];
        if (a.number) return fits(stated.sizes[0], *a.number);
        if (a.count == 0) return true;  // an output whose shape is not known yet (outputs_of())
        const View& view = *a.views[0];
        if (!view && (stated.optional || p.gradient)) return true;  // absent, which is allowed for gradients and "?"
        const int rank = int(stated.sizes.size());
        if (rank == 0 && !any_) any_ = view.shape;
        bool good = rank == 0 ? view.shape == *any_ : view.shape.rank == rank;
        for (int i = 0; good && i < rank; i++) good = fits(stated.sizes[i], view.shape[i]);
        const DType a_type = arithmetic_of(view.dtype);
        const bool stored = stated.type == 'S' || (stated.type == 'E' && view.dtype != a_type);
        if (!arithmetic_) arithmetic_ = a_type;
        if (stored && !storage_) storage_ = view.dtype;
        return good && a_type == arithmetic_ && view.dtype == (stored ? storage_ : arithmetic_);
    }
    // Returns the product of all known factors of a size, and the letter whose value is not known yet, or 0 if all are
    // known.
    std::pair<std::int64_t, char> product(const Size& size) const {
        std::pair<std::int64_t, char> all(size.number, 0);
        for (char c : size.letters)
            if (letters_[c - 'A'] == unknown)
                all.second = c;
            else
                all.first *= letters_[c - 'A'];
        return all;
    }
    bool fits(const Size& size, std::int64_t found) {
        const auto [known, letter] = product(size);
        const std::int64_t value = !letter ? 1 : known == 0 ? 0 : found / known;
        if (letter) letters_[letter - 'A'] = value;
        return known * value == found;
    }
    // Returns the arguments as text: " x head is (2,3) f32, ids of 4".
    std::string seen_in(const Argument* arguments) const {
        std::string all;
        for (std::size_t i = 0; i < shapes_.parameters.size(); i++) {
            const Argument& a = arguments[i];
            const char* name = shapes_.parameters[i].name.c_str();
            if (a.number) all += text(all.empty() ? " " : ", ", name, " of ", *a.number);
            if (a.count > 0 && *a.views[0]) all += text(all.empty() ? " " : ", ", seen(name, *a.views[0]));
        }
        return all;
    }

    const Shapes& shapes_;
    std::int64_t letters_[26];  // the value of each letter A to Z; `unknown` until an argument gives it
    std::optional<DType> storage_, arithmetic_;
    std::optional<Shape> any_;
};

}  // namespace

Device device_of(OpNumber op, const Argument* arguments) {
    const View* found = nullptr;  // the first tensor with data; if no tensor has data, the first tensor
    for (std::size_t i = 0; i < shapes_of(op).parameters.size(); i++)
        for (int v = 0; v < arguments[i].count; v++) {
            const View& view = *arguments[i].views[v];
            if (!found || (view && !*found)) found = &view;
            if (view && view.device != found->device)
                throw Error(op_names[int(op)], ": ", found->path, ' ', found->shape, " is on ", name_of(found->device),
                            " but ", view.path, ' ', view.shape, " is on ", name_of(view.device),
                            "; expected all tensors on one device");
        }
    return found ? found->device : Device::cpu;
}

const char* base_name(OpNumber op) { return shapes_of(op).base.c_str(); }

void check_shapes(OpNumber op, const Argument* arguments) { Call(op, arguments); }

std::vector<Output> outputs_of(OpNumber op, const std::vector<View>& inputs, const std::vector<Argument>& others) {
    const auto& parameters = shapes_of(op).parameters;
    std::vector<Argument> arguments;
    std::vector<const Shapes::Parameter*> missing;
    arguments.reserve(parameters.size());
    std::size_t tensor = 0, other = 0;
    for (const auto& p : parameters) {
        const bool output = p.tensor && tensor >= inputs.size();
        if (output) missing.push_back(&p);
        arguments.push_back(output ? Argument() : p.tensor ? argument_of(inputs[tensor++]) : others[other++]);
    }
    const Call call(op, arguments.data());
    std::vector<Output> outputs;
    for (const Shapes::Parameter* p : missing) outputs.push_back(call.output(*p));
    return outputs;
}

}  // namespace masquerade
