// SPDX-License-Identifier: MIT
// ./inspect op: runs one op of ops.h in double on numbers of the command line, forward and backward, so that an example
// that a reader computes by hand can be compared with the engine.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include "engine/math/features.h"
#include "engine/nn/functions.h"
#include "engine/ops/block_plan.h"
#include "engine/ops/ops.h"
#include "engine/tensor/buffer.h"
#include "input/number.h"
#include "models/masks/mask.h"
#include "tools/inspect/inspect.h"
#include "tools/say.h"

namespace masquerade {
namespace {

constexpr double nobody_wrote = std::numeric_limits<double>::quiet_NaN();

template <class P>
constexpr bool is_tensor =
    std::is_same_v<P, View> || std::is_same_v<P, Views> || std::is_same_v<P, Grad> || std::is_same_v<P, Grads>;

bool ends_with(std::string_view name, std::string_view end) {
    return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
}

// A tensor in the strings of ops.h: its rank (0: any rank), and whether it may be absent.
struct Stated {
    bool found = false, optional = false;
    int rank = 2;
};
Stated stated_by_ops(OpNumber op, const std::string& name) {
    int line = int(op);
    while (line > 0 && !*op_shapes[line] && *op_names[line] &&
           op_names[line] != std::string(base_name(op)) + "_forward")
        line--;  // an OP line without a string uses the string of the line before
    // The shape follows the last name of the group of names in which this name stands: "x y(N,C) w b?(C)A".
    std::cmatch found;
    if (!std::regex_search(op_shapes[line], found, std::regex("(?:^| )" + name + "([?]?)[^()]*\\(([^)]*)\\)")))
        return {};
    const std::string sizes = found[2];
    return {true, found[1].length() > 0, sizes == "*" ? 0 : int(std::count(sizes.begin(), sizes.end(), ',')) + 1};
}

// The words NAME=VALUE of the command line, and the tensors and lists that are made from them.
class OnNumbers {
  public:
    OnNumbers(const std::string& op, const Strings& words) : op_(op) {
        for (const std::string& word : words) {
            const std::size_t equals = word.find('=');
            if (equals == word.npos || equals == 0)
                throw BadUsage("inspect op ", op, ": ", word, " is not NAME=NUMBERS, such as x=1,2,6");
            words_[word.substr(0, equals)] = word.substr(equals + 1);
        }
        backward = std::any_of(words_.begin(), words_.end(), [](const auto& w) {
            return w.first.size() > 1 && w.first[0] == 'd' &&
                   !std::set<std::string>{"document", "decay", "dead"}.count(w.first);
        });
    }

    bool backward;  // whether a gradient dy is given, so that the backward runs, too

    // Calls an op of ops.h with arguments that are found by the names of its parameters.
    template <OpNumber number, auto slot, class Function>
    void call(const OpCall<number, slot, Function>& op) {
        inputs_.clear();
        others_.clear();
        call(op, typename OpCall<number, slot, Function>::Places{});
    }
    // Prints the tensors that the calls have written, and refuses words that no call has read.
    void print() const {
        for (const auto& [name, text] : words_)
            if (!used_.count(name))
                throw BadUsage("inspect op ", op_, ": the op has no ", name, "; it has ", joined(seen_));
        std::size_t width = 4;
        for (const Held& held : held_) width = std::max(width, held.name.size());
        for (const Held& held : held_) {
            const double* now = held.view.as<double>();
            const std::int64_t count = held.view.count(), columns = held.view.shape.rank == 0 ? 1 : held.view.columns();
            const bool scratch = held.name == "left";  // of log_det
            if (scratch || (held.given && std::equal(held.before.begin(), held.before.end(), now))) continue;
            double largest = 1;
            for (std::int64_t i = 0; i < count; i++) largest = std::max(largest, std::abs(now[i]));
            for (std::int64_t i = 0; i < count; i++) {
                if (i % columns == 0) say("{:<{}}", i ? "" : held.name, width);
                const bool noise = std::abs(now[i]) < 1e-13 * largest;  // rounding errors of numbers near `largest`
                say(" {:>9.4g}", noise ? 0.0 : now[i]);
                if ((i + 1) % columns == 0) say("\n");
            }
        }
    }

  private:
    struct Held {
        std::string name;
        Buffer memory;
        View view;
        std::vector<double> before;  // the numbers that are given
        bool given = false;
    };

