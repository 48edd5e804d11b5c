// SPDX-License-Identifier: MIT
// Training objectives. An objective defines the masks and the labels of a batch: which rows predict which tokens. The
// parameters of a model do not depend on the objective.
//
// A sentence may have a target. The two are then called a pair, and the sentence is the source of the pair. The
// descriptions of objectives for one stack also say which mask they use.
//
// One stack:
//   mlm           full; some tokens, words or spans are hidden, and their rows predict them
//                                                                          Devlin et al. 2019, Joshi et al. 2020
//   lm            causal; every row predicts the next token, in the source and in the target
//   lm-target     causal; only the tokens of a pair's target are predicted
//   lm-reverse    anticausal; every row predicts the previous token
//   prefix-lm     full in a prefix of random length, causal in the rest; the rest is predicted
//                                                                                      Raffel et al. 2020
//   unilm         full in a pair's source; causal in the target, which also sees the source; the target is predicted
//                                                                                      Dong et al. 2019
//   unilm-reverse unilm for targets whose tokens before [SEP] are turned around, so the last one is generated first
//   unilm-masked  the mask of unilm; some tokens of the target are hidden, and their rows predict them
//                                                                                      Dong et al. 2019, section 2.4
//   plm           permutation language model in two streams (two_stream_mask)          Yang et al. 2019
//   pmlm          pseudo-masked language model (pseudo_mask): each hidden span is predicted twice: from the
//                 context alone; and, in a random order, from the context and earlier spans     Bao et al. 2020
//   diffusion     full; the target also sees the source. A text without a target is the target of [CLS]. A random number
//                 of the target's tokens are hidden, and their rows predict them; the loss is a bound on the negative
//                 log-likelihood                                          Sahoo et al. 2024, Hoogeboom et al. 2022
//   block-diffusion  diffusion of one block of K tokens after another (block_streams_mask): the tokens of a block are
//                 predicted from all earlier blocks and from the visible tokens of the block      Arriola et al. 2025
//   any-order     the tokens of a pair's target or of a text, in a random order, each from all that come before it in
//                 this order, in two streams (two_stream_mask). The length is known, and the loss is a bound
//                                                                      Uria et al. 2014, Yang et al. 2019
//   gaps          the mask of diffusion, on a text from which a random number of tokens are missing. Each of its tokens,
//                 and its end, predict how many tokens are missing before them  Ghazvininejad et al. 2019, Gu et al. 2019
//   k-bert        mlm on a sentence tree: facts are attached to words of the sentence, and only these words see them
//                 (knowledge_mask)                                                     Liu et al. 2020
//   plm-shuffled  causal; the tokens come in a random order, each with its position in the text. Each row predicts the
//                 next token in this order without knowing the position of that token, so it can only predict a
//                 mixture over the remaining positions. The objective exists to show this flaw      docs/permutation.md
//
// An encoder and a decoder:
//   seq2seq       the encoder reads a pair's source; the decoder reads and predicts the target    Vaswani et al. 2017
//   seq2seq-reverse  the same for targets that are turned around, as in unilm-reverse
//   mass          one span of a sentence is hidden from the encoder. The decoder predicts each token of the span from
//                 the true tokens before it. Every token keeps its position in the sentence       Song et al. 2019
//   diffusion     the encoder reads a pair's source. The decoder, with a full mask, reads the target, of which a random
//                 number of tokens are hidden, and predicts them; the loss is a bound, as on one stack
//   gaps          as on one stack; the decoder reads the text with missing tokens
//
// Insertion (models/tasks/insertion_objective.cpp):
//   insertion            an encoder reads the source, and a decoder with a full mask reads a subset of the target's
//                        words; the slots between these words predict the missing words      Stern et al. 2019
//   insertion-one-stack  like insertion, on one stack; the source does not see the target
//   kermit               one stack with a full mask reads subsets of source and target and predicts the missing words
//                                                                                            Chan et al. 2019
//
// UniVAE (models/tasks/univae_objective.cpp):
//   reconstruct   predicts a sentence, or the target of a pair, from the latents of the sentence    Su 2021
//   reconstruct-conditional  the encoder half reads a pair; the decoder half has the mask of unilm on the pair, and its
//                 row [CLS] is replaced by the latents of the pair                        Sohn et al. 2015
//   reconstruct-insertion and reconstruct-conditional-insertion  the same, but the decoder half inserts words, as in
//                 the objectives of insertion models above
//   reconstruct-diffusion and reconstruct-conditional-diffusion  the same, but the decoder half predicts hidden tokens,
//                 as in the objective diffusion
//
// Labelled examples (models/tasks/question_objective.cpp):
//   classify      some rows of an example (Sentence::asked) predict its labels (Sentence::target)
//   label         like classify, but these rows can lie anywhere in the example (Objective::scattered)
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/sentences.h"
#include "engine/base/named.h"
#include "engine/base/processes.h"
#include "models/batch/batch.h"
#include "models/masks/words.h"
#include "models/nets/backbone.h"
#include "models/tasks/batch_parts.h"

