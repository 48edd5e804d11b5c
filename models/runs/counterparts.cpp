// SPDX-License-Identifier: MIT
#include "models/runs/counterparts.h"

#include <algorithm>
#include <cstdlib>

#include "engine/base/named.h"

namespace masquerade {
namespace {

constexpr const char *of_keys = " (keys)", *of_values = " (values)";

bool has(const std::string& path, const char* part) { return path.find(part) != path.npos; }

}  // namespace

const AttentionKind* attention_of(const std::string& path, const Stacks& stacks) {
    const bool target = has(path, ".target_attention."), cross = has(path, ".cross.");
    // A kind of attention may have a second sequence of hidden states, which passes through the layers beside the
    // tokens (AttentionKind::companion). The parameters of this sequence do not have ".attention." in their paths.
    const bool companion = path == "embedding.slots" || has(path, "norm_packed");
    if (!target && !cross && !companion && !has(path, ".attention.")) return nullptr;
    const bool decoder = stacks.decoder && path.rfind("decoder.", 0) == 0;
    const int layers = decoder ? stacks.decoder->layers : stacks.first.layers;
    const AttentionWords kinds(stacks.first.attention, layers);
    if (const int layer = layer_of(path); layer >= 0) {
        const std::string& name = kinds.of(std::min(layer, layers - 1), target || decoder).name;
        return cross ? &cross_attention(name) : &self_attention(name, decoder);
    }
    // All layers share the parameter. If it belongs to a second sequence of hidden states, its kind is the kind with a
    // second sequence. Otherwise, its kind is the kind whose name is in the path. If no kind fits, the first kind is
    // returned.
    for (const AttentionKind* kind : kinds.named())
        if (companion ? kind->companion != nullptr : has(path, kind->name)) return kind;
    return kinds.named()[0];
}

std::string of_other_part(std::string path) {
    const std::size_t target = path.find(".target_attention."), own = path.find(".attention.");
    return target != path.npos ? path.erase(target + 1, 7) : own != path.npos ? path.insert(own + 1, "target_") : path;
}

std::vector<ParameterPart> parts_of(const std::string& path, std::int64_t rows, const AttentionKind* kind,
                                    int key_width) {
    for (const std::string site : {"attention.", "target_attention.", "cross."}) {
        const std::size_t at = path.find("." + site) + 1;
        if (!kind || at == 0) continue;
        const std::size_t from = at + site.size(), dot = std::min(path.find('.', from), path.size());
        const std::string what = path.substr(from, dot - from), before = path.substr(0, from), end = path.substr(dot);
        const auto key = [&](const std::string& name) { return before + (kind->role ? kind->role(name) : name) + end; };
        const std::size_t stem = what.size() - std::min<std::size_t>(what.size(), 9);
        if (what.substr(stem) != "key_value") return {{key(what), site + what}};
        const std::string keys = what.substr(0, stem) + "key", values = what.substr(0, stem) + "value";
        if (rows == key_width) return {{key(keys), site + what}};  // keys and values share the projection
        return {{key(keys), site + what + of_keys, {0, 2}}, {key(values), site + what + of_values, {1, 2}}};
    }
    return {{path, path}};
}

std::string joined_parts(std::set<std::string> names) {
    for (const std::string& name : std::set<std::string>(names)) {
        const std::string whole = name.substr(0, name.find(of_keys));
        if (whole == name || names.erase(whole + of_values) == 0) continue;
        names.erase(name);
        names.insert(whole);
    }
    return joined({names.begin(), names.end()});
}

int layer_of(const std::string& path) {
    const std::size_t at = path.find("layer.");
    return at == path.npos ? -1 : std::atoi(path.c_str() + at + 6);
}

}  // namespace masquerade
