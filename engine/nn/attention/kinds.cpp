// SPDX-License-Identifier: MIT
// The table of all kinds of attention.
#include "engine/nn/attention/kinds.h"

#include <algorithm>

#include "engine/base/named.h"

namespace masquerade {

const std::vector<AttentionKind>& attention_kinds() {
    static const std::vector<AttentionKind> all = {softmax_kind,   window_kind, longformer_kind,  strided_kind,
                                                   fixed_kind,     local_kind,  by_head_kind,     lsh_kind,
                                                   sinkhorn_kind,  luna_kind,   luna_causal_kind, linformer_kind,
                                                   performer_kind, rfa_kind,    linear_kind,      lambda_kind};
    return all;
}

const AttentionKind& find_attention(const std::string& name) {
    return find_named(attention_kinds(), name, "attention");
}

const AttentionKind& self_attention(const std::string& name, bool decoder) {
    const AttentionKind& kind = find_attention(name);
    return decoder && kind.in_decoder ? find_attention(kind.in_decoder) : kind;
}

const AttentionKind& cross_attention(const std::string& name) {
    const AttentionKind& kind = find_attention(name);
    return kind.in_cross ? find_attention(kind.in_cross) : kind;
}

std::string of_kinds(const std::vector<std::string>& names) { return joined(names) + ": "; }

std::vector<AttentionSetting> attention_settings() {
    struct Help {
        std::string text;
        std::vector<std::string> kinds;
    };
    std::vector<AttentionSetting> all;
    std::map<std::string, std::vector<Help>> helps;  // the help texts of each setting, by key
    for (const AttentionKind& kind : attention_kinds())
        for (const AttentionSetting& own : kind.settings()) {
            std::vector<Help>& known = helps[own.key];
            if (known.empty()) all.push_back(own);
            const auto same = [&](const Help& one) { return one.text == own.help; };
            auto help = std::find_if(known.begin(), known.end(), same);
            if (help == known.end()) help = known.insert(help, {own.help, {}});
            help->kinds.push_back(kind.name);
        }
    for (AttentionSetting& setting : all) {
        std::vector<std::string> texts;
        for (const Help& one : helps[setting.key]) texts.push_back(of_kinds(one.kinds) + one.text);
        setting.help = joined(texts, "; ");
    }
    return all;
}

}  // namespace masquerade