namespace masquerade {

// How an insertion model is trained (Stern et al. 2019, sections 4.1 to 4.4). A canvas is a subset of a target's words
// in their order; its slots are the places before, between and after these words. A slot must predict its missing
// words. Each missing word has a share of the loss proportional to exp(-distance / tau). A slot without missing words
// must predict the end token.
struct InsertionRule {
    // true: a canvas consists of the first words of the target, and only the slot after these words is trained. This
    // slot must predict the next word of the target or, if the canvas has all words, the end token.
    bool left_to_right = false;
    // true: word u = 0 .. n-1 of the n missing words of a slot has the distance |u - (n-1) / 2|, its distance to the
    // middle of these words. false: all missing words have the distance 0.
    bool middle = true;
    // If not null: a score for each token of the vocabulary. The distance of a missing word is then the number of
    // missing words in the same slot that have a smaller score.
    std::shared_ptr<const Numbers> scores;
    double tau = 1;  // in exp(-distance / tau); infinite: all missing words of a slot have equal shares
    // true: the end token is predicted only in complete canvases; false: in every slot without missing words
    bool sequence = false;
    double end_weight = 1;  // weight of a slot that must predict the end token; the mean weight of other slots is 1
    // Ids of [CLS] and [SEP], which stand before and after the words of a canvas. [SEP] is also the end token, which a
    // slot without missing words predicts.
    int begin = -1, end = -1;
};

// How diffusion hides tokens. A place is a row that can be hidden.
struct DiffusionRule {
    // How the model learns the number of tokens of a text.
    //   ends   The number of places is always the same, and each place behind the text holds [SEP]. The model predicts
    //          [SEP], too. Behind a visible [SEP], all places are shown as [SEP] and not predicted.
    //   drawn  There is one place for each token of the text, and a visible [SEP] behind it.
    enum Canvas { ends, drawn } canvas = ends;
    int target_places = 0, text_places = 0;  // ends: the places of a target, and of a text without a target
    // block-diffusion: the number of places of a block. Places behind the text, with [SEP], are only in the last block.
    int block = 4;
    // Only in training; measured() leaves these fields out, so held-out losses are always bounds.
    //   bound   a hidden token weighs P/k, if k of P places are hidden. The mean loss is a bound
    //   tokens  every hidden token weighs 1
    enum Weighting { bound, tokens } weighting = bound;
    double least = 0, most = 1;  // shares of the places: k is drawn from the numbers with least <= k/P <= most
    DiffusionRule measured() const {
        DiffusionRule rule = *this;
        rule.weighting = bound, rule.least = 0, rule.most = 1;
        return rule;
    }
};

// The unit in which mlm and k-bert hide tokens: single tokens, whole words, or spans of whole words.
enum class Masking { tokens, words, spans };

struct ObjectiveOptions {
    InsertionRule insertion;
    DiffusionRule diffusion;
    // The number of canvases drawn from each sentence in a step, and the index of the canvas that is made now, 0 ..
    // canvases - 1. Objectives with the trait `canvases` make all of them; others make one batch for each index.
    int canvases = 1, canvas = 0;
    std::uint32_t step = 0;  // the step of training, on which random numbers depend; make() and batch() set it
    int vocabulary = 0;      // V, number of tokens in the vocabulary
    Tokens special;          // tokens that are never hidden and never drawn at random
    int mask = -1;           // id of [MASK], which some objectives need; -1: not in the vocabulary
    // mlm and k-bert: probability that a token or word is hidden; with Masking::spans, the share of the tokens that are
    // hidden. pmlm: the share of the tokens that are hidden.
    double hidden = 0.15;
    // Probabilities that a hidden token stays visible, and that it becomes a random token; otherwise it becomes [MASK].
    double kept = 0.1, random = 0.1;
    Masking masking = Masking::tokens;  // the unit in which mlm and k-bert hide tokens
    double span_stop = 0.2;             // Masking::spans: probability that a span ends after a word
    int span_longest = 10;              // Masking::spans: maximum number of words of a span
    // Masking::words and spans: for each token of the vocabulary, whether it continues the word of the token before it.
    // null: every token is a whole word.
    std::shared_ptr<const std::vector<bool>> continues;
    double hidden_target = 0.7;            // unilm-masked: probability with which a token of the target is hidden
    int brackets[4] = {-1, -1, -1, -1};    // k-bert: ids of [ ] ( and ): [ ] enclose words, ( ) a fact about them
    double blocks = 0.4;                   // pmlm: probability that a span has 2 to 6 tokens; otherwise it has one
    double predicted = 1.0 / 6;            // plm: share of the tokens that are predicted
    double span = 0.5;                     // mass: share of the tokens that are hidden, in one span
    int source_type = 0, target_type = 1;  // segment ids of the source's and of the target's tokens
    int target_start = -1;                 // position of a target's first token; -1: directly after the source
    std::uint64_t seed = 1;
    // Masks in words (models/masks/words.h): `masks` for the stack that predicts, encoder_masks for the encoder. They
    // replace the objective's masks in the layers that they name; if they are null, no mask is replaced.
    std::shared_ptr<const LayerMasks> masks, encoder_masks;

