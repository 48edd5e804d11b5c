// SPDX-License-Identifier: MIT
// Packs a text for a test.
#pragma once
#include <string>

#include "data/training_text.h"
#include "engine/base/write_file.h"

namespace masquerade {

// Packs the text in `file` as ./tokenize --pack does. All lines are then held out or training lines as they would be
// without packing.
inline void pack(const std::string& folder, const WordPiece& tokenizer, const std::string& file) {
    const TrainingText t = find_training_text(file, "", TextKind::any);
    const bool pairs = t.pairs();
    write_new_folder(folder, [&](const std::string& place) {
        PackWriter writer(place, tokenizer, pairs);
        for (std::size_t i = 0; i < t.train.size(); i++)
            writer.add(tokenizer.encode(t.train[i]), pairs ? tokenizer.encode(t.train_targets[i]) : std::vector<int>());
        std::string held_out;
        for (std::size_t i = 0; i < t.held_out.size(); i++)
            held_out += t.held_out[i] + (pairs ? '\t' + t.held_out_targets[i] : "") + '\n';
        writer.finish(held_out, t.held_out.size(), {});
    });
}

}  // namespace masquerade
