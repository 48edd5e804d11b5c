// SPDX-License-Identifier: MIT
// The settings of models that generate by insertion: the family insertion, and univae with decoder=insertion. A slot is
// a place in the generated text where a word can be inserted.
#pragma once
#include "data/sentences.h"
#include "engine/io/config.h"
#include "models/nets/insertion_head.h"
#include "models/tasks/objective.h"
#include "models/writing/canvas.h"
#include "tokenizer/wordpiece.h"

namespace masquerade {

struct SlotSettings {
    enum class Location : int { factorised, joint };
    enum class End : int { slot, sequence };
    // The order in which the model learns to insert the missing words of a slot: a name in orders()
    // (slot_settings.cpp), or the path of a file.
    std::string order = "binary_tree";
    // How p(c,l) of a word c and a slot l is computed: as p(c|l) p(l), or by one softmax over all words and slots.
    Location content_location = Location::factorised;
    // Which slots learn to predict the end token: every slot without a missing word, or only slots of complete targets.
    End finalization = End::slot;
    InsertionRule rule_options;         // only tau and end_weight are settings; rule() sets the other fields
    InsertionHeadOptions head_options;  // head() sets the fields that are no settings

    void declare(Config& config, const std::string& about = "");  // `about`: a text before every help
    InsertionHeadOptions head() const;
    // Returns the score of each token, for a head with InsertionHeadOptions::scored. `sentences` are the training
    // sentences; order=frequency reads all of them, and counts the words of targets or, if `both` is true, those of
    // sources, too (Objective::both_sides). Throws BadInput if `order` names a file that is missing or wrong.
    Numbers scores(const WordPiece& tokenizer, const SentenceList& sentences, bool both, std::uint64_t seed) const;
    InsertionRule rule(const Vocabulary& vocabulary, const InsertionHead& head) const;
    // Returns the rule by which generation ends, which follows from the training.
    Finalization ends() const {
        return order == "left_to_right" || finalization == End::sequence ? Finalization::sequence : Finalization::slot;
    }
};

}  // namespace masquerade
