// SPDX-License-Identifier: MIT
#include "models/masks/words.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "input/number.h"
#include "models/masks/builder.h"

namespace masquerade {
namespace {

constexpr std::pair<const char*, Rule> rules[] = {{"full", Rule::full},
                                                  {"causal", Rule::causal},
                                                  {"strict-causal", Rule::strict_causal},
                                                  {"anticausal", Rule::anticausal},
                                                  {"none", Rule::none}};

constexpr int most = 999999;  // largest number in the words of a mask; the sum of two such numbers fits into an int

bool read_place(const std::string& word, int& number) {
    return read_number(word, number) && -most <= number && number <= most;
}

}  // namespace

Strings words_of(std::string text) {
    std::replace(text.begin(), text.end(), ',', ' ');
    std::istringstream in(text);
    Strings all;
    for (std::string word; in >> word;) all.push_back(word);
    return all;
}

MaskWords::MaskWords(const std::string& text) : words(text) {
    std::istringstream in(text);
    for (std::string each; std::getline(in, each, ';');) read_part(each);
    if (!parts_[0].named && !parts_[1].named) refuse("expected parts, as in \"A full; B causal sees A\"");
}

void MaskWords::read_part(const std::string& text) {
    const Strings found = words_of(text);
    const std::string name = found.empty() ? "" : found[0], rule = found.size() > 1 ? found[1] : "";
    if (name != "A" && name != "B" && name != "AB") refuse("\"" + name + "\" is no part; expected A, B or AB");
    Part& part = parts_[name == "B"];
    if (part.named || as_one_ || (name == "AB" && parts_[1].named)) refuse("expected A and B, each once, or AB alone");
    as_one_ = name == "AB";
    part.named = true;
    const auto row =
        std::find_if(std::begin(rules), std::end(rules), [&](const auto& each) { return rule == each.first; });
    if (rule.rfind("rows=", 0) == 0)
        read_table(rule.substr(5), part);
    else if (row == std::end(rules))
        refuse("\"" + rule + "\" is no rule; expected full, causal, strict-causal, anticausal, none or rows=");
    else
        part.rule = row->second;
    std::size_t i = 2;
    for (; i < found.size() && found[i] != "sees"; i++)
        read_window(found[i], i + 1 < found.size() ? found[i + 1] : "", part.window);
    if (i > 2 && part.window.radius < 0) refuse("\"" + found[2] + "\" has no effect without window=; add window=N");
    if (part.window.reach() > Window::farthest)
        refuse(masquerade::text("window=", part.window.radius, " dilation=", part.window.dilation, " reaches ",
                                part.window.reach(), " rows to either side; expected at most ", Window::farthest,
                                "; lower window= or dilation="));
    if (i + 1 == found.size()) refuse("nothing follows \"sees\"; expected rows of the other part, as A[0]");
    // AB has no other part, so every slice must be refused: no word of words_of() begins with a space.
    for (i++; i < found.size(); i++) part.sees.push_back(read_slice(found[i], as_one_ ? ' ' : name == "A" ? 'B' : 'A'));
}

void MaskWords::read_table(const std::string& digits, Part& part) const {
    part.rule = Rule::bits;
    std::istringstream in(digits);
    for (std::string row; std::getline(in, row, '/');) part.table.push_back(row);
    for (const std::string& row : part.table)
        if (row.size() != part.table.size() || row.find_first_not_of("01") != row.npos)
            refuse(text("\"rows=\" has ", part.table.size(), " rows, and one of them is \"", printable(row, 60),
                        "\"; expected ", part.table.size(), " digits 0 or 1 in each row, as in rows=10/11"));
    if (part.table.empty()) refuse("\"rows=\" has no rows; expected one group of digits for each, as in rows=10/11");
}

void MaskWords::read_window(const std::string& word, const std::string& next, Window& window) const {
    if (word == "over=all") {
        window.all = true;
        return;
    }
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, equals), value = word.substr(std::min(equals + 1, word.size()));
    const std::pair<const char*, int*> keys[] = {{"window", &window.radius},
                                                 {"dilation", &window.dilation},
                                                 {"stride", &window.stride},
                                                 {"globals", &window.globals}};
    for (const auto& [name, number] : keys)
        if (key == name) {
            if (equals == word.size())
                refuse("\"" + key + "\" has no number; expected " + key + "=" +
                       (next.empty() || next == "sees" ? "N" : next));
            if (read_place(value, *number) && *number >= (number == &window.dilation ? 1 : 0)) return;
            refuse("\"" + value + "\" is no number for " + key);
        }
    refuse("\"" + word + "\" is neither \"sees\" nor window=, dilation=, stride=, globals= or over=all");
}

