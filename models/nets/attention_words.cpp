// SPDX-License-Identifier: MIT
#include "models/nets/attention_words.h"

#include <sstream>

#include "models/masks/words.h"

namespace masquerade {

AttentionWords::AttentionWords(const std::string& words, int layers) {
    const auto refuse = [&](const std::string& why) { throw BadUsage("attention \"", words, "\": ", why); };
    const AttentionKind* const softmax = &find_attention("softmax");
    of_layers_.assign(layers, {softmax, softmax});
    for (const LayerWords& each : layer_words("attention", words, layers)) {
        std::array<const AttentionKind*, 2> kinds = {};
        std::istringstream parts(each.words);
        for (std::string part; std::getline(parts, part, ';');) {
            const Strings found = words_of(part);
            const std::string name = found.size() == 2 ? found[0] : found.size() == 1 ? "AB" : "";
            if (name != "A" && name != "B" && name != "AB")
                refuse("\"" + part + "\" is no kind of a part; expected a kind alone, or \"A KIND; B KIND\"");
            named_.push_back(&find_attention(found.back()));
            for (int p : {0, 1}) {
                if (name == (p == 0 ? "B" : "A")) continue;
                if (kinds[p]) refuse("expected A and B, each once, or a kind alone");
                kinds[p] = named_.back();
            }
        }
        for (int i = each.from; i < each.to; i++)
            for (std::size_t p : {0, 1})
                if (kinds[p]) of_layers_[i][p] = kinds[p];
    }
    if (named_.empty()) refuse("expected a kind, as in \"softmax | layers 0:2: window\"");
}

}  // namespace masquerade