    template <class Op, std::size_t... place>
    void call(const Op&, std::index_sequence<place...>) {
        using Parameters = typename Op::Parameters;
        others_expected_ = (0 + ... + int(!is_tensor<std::tuple_element_t<place, Parameters>>));
        typename Op::InOrder{argument(Tag<std::decay_t<std::tuple_element_t<place, Parameters>>>{}, Op::op,
                                      std::string(name_of_parameter(Op::parameters, place)))...};
        for (Held& held : held_)
            if (!held.given && held.view.count() && std::isnan(*held.view.as<double>())) throw missing(held.name);
    }

    template <class T>
    struct Tag {};

    const std::string* word(const std::string& name) {
        if (std::find(seen_.begin(), seen_.end(), name) == seen_.end()) seen_.push_back(name);
        const auto found = words_.find(name);
        if (found == words_.end()) return nullptr;
        used_.insert(name);
        return &found->second;
    }
    // The numbers of a word "1,2/3,4", and the number of its rows.
    std::pair<std::vector<double>, std::int64_t> numbers_in(const std::string& name, const std::string& text) const {
        std::vector<double> numbers;
        std::int64_t rows = 0;
        std::istringstream all(text);
        for (std::string row; std::getline(all, row, '/'); rows++) {
            const std::size_t before = numbers.size();
            std::istringstream one(row);
            for (std::string number; std::getline(one, number, ',');) {
                numbers.emplace_back();
                if (!read_number(std::string_view(number), numbers.back()))
                    throw BadUsage("inspect op ", op_, ": ", name, '=', text, ": ", number, " is not a number");
            }
            if (rows > 0 && (numbers.size() - before) * std::size_t(rows) != before)
                throw BadUsage("inspect op ", op_, ": ", name, '=', text, ": expected rows of equal length");
        }
        if (numbers.empty()) throw missing(name);
        return {numbers, std::max<std::int64_t>(rows, 1)};
    }
    double number(const std::string& name, double otherwise) {
        const std::string* text = word(name);
        return text ? numbers_in(name, *text).first.at(0) : otherwise;
    }
    int integer(const std::string& name, int otherwise) { return int(number(name, otherwise)); }
    int choice(const std::string& name, const Strings& names) {
        const std::string* text = word(name);
        if (!text) return 0;
        const auto found = std::find(names.begin(), names.end(), *text);
        if (found == names.end())
            throw BadUsage("inspect op ", op_, ": ", name, '=', *text, ": expected one of ", joined(names));
        return int(found - names.begin());
    }

    Held* find(const std::string& name) {
        for (Held& held : held_)
            if (held.name == name) return &held;
        return nullptr;
    }
    const View& make(const std::string& name, const Shape& shape, const std::vector<double>* numbers = nullptr) {
        held_.push_back(
            {name, Buffer(std::max<std::size_t>(shape.count(), 1) * sizeof(double)), {}, {}, numbers != nullptr});
        Held& held = held_.back();
        held.view.data = held.memory.data();
        held.view.dtype = DType::f64;
        held.view.shape = shape;
        held.view.path = held.name.c_str();
        std::fill_n(held.view.as<double>(), shape.count(), nobody_wrote);
        if (numbers) std::copy(numbers->begin(), numbers->end(), held.view.as<double>());
        if (numbers) held.before = *numbers;
        return held.view;
    }
    // A tensor that is given as a word; an empty view if it is not.
    View given(OpNumber op, const std::string& name) {
        const std::string* text = word(name);
        if (!text) return {};
        auto [numbers, rows] = numbers_in(name, *text);
        if (const Held* output = name[0] == 'd' ? find(name.substr(1)) : nullptr) {  // missing rows are 0
            const Shape& shape = output->view.shape;
            const bool fits = numbers.size() <= std::size_t(shape.count()) &&
                              (rows == 1 || numbers.size() / rows == std::size_t(shape.columns()));
            if (!fits)
                throw BadUsage("inspect op ", op_, ": ", name, '=', *text, ": expected the shape of ", output->name,
                               ", ", shape);
            numbers.resize(std::size_t(shape.count()));
            return make(name, shape, &numbers);
        }
        int rank = stated_by_ops(op, name[0] == 'd' && !stated_by_ops(op, name).found ? name.substr(1) : name).rank;
        if (rank == 0) rank = rows > 1 ? 2 : 1;
        const std::int64_t count = std::int64_t(numbers.size());
        return make(name, rank == 1 ? Shape{count} : Shape{rows, count / rows}, &numbers);
    }