IndexRange MaskWords::read_slice(const std::string& text, char other) const {
    if (text[0] != other) refuse("\"" + text + "\" is not of the other part");
    IndexRange rows;
    if (text.size() == 1) return rows;
    if (text[1] != '[' || text.back() != ']') refuse("\"" + text + "\" is no slice; expected A, A[0] or A[1:3]");
    if (const auto wrong = read_range(text.substr(2, text.size() - 3), rows, most, true))
        refuse("\"" + text + "\": \"" + *wrong + "\" is no place");
    return rows;
}

// The slices are those of `part` that the other part sees. Slices that overlap or touch are merged, so that no row is
// seen twice. If a merged slice is the whole part, the existing key segment `part_key` represents it; any other merged
// slice becomes a new key segment. The number of key segments must not depend on the lengths of the documents, because
// sizes of tensors can depend on this number. For each slice that did not become a new key segment, an empty key
// segment is therefore added, which no row sees. If `whole` is true, documents of all lengths use only `part_key`, and
// nothing is added.
std::vector<int> MaskWords::seen(int part, int part_key, SegmentBuilder& build) const {
    const KeySegment all = build.graph().keys[part_key];
    const int length = all.end - all.begin;
    std::vector<std::pair<int, int>> slices;
    bool whole = false;  // whether at least one slice is the whole part, such as A or A[0:]
    for (const IndexRange& s : parts_[1 - part].sees) {
        slices.push_back({s.begin(length), s.end(length)});
        whole |= s.from == 0 && s.to == IndexRange::whole;
    }
    const std::size_t expected = build.graph().keys.size() + (whole ? 0 : slices.size());
    std::sort(slices.begin(), slices.end());
    std::vector<int> keys;
    for (std::size_t i = 0; i < slices.size();) {
        auto [from, to] = slices[i++];
        for (; i < slices.size() && slices[i].first <= to; i++) to = std::max(to, slices[i].second);
        const bool is_part = from == 0 && to == length;
        keys.push_back(
            is_part ? part_key
                    : build.key(all.source, all.begin + from, all.begin + std::max(from, to), all.place + from, from));
    }
    while (build.graph().keys.size() < expected) build.key(all.source, all.begin, all.begin, all.place);
    return keys;
}

SegmentGraph MaskWords::operator()(const Documents& documents, int inert) const {
    SegmentBuilder build;
    for (const Document& d : documents) {
        const bool real = &d < documents.data() + documents.size() - inert;
        build.next_document();
        const int lengths[] = {as_one_ ? d.source + d.target : d.source, as_one_ ? 0 : d.target};
        for (int p : {0, 1})
            if (lengths[p] > 0 && !parts_[p].named)
                refuse(text("a document has ", lengths[p], " rows of part ", p ? "B" : "A", ", which is not named"));
        const int a = build.tokens(lengths[0]), own[] = {a, build.tokens(lengths[1])};
        for (int p : {0, 1}) {
            std::vector<int> keys = seen(1 - p, own[1 - p], build);
            // Keys of the source A come before keys of the target B.
            keys.insert(p == 0 ? keys.begin() : keys.end(), own[p]);
            if (lengths[p] == 0) continue;
            QuerySegment& q = build.look(parts_[p].rule, own[p], keys);
            add_window(q, parts_[p].window);
            const Strings& table = parts_[p].table;
            const int n = int(table.size());
            if (parts_[p].rule != Rule::bits) continue;
            if (real && lengths[p] > n)
                refuse(text("a document has ", lengths[p], " rows of part ",
                            as_one_ ? "AB"
                            : p     ? "B"
                                    : "A",
                            ", but the table rows= has ", n, "; expected as many as the longest document"));
            add_bits(build.graph(), q, [&](int i, int j) { return i < n && j < n && table[i][j] == '1'; });
        }
    }
    return build.take();
}

SegmentGraph MaskWords::cross(const Documents& documents) const {
    SegmentBuilder build;
    int query = 0;
    for (const Document& d : documents) {
        build.next_document();
        build.look(query, query + d.target, Rule::full, -1, seen(0, build.tokens(d.source), build));
        query += d.target;
    }
    return build.take();
}

void MaskWords::expect_two_stacks() const {
    if (as_one_) refuse("an encoder's rows are A and a decoder's B; expected these, not AB");
    if (!parts_[0].sees.empty()) refuse("A sees B, but an encoder has no cross-attention; let B see A");
    if (parts_[1].window.all) refuse("over=all: a decoder's window reaches over its own rows alone; leave it out");
}

void MaskWords::expect_bottleneck(bool latent, bool full) const {
    const Part &a = parts_[0], &b = parts_[1];
    const bool cls = b.sees.size() == 1 && b.sees[0].from == 0 && b.sees[0].to == 1;
    const Rule rule = full ? Rule::full : Rule::causal;
    if (!a.named || !a.sees.empty() || b.rule != rule || b.window.all || (latent ? !cls : !b.sees.empty()))
        refuse(text("it stands in a layer ", latent ? "with a latent" : "below the latents", "; expected \"A RULE; B ",
                    full ? "full" : "causal", latent ? " sees A[0]" : "", "\", ",
                    latent ? "which is all that B may see of A" : "where B sees nothing of A"));
}