    // These options are only for UniVAE's objectives.
    int longest = 0;             // maximum number of tokens of a sentence, with [CLS] and [SEP]
    int last_read = 0;           // index of the last layer of the encoder half; this layer runs only for [CLS]
    bool joint = false;          // true: also packs both halves as one sequence, for UniVae::joint()
    double word_dropout = 0;     // share of the tokens that the decoder half reads as [UNK]
    int cls = -1, unknown = -1;  // ids of [CLS] and [UNK], needed if word_dropout > 0
    // Only for the objectives classify and label: the mask of their examples, in words.
    std::shared_ptr<const MaskWords> example_mask;

    // Position of a target's first token if the source has `source` tokens.
    int target_position(int source) const { return target_start < 0 ? source : target_start; }
};

struct Objective {
    const char *name, *what;
    enum Trait : unsigned {
        none = 0,
        pairs = 1,       // every sentence must have a target
        mask_token = 2,  // the vocabulary must have [MASK]
        scattered = 4,   // labelled rows can lie anywhere in a document; the last layer then runs for all rows
        // The mask depends on a number that each row has (Example::rank). Masks in words cannot express such a mask, so
        // they cannot replace it.
        ranks = 8,
        writes = 16,           // trains generation from left to right
        writes_backward = 32,  // trains generation from right to left
        whole_source = 64,     // the text before the generated tokens is read in both directions
        encoder = 128,         // an encoder reads the source
        both_sides = 256,      // words are inserted into the source as well as into the target
        trees = 1024,          // a sentence may state facts about its words in brackets, as tree_of() describes
        at_mask = 512,         // the next token is predicted by a [MASK] in its place, not by the row before it
        bound = 2048,          // the loss is an upper bound on the negative log-likelihood, not the latter itself
        last_first = 16384,    // the tokens of a target are generated from the last to the first
        streams = 32768,       // hidden tokens have rows of their own, beside the true tokens (two_stream_mask)
        canvases = 4096,       // draws ObjectiveOptions::canvases canvases of each sentence
        counts = 8192,         // predicts numbers: the number c is the token V + c, a row of the embedding of its own
    };
    unsigned traits;
    bool has(Trait trait) const { return traits & trait; }
    // Makes the example of a sentence. The random numbers depend only on the seed, the objective, the sentence's name,
    // the step and, for insertion and diffusion, the index of the canvas. The number of tokens that diffusion hides
    // depends on the seed, Sentence::visit and this index.
    Example (*example)(const Sentence& sentence, const ObjectiveOptions& options);
    // Sets the masks of the batch, from Batch::parts, Batch::rank and the masks in words of `options`. Do not call this
    // function directly: give_masks() calls it.
    void (*mask)(Batch& batch, const ObjectiveOptions& options);
    // Returns the number of rows of a sentence, with its target and all its canvases. null: the number of its tokens.
    std::size_t (*count)(const Sentence& sentence, const ObjectiveOptions& options) = nullptr;