    View argument(Tag<View>, OpNumber op, const std::string& name) {
        View view;
        const Held* known = find(name);
        if (known) {
            view = known->view;
        } else if (view = given(op, name); view) {
        } else if (name[0] == 'd' && find(name.substr(1))) {  // a gradient dy that is not given is 0
            const Shape shape = find(name.substr(1))->view.shape;
            const std::vector<double> zeros(std::size_t(shape.count()), 0.0);
            view = make(name, shape, &zeros);
        } else if (name == "rotary_table") {
            const int width = integer("columns", int(inputs_.at(0).columns()));
            const auto& positions = lists_.back();
            const std::vector<double> table =
                make_rotary_table(*std::max_element(positions.begin(), positions.end()) + 1, width);
            view = make(name, {std::int64_t(table.size()) / width, width}, &table);
        } else if (!absent(op, name)) {
            view = make(name, shape_of_output(op, name));
            return view;
        }
        inputs_.push_back(view);
        return view;
    }
    // Whether a tensor that is not given stays absent. The gradients that cross_entropy computes in its forward are
    // optional outputs, which the backward reads.
    bool absent(OpNumber op, const std::string& name) const {
        if (name == "before" || name == "after" || name == "rounded") return true;
        return stated_by_ops(op, name).optional && name != "total" && !ends_with(name, "1");
    }
    BadUsage missing(const std::string& name) const {
        return BadUsage("inspect op ", op_, ": ", name, " is missing; give it as ", name, "=1,2 or, for rows, ", name,
                        "=1,2/3,4");
    }
    // An output comes after all inputs and after all arguments that are not tensors.
    Shape shape_of_output(OpNumber op, const std::string& name) {
        if (inputs_.empty() || !inputs_[0] || int(others_.size()) < others_expected_) throw missing(name);
        const std::int64_t rows = inputs_[0].rows(), columns = inputs_[0].columns();
        const std::string base = base_name(op);
        if (name == "lse" && ends_with(base, "attention")) return {rows, heads_};
        if (base == "attention" || base == "lsh_attention") return inputs_[0].shape;
        if (base == "state_attention") return {rows, value_columns_};
        if (base == "sinkhorn") return {most_blocks(graph_, rows, block_) * block_, inputs_[1].columns()};
        if (base == "feature_map") return {rows, columns * (doubled_ ? 2 : 1)};
        if (base == "max_rows") return {std::int64_t(lists_.back().size()) - 1, columns};
        if (base == "slot_loss" && name == "base") return find("lse")->view.shape;
        if (base == "gaussian_kl") return {rows};
        if (!stated_by_ops(op, name).found) throw missing(name);
        for (const Output& output : outputs_of(op, inputs_, others_))
            if (output.parameter == name && output.shape.count() >= 0 && output.shape.count() < 1'000'000)
                return output.shape;
        throw missing(name);
    }
    Views argument(Tag<Views>, OpNumber op, const std::string& name) {
        const Held* known = find(name);
        const View view = known ? known->view : given(op, name);
        if (name == "kv" && view) value_columns_ = view.columns();
        inputs_.push_back(view);
        return view ? Views{view} : Views();
    }
    Grad argument(Tag<Grad>, OpNumber, const std::string& name) {
        const Held* of = find(name.substr(1));
        if (!of) return {};
        return {make(name, of->view.shape), false};
    }
    Grads argument(Tag<Grads>, OpNumber op, const std::string& name) {
        const Grad grad = argument(Tag<Grad>{}, op, name);
        return grad ? Grads{grad} : Grads();
    }
    Ints argument(Tag<Ints>, OpNumber, const std::string& name) {
        const std::string* text = word(name);
        std::vector<int> list;
        if (text)
            for (double x : numbers_in(name, *text).first) list.push_back(int(x));
        else
            for (std::int64_t i = 0; !inputs_.empty() && i < inputs_[0].rows(); i++) list.push_back(int(i));
        lists_.push_back(list);
        const Ints ints{lists_.back().data(), std::int64_t(list.size())};
        others_.push_back(argument_of(ints));
        return ints;
    }
    template <class T>
    const T& other(const T& value) {
        others_.push_back(argument_of(value));
        return value;
    }
    int argument(Tag<int>, OpNumber, const std::string& name) {
        const int otherwise = name == "columns" && !inputs_.empty() ? int(inputs_[0].columns()) : 1;
        return other(integer(name, otherwise));
    }
    bool argument(Tag<bool>, OpNumber, const std::string& name) { return other(number(name, 0) != 0); }
    double argument(Tag<double>, OpNumber, const std::string& name) {
        const std::set<std::string> one{"scale", "weight"};
        return other(number(name, one.count(name) ? 1 : 0));
    }
    GeluKind argument(Tag<GeluKind>, OpNumber, const std::string& name) {
        return other(GeluKind(choice(name, {"erf", "tanh"})));
    }
    GateKind argument(Tag<GateKind>, OpNumber, const std::string& name) {
        return other(GateKind(choice(name, {"silu", "gelu", "gelu_tanh"})));
    }
    FeatureKind argument(Tag<FeatureKind>, OpNumber, const std::string& name) {
        const FeatureKind kind(
            FeatureKind(choice(name, {"positive", "hyperbolic", "trigonometric", "relu", "rfa", "softplus", "elu"})));
        doubled_ = is_double(kind);
        return other(kind);
    }
    RowNames argument(Tag<RowNames>, OpNumber op, const std::string&) {
        const Ints document = argument(Tag<Ints>{}, op, "document"), position = argument(Tag<Ints>{}, op, "position");
        others_.resize(others_.size() - 1);
        return {document, position};
    }
    DropoutRule argument(Tag<DropoutRule>, OpNumber, const std::string&) {
        return other(DropoutRule{float(number("rate", 0)), make_stream(1, "example", 0)});
    }
    const SegmentGraph& argument(Tag<SegmentGraph>, OpNumber, const std::string&) {
        const std::string* mask = word("mask");
        if (graph_.queries.empty()) graph_ = make_mask(mask ? *mask : "bert", {{int(inputs_.at(0).rows()), 0}});
        return other(graph_);
    }
    AttentionRule argument(Tag<AttentionRule>, OpNumber, const std::string&) {
        AttentionRule rule;
        rule.heads = heads_ = integer("heads", 1);
        return other(rule);
    }
    StateRule argument(Tag<StateRule>, OpNumber, const std::string&) {
        StateRule rule;
        rule.heads = heads_ = integer("heads", 1);
        rule.slots = integer("slots", 1);
        rule.pack = StatePack(choice("packs", {"sum", "gated", "exponential", "pair"}));
        rule.read = StateRead(choice("read", {"linear", "kernel", "attend"}));
        rule.scale = number("scale", 1);
        if (rule.read == StateRead::attend) value_columns_ = inputs_.at(0).columns();
        return other(rule);
    }
    LshRule argument(Tag<LshRule>, OpNumber op, const std::string& name) {
        LshRule rule;
        rule.attention = argument(Tag<AttentionRule>{}, op, name);
        rule.rounds = integer("rounds", 1), rule.buckets = integer("buckets", 2), rule.chunk = integer("chunk", 1);
        return rule;
    }
    SinkhornRule argument(Tag<SinkhornRule>, OpNumber, const std::string&) {
        SinkhornRule rule;
        rule.heads = integer("heads", 1), rule.block = block_ = integer("block", 1);
        rule.iterations = integer("iterations", 1), rule.temperature = number("temperature", 1);
        return other(rule);
    }
    CodeRule argument(Tag<CodeRule>, OpNumber, const std::string&) {
        CodeRule rule;
        rule.groups = integer("groups", 1), rule.decay = number("decay", rule.decay), rule.dead = number("dead", 0);
        return other(rule);
    }
    OptimiserRule argument(Tag<OptimiserRule>, OpNumber, const std::string&) {
        OptimiserRule rule;
        rule.beta1 = number("beta1", rule.beta1), rule.beta2 = number("beta2", rule.beta2), rule.eps = number("eps", 0);
        rule.decay = number("decay", 0), rule.clip = number("clip", 0);
        return other(rule);
    }