MaskWords::Written MaskWords::written(int source, bool goes_on) const {
    const bool one = goes_on || as_one_;
    const Part& part = parts_[one ? 0 : 1];
    if (part.rule != Rule::causal || !parts_[0].sees.empty())
        refuse("nothing can be written token by token with a mask whose rows see later rows, or not themselves");
    if (part.sees.size() > 1 || part.window.all || (one && part.window.radius >= 0))
        refuse(
            "only rows that see one slice of the source, and no window beyond themselves, can be written token by token");
    if (one) return {0, source, {}};
    if (part.sees.empty()) return {0, 0, part.window};
    const int from = part.sees[0].begin(source);
    return {from, std::max(from, part.sees[0].end(source)), part.window};
}

void MaskWords::expect_backward() const {
    const Part& text = parts_[0];
    if (!text.named || text.rule != Rule::anticausal)
        refuse("a row that predicts the token before it must not see this token; expected A anticausal");
    if (text.window.radius >= 0 || !text.sees.empty())
        refuse("only rows that see all later rows of their own part can be written from right to left");
}

std::string words_of_table(const std::vector<std::vector<bool>>& sees) {
    std::string words;
    for (const std::vector<bool>& row : sees) {
        if (row.size() != sees.size())
            throw BadUsage("a mask of ", sees.size(), " rows and ", row.size(), " columns; expected as many of both");
        words += words.empty() ? "AB rows=" : "/";
        for (const bool seen : row) words += seen ? '1' : '0';
    }
    if (words.empty()) throw BadUsage("a mask without rows; expected at least one");
    return words;
}

std::vector<LayerWords> layer_words(const std::string& setting, const std::string& words, int layers) {
    std::istringstream in(words);
    std::vector<LayerWords> all;
    for (std::string each; std::getline(in, each, '|');) {
        IndexRange range;
        std::string bare;  // the range without the second colon of "layers 0:3: A full"
        const Strings found = words_of(each);
        if (!found.empty() && found[0] == "layers") {
            const std::string given = found.size() > 1 ? found[1] : "";
            bare = given;
            if (std::count(bare.begin(), bare.end(), ':') > 1 && bare.back() == ':') bare.pop_back();
            if (read_range(bare, range, most))
                throw BadUsage(setting, " \"", words, "\": \"", given,
                               "\" is no range of layers; expected I:J, as in layers 2:6");
            each = each.substr(each.find(given) + given.size());
        }
        each.erase(each.find_last_not_of(' ') + 1);
        all.push_back({range.begin(layers), range.end(layers), each, bare});
    }
    return all;
}

void expect_layers(const std::string& setting, const std::string& words, const std::vector<int>& layers) {
    std::map<std::string, bool> there;  // for each range: whether a stack has a layer in it
    for (int count : layers)
        for (const LayerWords& each : layer_words(setting, words, count)) there[each.range] |= each.from < each.to;
    for (const auto& [range, has_layers] : there)
        if (!has_layers)
            throw BadUsage(setting, " \"", words, "\": \"layers ", range, "\" names no layer; the layers are 0 to ",
                           *std::max_element(layers.begin(), layers.end()) - 1);
}

LayerMasks::LayerMasks(const std::string& words, int layers, StackRows rows) : of_layers_(layers, -1) {
    for (const LayerWords& each : layer_words("mask", words, layers)) {
        const MaskWords mask(each.words);
        if (rows != StackRows::both) mask.expect_two_stacks();
        if (rows != StackRows::both && !mask.names(rows == StackRows::decoder)) continue;
        for (int i = each.from; i < each.to; i++) of_layers_[i] = int(masks_.size());
        masks_.push_back(mask);
    }
}

LayerGraphs LayerMasks::graphs(const Documents& documents, int inert) const {
    LayerGraphs all{{}, of_layers_};
    for (const MaskWords& words : masks_) all.graphs.push_back(words(documents, inert));
    return all;
}

LayerGraphs LayerMasks::cross(const Documents& documents) const {
    LayerGraphs all{{}, of_layers_};
    for (const MaskWords& words : masks_) all.graphs.push_back(words.cross(documents));
    return all;
}

std::string LayerMasks::unwritable(bool goes_on, bool backward) const {
    try {
        for (const MaskWords& words : masks_) backward ? words.expect_backward() : void(words.written(1, goes_on));
    } catch (const BadUsage& refusal) {
        return refusal.what();
    }
    return "";
}

void MaskWords::refuse(const std::string& why) const { throw BadUsage("mask \"", printable(words, 120), "\": ", why); }

}  // namespace masquerade