    // Returns the number of rows that a sentence and its target have in a batch.
    std::size_t rows(const Sentence& sentence, const ObjectiveOptions& options) const {
        return count ? count(sentence, options) : sentence.size();
    }
    // Makes the example of a sentence in a step of training.
    Example make(const Sentence& sentence, std::uint32_t step, ObjectiveOptions options) const {
        options.step = step;
        return example(sentence, options);
    }
    // Makes a batch. If pad_to > 1, pads rows and labels to multiples of pad_to and documents to a multiple of 8.
    // Throws BadInput if the objective needs pairs and a sentence has no target. Throws BadUsage if the objective needs
    // [MASK] and the vocabulary has none.
    Batch batch(const Sentences& sentences, std::uint32_t step, const ObjectiveOptions& options, int pad_to = 1) const;
    // Sets all masks of a batch that pack() has made; batch() does this itself. Calls mask(). If labelled rows are not
    // scattered and there is no encoder, then sets Batch::scored_graph, which mask() does not set.
    void give_masks(Batch& batch, const ObjectiveOptions& options) const;
};

// The tables of objectives. objectives() returns the table for one stack or, if `encoder` is true, the table for an
// encoder and a decoder. The other tables are for insertion models, UniVAE and classification.
const std::vector<Objective>& objectives(bool encoder = false);
const std::vector<Objective>& insertion_objectives();
const std::vector<Objective>& latent_objectives();
const std::vector<Objective>& question_objectives();
// Returns the objective with this name. If the table has none, throws BadUsage with a list of the names in the table.
const Objective& find_objective(const std::string& name, const std::vector<Objective>& table);
inline const Objective& find_objective(const std::string& name, bool encoder = false) {
    return find_objective(name, objectives(encoder));
}

// One objective ("unilm"), or several with weights: "mlm:2,unilm:2,lm:1,lm-reverse:1". Every batch has one objective,
// drawn with a probability proportional to its weight.
struct ObjectiveMixture {
    struct Part {
        const Objective* objective;
        double weight;
    };
    std::vector<Part> parts;  // weights sum to 1

    // Throws BadUsage if a name is not in the table, or a weight is not a number above 0.
    static ObjectiveMixture parse(const std::string& words, const std::vector<Objective>& table = objectives());
    // Returns the objective of a training step.
    const Objective& at(std::uint64_t seed, std::uint32_t step) const;
    const Objective* find(Objective::Trait trait) const;  // the first objective with the trait; null if there is none
    bool has(Objective::Trait trait) const { return find(trait) != nullptr; }
};

// Measured batches have about this size or less, however long the sentences are, so that measuring needs about as much
// memory as a training step.
constexpr std::size_t measured_size = 1024;

// Splits the sentences into groups of `at_a_time` (the last group may be smaller), and groups that are larger than
// measured_size into several pieces. For each piece, makes a batch with make(piece) and calls use(tape, batch, first);
// `first` is the index of the piece's first sentence. The tape has the device and the storage type of `stack`.
template <class Make, class Use>
void each_batch(const Backbone& stack, const Sentences& sentences, std::size_t at_a_time, Make make, Use use,
                const SentenceSize& size = tokens_in) {
    Arena arena(stack.device(), Blocks::kept);
    Tape tape(arena, stack.storage());
    for (std::size_t first = 0; first < sentences.size(); first += at_a_time) {
        const auto begin = sentences.begin() + first;
        const Sentences group(begin, begin + std::min(at_a_time, sentences.size() - first));
        const std::vector<std::size_t> cuts = cut_by_size(group, measured_size, size);
        for (std::size_t i = 0; i + 1 < cuts.size(); i++)
            use(tape, make(Sentences(begin + cuts[i], begin + cuts[i + 1])), first + cuts[i]);
    }
}
// Calls each_batch() for the sentences of this process: the processes share the sentences in whole groups. `first` is
// an index of `sentences`.
template <class Make, class Use>
void each_own_batch(const Backbone& stack, const Sentences& sentences, std::size_t at_a_time, Make make, Use use,
                    const SentenceSize& size = tokens_in) {
    const std::size_t begin = own_items(sentences.size(), at_a_time).first;
    each_batch(
        stack, own_part(sentences, at_a_time), at_a_time, make,
        [&](Tape& tape, const Batch& batch, std::size_t first) { use(tape, batch, begin + first); }, size);
}

}  // namespace masquerade
