// SPDX-License-Identifier: MIT
// Tasks that a language model solves by looking back at earlier tokens: recall, copy, induction.
#include <algorithm>
#include <cmath>

#include "data/tasks/examples.h"
#include "engine/base/error.h"

namespace masquerade {

static int random_word(const TaskOptions& o, Sequence& random) { return first_word + random.below(o.vocabulary); }

void add_numbered(WordList& words, const char* prefix, int count) {
    for (int i = 0; i < count; i++) words.push_back(text(prefix, i));
}

WordList numbered_words(const TaskOptions& o) {
    WordList words;
    add_numbered(words, "w", o.vocabulary);
    return words;
}

WordList keys_and_values(const TaskOptions& o) {
    WordList words;
    add_numbered(words, "k", o.vocabulary / 2);
    add_numbered(words, "v", o.vocabulary - o.vocabulary / 2);
    return words;
}

// Multi-query associative recall (Arora et al. 2023): [CLS] k v k v ..., then every key k once more. At the second k,
// the model must predict the value v that followed the first k. A key can be repeated at every second position after
// the pairs; these positions have the numbers g = 1, 2, ... For each key, one position is drawn without replacement,
// with the weights g^(a-1), where a = 0.01. Random words fill all other positions.
Solved recall(const TaskOptions& o, Sequence& random) {
    const int keys = o.vocabulary / 2, places = (o.length - 2 * o.pairs) / 2;
    if (o.pairs > keys || o.pairs > places)
        throw BadUsage("task recall: pairs=", o.pairs, " needs a vocabulary of ", 2 * o.pairs, " or more, found ",
                       o.vocabulary, ", and a length of ", 4 * o.pairs, " or more, found ", o.length);
    Solved s{{cls_id}, {}, {}};
    Tokens key(keys);
    for (std::size_t i = 0; i < key.size(); i++) key[i] = first_word + i;
    for (int p = 0; p < o.pairs; p++) {
        std::swap(key[p], key[p + random.below(keys - p)]);
        s.tokens.push_back(key[p]);
        s.tokens.push_back(first_word + keys + random.below(o.vocabulary - keys));
    }
    // Weighted sampling without replacement (Efraimidis and Spirakis 2006): takes the positions with the largest
    // log(u) / weight, where each u is a random number between 0 and 1.
    std::vector<std::pair<double, int>> drawn;
    for (int g = 0; g < places; g++) drawn.emplace_back(std::log(random.uniform_double()) * std::pow(g + 1, 0.99), g);
    std::sort(drawn.rbegin(), drawn.rend());
    for (int i = 2 * o.pairs; i < o.length; i++) s.tokens.push_back(random_word(o, random));
    std::vector<std::pair<int, int>> asked;  // positions of repeated keys, with the values
    for (int p = 0; p < o.pairs; p++) {
        const int row = 1 + 2 * o.pairs + 2 * drawn[p].second;
        s.tokens[row] = key[p];
        asked.emplace_back(row, s.tokens[2 + 2 * p]);
    }
    std::sort(asked.begin(), asked.end());
    for (const auto& [row, answer] : asked) {
        s.rows.push_back(row);
        s.answers.push_back(answer);
    }
    return s;
}

// A clue for a baseline: the value of the last key-value pair. There are as many pairs as answers.
int last_value(const Solved& s) { return s.tokens[2 * s.rows.size()]; }

// [CLS] a b c [SEP] a b: from [SEP] on, the model must predict the next word of "a b c" at each position.
Solved copy_of_words(const TaskOptions& o, Sequence& random) {
    Solved s{{cls_id}, {}, {}};
    for (int i = 0; i < o.length; i++) s.tokens.push_back(random_word(o, random));
    for (int i = 0; i < o.length; i++) {
        s.rows.push_back(s.tokens.size());
        s.tokens.push_back(i == 0 ? sep_id : s.tokens[i]);
        s.answers.push_back(s.tokens[i + 1]);
    }
    return s;
}

// [CLS] ... w x ... w: at the last position, the model must predict x (Olsson et al. 2022). w occurs exactly twice; all
// other words are random.
Solved induction(const TaskOptions& o, Sequence& random) {
    if (o.length < 4 || o.vocabulary < 3)
        throw BadUsage("task induction needs a length of 4 and a vocabulary of 3 at least");
    Solved s{{cls_id}, {o.length}, {}};
    const int trigger = random_word(o, random), place = 1 + random.below(o.length - 2);
    for (int i = 1; i < o.length; i++) {
        int word = trigger;
        while (word == trigger && i != place) word = random_word(o, random);
        s.tokens.push_back(word);
    }
    s.tokens.push_back(trigger);
    s.answers = {s.tokens[place + 1]};
    return s;
}

}  // namespace masquerade
