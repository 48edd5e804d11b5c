// SPDX-License-Identifier: MIT
// ./inspect op: runs one op of ops.h in double on numbers of the command line, forward and backward, so that an example
// that a reader computes by hand can be compared with the engine.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include "engine/base/named.h"
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

// A NaN that no computation returns. It fills outputs before the calls.
double nobody_wrote() {
    constexpr std::uint64_t bits = 0x7ff8dead00000001;
    double number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}
bool is_unwritten(double x) {
    const double mark = nobody_wrote();
    return std::memcmp(&x, &mark, sizeof x) == 0;
}

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
    OnNumbers(const std::string& op, const Strings& words, std::uint64_t seed)
        : program_("inspect op " + op + ": "), seed_(seed) {
        for (const std::string& word : words) {
            const std::size_t equals = word.find('=');
            if (equals == word.npos || equals == 0)
                throw BadUsage(program_, word, " is not NAME=NUMBERS, such as x=1,2,6");
            words_[word.substr(0, equals)] = word.substr(equals + 1);
        }
        backward = std::any_of(words_.begin(), words_.end(), [](const auto& w) {
            return w.first.size() > 1 && w.first[0] == 'd' &&
                   !std::set<std::string>{"document", "decay", "dead"}.count(w.first);
        });
    }

    bool backward;  // whether a gradient dy is given, so that the backward runs, too

    // Calls an op of ops.h with arguments that are found by the names of its parameters.
    template <OpNumber number, auto slot, class... P>
    void call(const OpCall<number, slot, void (*)(P...)>&) {
        op_ = number, place_ = 0;
        inputs_.clear();
        others_.clear();
        others_expected_ = (0 + ... + int(!is_tensor<std::decay_t<P>>));
        typename OpCall<number, slot, void (*)(P...)>::InOrder{argument<std::decay_t<P>>()...};
        for (Held& held : held_)
            if (held.before.empty() && held.view.count() && is_unwritten(*held.view.as<double>()))
                throw missing(held.name);
    }
    // Prints the tensors that the calls have written, and refuses words that no call has read.
    void print() const {
        for (const auto& [name, text] : words_)
            if (!asks_for(name)) throw BadUsage(program_, "the op has no ", name, "; it has ", joined(seen_));
        std::size_t width = 4;
        for (const Held& held : held_) width = std::max(width, held.name.size());
        for (const Held& held : held_) {
            const double* now = held.view.as<double>();
            const std::int64_t count = held.view.count(), columns = held.view.shape.rank == 0 ? 1 : held.view.columns();
            const bool scratch = held.name == "left";  // of log_det
            if (scratch || (!held.before.empty() && std::equal(held.before.begin(), held.before.end(), now))) continue;
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
        Numbers before;  // the numbers that are given; empty: an output
    };

    bool asks_for(const std::string& name) const { return contains(seen_, name); }
    const std::string* word(const std::string& name) {
        if (!asks_for(name)) seen_.push_back(name);
        const auto found = words_.find(name);
        return found == words_.end() ? nullptr : &found->second;
    }
    // The numbers of a word "1,2/3,4", and the number of its rows.
    std::pair<Numbers, std::int64_t> numbers_in(const std::string& name, const std::string& text) const {
        Numbers numbers;
        std::int64_t rows = 0;
        std::istringstream all(text);
        for (std::string row; std::getline(all, row, '/'); rows++) {
            const std::size_t before = numbers.size();
            std::istringstream one(row);
            for (std::string number; std::getline(one, number, ',');)
                if (!read_number(number, numbers.emplace_back()))
                    throw BadUsage(program_, name, '=', text, ": ", number, " is not a number");
            if (rows > 0 && (numbers.size() - before) * std::size_t(rows) != before)
                throw BadUsage(program_, name, '=', text, ": expected rows of equal length");
        }
        if (numbers.empty()) throw missing(name);
        return {numbers, std::max<std::int64_t>(rows, 1)};
    }
    double number(const std::string& name, double otherwise) {
        const std::string* text = word(name);
        return text ? numbers_in(name, *text).first.at(0) : otherwise;
    }
    // Returns x, a number of the word `name`, as an int. Throws BadUsage if x is not a whole number in this range.
    int whole(const std::string& name, double x, int least = std::numeric_limits<int>::min(),
              int most = std::numeric_limits<int>::max()) const {
        if (!(x >= least && x <= most && x == std::floor(x)))
            throw BadUsage(program_, name, ": found ", fmt::format("{}", x), ", expected a whole number from ", least,
                           " to ", most);
        return int(x);
    }
    int integer(const std::string& name, int otherwise) { return whole(name, number(name, otherwise)); }
    int count(const std::string& name, int otherwise) { return whole(name, number(name, otherwise), 1, 65536); }
    int choice(const std::string& name, const Strings& names) {
        const std::string* text = word(name);
        if (!text) return 0;
        const auto found = std::find(names.begin(), names.end(), *text);
        if (found == names.end()) throw BadUsage(program_, name, '=', *text, ": expected one of ", joined(names));
        return int(found - names.begin());
    }

    const Held* find(const std::string& name) const {
        for (const Held& held : held_)
            if (held.name == name) return &held;
        return nullptr;
    }
    // The tensor y of a gradient dy; null if there is none.
    const Held* output_of(const std::string& name) const { return name[0] == 'd' ? find(name.substr(1)) : nullptr; }
    // Makes an input with these numbers or, without numbers, an output.
    const View& make(const std::string& name, const Shape& shape, const Numbers& numbers = {}) {
        held_.push_back({name, Buffer(std::max<std::size_t>(shape.count(), 1) * sizeof(double)), {}, numbers});
        Held& held = held_.back();
        held.view = {held.memory.data(), DType::f64, Device::cpu, shape, held.name.c_str()};
        std::fill_n(held.view.as<double>(), shape.count(), nobody_wrote());
        std::copy(numbers.begin(), numbers.end(), held.view.as<double>());
        return held.view;
    }
    // A tensor of an earlier call, or one that is given as a word; an empty view if there is none.
    View given(const std::string& name) {
        if (const Held* known = find(name)) return known->view;
        const std::string* text = word(name);
        if (!text) return {};
        auto [numbers, rows] = numbers_in(name, *text);
        if (const Held* output = output_of(name)) {  // missing rows are 0
            const Shape& shape = output->view.shape;
            const bool fits = numbers.size() <= std::size_t(shape.count()) &&
                              (rows == 1 || numbers.size() / rows == std::size_t(shape.columns()));
            if (!fits)
                throw BadUsage(program_, name, '=', *text, ": expected the shape of ", output->name, ", ", shape);
            numbers.resize(std::size_t(shape.count()));
            return make(name, shape, numbers);
        }
        int rank = stated_by_ops(op_, name[0] == 'd' && !stated_by_ops(op_, name).found ? name.substr(1) : name).rank;
        if (rank == 0) rank = rows > 1 ? 2 : 1;
        const std::int64_t count = std::int64_t(numbers.size());
        return make(name, rank == 1 ? Shape{count} : Shape{rows, count / rows}, numbers);
    }
    // Whether a tensor that is not given stays absent. The gradients that cross_entropy computes in its forward are
    // optional outputs, which the backward reads.
    bool absent(const std::string& name) const {
        if (name == "before" || name == "after" || name == "rounded") return true;
        return stated_by_ops(op_, name).optional && name != "total" && !ends_with(name, "1");
    }
    BadUsage missing(const std::string& name) const {
        return BadUsage(program_, name, " is missing; give it as ", name, "=1,2 or, for rows, ", name, "=1,2/3,4");
    }
    // An output comes after all inputs and after all arguments that are not tensors.
    Shape shape_of_output(const std::string& name) {
        if (inputs_.empty() || !inputs_[0] || int(others_.size()) < others_expected_) throw missing(name);
        const std::int64_t rows = inputs_[0].rows(), columns = inputs_[0].columns();
        const std::string base = base_name(op_);
        if (name == "lse" && ends_with(base, "attention")) return {rows, heads_};
        if (base == "attention" || base == "lsh_attention") return inputs_[0].shape;
        if (base == "state_attention") return {rows, value_columns_};
        if (base == "sinkhorn") {  // the op itself refuses block_ < 1
            const std::int64_t blocks = block_ < 1 ? 1 : most_blocks(graph_, rows, block_) * block_;
            return {blocks, inputs_[1].columns()};
        }
        if (base == "feature_map") return {rows, columns * (doubled_ ? 2 : 1)};
        if (base == "max_rows") return {std::int64_t(lists_.back().size()) - 1, columns};
        if (base == "slot_loss" && name == "base") return find("lse")->view.shape;
        if (base == "gaussian_kl") return {rows};
        if (!stated_by_ops(op_, name).found) throw missing(name);
        for (const Output& output : outputs_of(op_, inputs_, others_))
            if (output.parameter == name && output.shape.count() >= 0 && output.shape.count() < 1'000'000)
                return output.shape;
        throw missing(name);
    }

    // Returns the next argument of the op. read() finds its value, or leaves the default.
    template <class T>
    T argument() {
        T value{};
        read(value, std::string(name_of_parameter(op_parameters[int(op_)], place_++)));
        if constexpr (!is_tensor<T>) others_.push_back(argument_of(value));
        return value;
    }
    void read(View& view, const std::string& name) {
        if (view = given(name); view) {
        } else if (const Held* of = output_of(name)) {  // a gradient dy that is not given is 0
            view = make(name, of->view.shape, Numbers(std::size_t(of->view.count()), 0.0));
        } else if (name == "rotary_table") {
            const int width = integer("columns", int(inputs_.at(0).columns()));
            if (width < 2 || width % 2 != 0 || width > 65536)
                throw BadUsage(program_, "columns=", width, ": expected an even number from 2 to 65536");
            Ints positions;
            read(positions, "positions");  // an op may name them after the table
            const int last = *std::max_element(positions.data, positions.data + positions.count);
            if (last < 0 || last > 1000000)
                throw BadUsage(program_, "positions: found ", last, ", expected 0 to 1000000");
            const Numbers table = make_rotary_table(last + 1, width);
            view = make(name, {std::int64_t(table.size()) / width, width}, table);
        } else if (!absent(name)) {
            view = make(name, shape_of_output(name));
            return;
        }
        inputs_.push_back(view);
    }
    void read(Views& views, const std::string& name) {
        const View view = given(name);
        if (name == "kv" && view) value_columns_ = view.columns();
        inputs_.push_back(view);
        if (view) views = Views{view};
    }
    void read(Grad& grad, const std::string& name) {
        if (const Held* of = find(name.substr(1))) grad = {make(name, of->view.shape), false};
    }
    void read(Grads& grads, const std::string& name) {
        Grad grad;
        read(grad, name);
        if (grad) grads = Grads{grad};
    }
    void read(Ints& ints, const std::string& name) {
        const std::string* text = word(name);
        std::vector<int> list;
        if (text)
            for (double x : numbers_in(name, *text).first) list.push_back(whole(name, x));
        else
            for (std::int64_t i = 0; !inputs_.empty() && i < inputs_[0].rows(); i++) list.push_back(int(i));
        lists_.push_back(list);
        ints = {lists_.back().data(), std::int64_t(list.size())};
    }
    void read(int& value, const std::string& name) {
        value = integer(name, name == "columns" && !inputs_.empty() ? int(inputs_[0].columns()) : 1);
    }
    void read(bool& value, const std::string& name) { value = number(name, 0) != 0; }
    void read(double& value, const std::string& name) {
        value = number(name, name == "scale" || name == "weight" ? 1 : 0);
    }
    void read(GeluKind& kind, const std::string& name) { kind = GeluKind(choice(name, {"erf", "tanh"})); }
    void read(GateKind& kind, const std::string& name) { kind = GateKind(choice(name, {"silu", "gelu", "gelu_tanh"})); }
    void read(FeatureKind& kind, const std::string& name) {
        kind = FeatureKind(choice(name, {"positive", "hyperbolic", "trigonometric", "relu", "rfa", "softplus", "elu"}));
        doubled_ = is_double(kind);
    }
    void read(RowNames& rows, const std::string&) { read(rows.document, "document"), read(rows.position, "position"); }
    void read(DropoutRule& rule, const std::string&) {
        rule = {float(number("rate", 0)), make_stream(seed_, "example", 0)};
    }
    void read(SegmentGraph& graph, const std::string&) {
        const std::string* mask = word("mask");
        if (graph_.queries.empty()) graph_ = make_mask(mask ? *mask : "bert", {{int(inputs_.at(0).rows()), 0}});
        graph = graph_;
    }
    void read(AttentionRule& rule, const std::string&) { rule.heads = heads_ = count("heads", 1); }
    void read(StateRule& rule, const std::string&) {
        rule.heads = heads_ = count("heads", 1);
        rule.slots = count("slots", 1);
        rule.pack = StatePack(choice("packs", {"sum", "gated", "exponential", "pair"}));
        rule.read = StateRead(choice("read", {"linear", "kernel", "attend"}));
        rule.scale = number("scale", 1);
        if (rule.read == StateRead::attend) value_columns_ = inputs_.at(0).columns();
    }
    void read(LshRule& rule, const std::string& name) {
        read(rule.attention, name);
        rule.rounds = count("rounds", 1), rule.buckets = count("buckets", 2), rule.chunk = count("chunk", 1);
    }
    void read(SinkhornRule& rule, const std::string&) {
        rule.heads = count("heads", 1), rule.block = block_ = count("block", 1);
        rule.iterations = integer("iterations", 1), rule.temperature = number("temperature", 1);
    }
    void read(CodeRule& rule, const std::string&) {
        rule.groups = count("groups", 1), rule.decay = number("decay", rule.decay), rule.dead = number("dead", 0);
    }
    void read(OptimiserRule& rule, const std::string&) {
        rule.beta1 = number("beta1", rule.beta1), rule.beta2 = number("beta2", rule.beta2), rule.eps = number("eps", 0);
        rule.decay = number("decay", 0), rule.clip = number("clip", 0);
    }

    std::string program_;  // the beginning of all messages
    std::uint64_t seed_;   // of dropout
    std::map<std::string, std::string> words_;
    Strings seen_;           // the names that the op asks for, in order
    std::deque<Held> held_;  // a deque, because views and paths must not move
    std::deque<std::vector<int>> lists_;
    OpNumber op_{};             // of the call that is being prepared, as all that follows
    std::size_t place_ = 0;     // of the next argument
    std::vector<View> inputs_;  // for outputs_of()
    std::vector<Argument> others_;
    int others_expected_ = 0;  // the number of arguments of the call that are not tensors
    SegmentGraph graph_;
    int heads_ = 1, block_ = 1;
    std::int64_t value_columns_ = 1;
    bool doubled_ = false;
};

}  // namespace

void run_op(const std::string& op, const Strings& words, std::uint64_t seed) {
    OnNumbers example(op, words, seed);
    bool found = false;
    for (const char* end : {"", "_forward", "_backward"}) {
        if (ends_with(end, "backward") && !(found && example.backward)) continue;
#define OP(name, ...) \
    if (#name == op + end) example.call(name), found = true;
#include "engine/ops/ops.h"
#undef OP
    }
    if (!found) {
        Strings names;
        for (const char* name : op_names)
            if (!ends_with(name, "_backward"))
                names.push_back(ends_with(name, "_forward") ? std::string(name, std::string(name).size() - 8) : name);
        throw BadUsage("there is no op ", op, "; there are ", joined(names));
    }
    example.print();
}

}  // namespace masquerade