    std::string op_;
    std::map<std::string, std::string> words_;
    std::set<std::string> used_;
    Strings seen_;           // the names that the op asks for, in order
    std::deque<Held> held_;  // a deque, because views and paths must not move
    std::deque<std::vector<int>> lists_;
    std::vector<View> inputs_;  // of the call that is being prepared, for outputs_of()
    std::vector<Argument> others_;
    int others_expected_ = 0;  // the number of arguments of the call that are not tensors
    SegmentGraph graph_;
    int heads_ = 1, block_ = 1;
    std::int64_t value_columns_ = 1;
    bool doubled_ = false;
};

}  // namespace

void run_op(const std::string& op, const Strings& words) {
    OnNumbers example(op, words);
    Strings names;
    bool found = false;
    for (const char* end : {"", "_forward", "_backward"}) {
        if (ends_with(end, "backward") && !(found && example.backward)) continue;
#define OP(name, ...) \
    if (#name == op + end) example.call(name), found = true;
#include "engine/ops/ops.h"
#undef OP
    }
    if (!found) {
        for (const char* name : op_names)
            if (!ends_with(name, "_backward"))
                names.push_back(ends_with(name, "_forward") ? std::string(name, std::string(name).size() - 8) : name);
        throw BadUsage("there is no op ", op, "; there are ", joined(names));
    }
    example.print();
}

}  // namespace masquerade
