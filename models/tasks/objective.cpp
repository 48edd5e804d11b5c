// SPDX-License-Identifier: MIT
#include "models/tasks/objective.h"

#include <cmath>
#include <numeric>
#include <sstream>

#include "engine/base/shuffle.h"
#include "input/number.h"
#include "models/tasks/diffusion_objective.h"
#include "models/tasks/objective_parts.h"

namespace masquerade {

bool is_special(int id, const ObjectiveOptions& o) {
    return std::find(o.special.begin(), o.special.end(), id) != o.special.end();
}

int hidden_as(int id, double u, Sequence& random, const ObjectiveOptions& o) {
    int other = 0;
    do other = int(random.below(o.vocabulary));
    while (is_special(other, o) && o.vocabulary > int(o.special.size()));  // ends the loop if all tokens are special
    return u < o.kept ? id : u < o.kept + o.random ? other : o.mask;
}

SegmentGraph source_alone_mask(const Documents& documents) {
    static const MaskWords words("A full; B full sees A");
    return words(documents);
}

namespace {

using Places = std::vector<int>;

// Returns the tokens of a sentence or a pair as one sequence, each with its segment id and its position.
TokenRows tokens_of(const Sentence& s, const ObjectiveOptions& o) {
    TokenRows all;
    all.push_text(s.ids, o.source_type, 0, s.name);
    all.push_text(s.target, o.target_type, o.target_position(s.ids.size()), s.name);
    return all;
}

// Returns the indices of the tokens that are not special. Only these tokens can be hidden (mlm) or predicted (plm).
Places ordinary(const TokenRows& all, const ObjectiveOptions& o) {
    Places places;
    for (int i = 0; i < all.count(); i++)
        if (!is_special(all.ids[i], o)) places.push_back(i);
    return places;
}

// Returns the words of an example: for each word, the indices of its tokens. Special tokens and, for k-bert, the tokens
// of facts are left out. If o.continues is null, every token is a word.
std::vector<Places> words_of(const Example& e, const ObjectiveOptions& o) {
    const TokenRows& all = e.rows;
    std::vector<Places> words;
    for (int place : ordinary(all, o)) {
        if (!e.rank.empty() && e.rank[place] < -1) continue;
        const bool follows = !words.empty() && words.back().back() == place - 1;
        if (!follows || !o.continues || !o.continues->at(all.ids[place])) words.emplace_back();
        words.back().push_back(place);
    }
    return words;
}

// Draws each word with the probability `share`. If this draws no word, draws one word uniformly.
std::vector<Places> drawn_words(const std::vector<Places>& words, double share, Sequence& random) {
    std::vector<Places> hidden;
    const Places& sure = words[random.below(words.size())];  // drawn if the loop draws no word
    for (const Places& word : words)
        if (random.uniform_double() < share) hidden.push_back(word);
    if (hidden.empty()) hidden.push_back(sure);
    return hidden;
}

// Draws the number n of words of a span from a truncated geometric distribution: 1 <= n <= o.span_longest, and P(n) is
// proportional to (1 - o.span_stop)^(n-1).
int span_length(Sequence& random, const ObjectiveOptions& o) {
    double left = random.uniform_double() * (1 - std::pow(1 - o.span_stop, o.span_longest)), share = o.span_stop;
    int length = 1;
    for (; length < o.span_longest && left >= share; length++, share *= 1 - o.span_stop) left -= share;
    return length;
}

// Draws spans until they contain the share o.hidden of the tokens, and returns them in the order of drawing. The first
// word of a span is drawn uniformly from the words that are in no span yet. A span has length_of() words, or fewer in
// three cases: the next word is in another span, the next token cannot be hidden (such as [SEP]), or enough tokens are
// drawn (Joshi et al. 2020, section 3.1).
template <class Length>
std::vector<Places> drawn_spans(std::vector<Places> words, Length length_of, Sequence& random,
                                const ObjectiveOptions& o) {
    double tokens = 0;
    for (const Places& word : words) tokens += word.size();
    std::vector<Places> spans;
    for (int missing = std::max(1, int(o.hidden * tokens + 0.5)); missing > 0;) {
        const int length = length_of();
        const std::size_t first = random.below(words.size());
        std::size_t last = first;
        Places& span = spans.emplace_back();
        do {
            span.insert(span.end(), words[last].begin(), words[last].end());
            missing -= int(words[last++].size());
        } while (int(last - first) < length && last < words.size() && words[last][0] == span.back() + 1 && missing > 0);
        words.erase(words.begin() + first, words.begin() + last);
    }
    return spans;
}

// Hides the tokens of the spans, and adds labels so that the rows of these tokens predict the original tokens. If
// `alike` is true, all tokens of a span are treated alike: all become [MASK], all become random tokens, or all stay.
void hide(Example& e, const std::vector<Places>& spans, bool alike, Sequence& random, const ObjectiveOptions& o) {
    for (const Places& span : spans) {
        double u = 0;
        for (int place : span) {
            int& id = e.rows.ids[place];
            e.labels.push(place, id);
            if (!alike || place == span[0]) u = random.uniform_double();
            id = hidden_as(id, u, random, o);
        }
    }
}

// Returns the example with some of its words or spans hidden.
Example with_hidden(Example e, Sequence random, const ObjectiveOptions& o) {
    const std::vector<Places> words = words_of(e, o);
    if (words.empty()) return e;
    const bool spans = o.masking == Masking::spans;
    const auto length = [&] { return span_length(random, o); };
    std::vector<Places> hidden = spans ? drawn_spans(words, length, random, o) : drawn_words(words, o.hidden, random);
    std::sort(hidden.begin(), hidden.end());
    hide(e, hidden, spans, random, o);
    return e;
}

// Returns an example with one row for each token of a sentence or pair. The first `source` rows are the source of the
// document, and the other rows are the target.
Example whole(const Sentence& s, int source, const ObjectiveOptions& o) {
    Example e;
    e.rows = tokens_of(s, o);
    e.document = {source, e.rows.count() - source};
    return e;
}

Example mlm(const Sentence& s, const ObjectiveOptions& o) {
    return with_hidden(whole(s, s.size(), o), Sequence(o.seed, "mlm", s.name, o.step), o);
}

Example k_bert(const Sentence& s, const ObjectiveOptions& o) {
    return with_hidden(tree_of(s, o), Sequence(o.seed, "k-bert", s.name, o.step), o);
}

// Makes an example in which every row from `first` on predicts the next token. The last token is predicted but never
// read, so it has no row.
Example next_tokens(const TokenRows& all, const Document& document, int first) {
    Example e;
    e.rows = all;
    for (int i = first; i + 1 < all.count(); i++) e.labels.push(i, all.ids[i + 1]);
    e.rows.pop();
    e.document = document;
    return e;
}

Example lm(const Sentence& s, const ObjectiveOptions& o) {
    return next_tokens(tokens_of(s, o), {int(s.size()) - 1, 0}, 0);
}

Example lm_target(const Sentence& s, const ObjectiveOptions& o) {
    return next_tokens(tokens_of(s, o), {int(s.size()) - 1, 0}, int(s.ids.size()) - 1);
}

// The target's [SEP] can be hidden like any other token of the target, so that the model learns where a target ends.
Example unilm_masked(const Sentence& s, const ObjectiveOptions& o) {
    Example e = whole(s, s.ids.size(), o);
    Sequence random(o.seed, "unilm-masked", s.name, o.step);
    std::vector<Places> tokens;
    for (int place = e.document.source; place < e.rows.count(); place++) tokens.push_back({place});
    hide(e, drawn_words(tokens, o.hidden_target, random), false, random, o);
    return e;
}

Example prefix_lm(const Sentence& s, const ObjectiveOptions& o) {
    Sequence random(o.seed, "prefix-lm", s.name, o.step);
    const int n = s.size(), prefix = 1 + int(random.below(n - 1));
    TokenRows all = tokens_of(s, o);
    for (int i = 0; i < n; i++) all.types[i] = i < prefix ? o.source_type : o.target_type;
    return next_tokens(all, {prefix, n - 1 - prefix}, prefix - 1);
}

// Row i - 1 reads token i and predicts token i - 1. Token 0, [CLS], is predicted but never read, so it has no row.
Example lm_reverse(const Sentence& s, const ObjectiveOptions& o) {
    const TokenRows all = tokens_of(s, o);
    Example e;
    for (int i = 1; i < all.count(); i++) {
        e.rows.push_from(all, i);
        e.labels.push(i - 1, all.ids[i - 1]);
    }
    e.document = {e.rows.count(), 0};
    return e;
}

// Every token of the sentence has a content row. After these rows, every predicted token has a query row, which reads
// [MASK]. A query row has the position and the rank of its token, and sees the content rows of smaller rank. Tokens
// that are not predicted are context and have rank -1.
Example plm(const Sentence& s, const ObjectiveOptions& o) {
    Example e = whole(s, s.size(), o);
    const int n = e.rows.count();
    e.rank.assign(n, -1);
    Sequence random(o.seed, "plm", s.name, o.step);
    Places asked = ordinary(e.rows, o);
    shuffle(asked, random);
    const int most = asked.size(), predicted = o.predicted * most + 0.5;
    asked.resize(std::min(most, std::max(1, predicted)));
    for (std::size_t r = 0; r < asked.size(); r++) e.rank[asked[r]] = int(r);
    std::sort(asked.begin(), asked.end());
    for (int place : asked) {
        e.labels.push(e.rows.count(), e.rows.ids[place]);
        e.rank.push_back(e.rank[place]);
        e.rows.push(o.mask, e.rows.types[place], e.rows.positions[place], s.name);
    }
    e.document.target = e.rows.count() - n;
    return e;
}

// The rows are the sentence, with [MASK] in place of each hidden token; the hidden tokens themselves; and then a second
// [MASK] for each hidden token, the pseudo mask. All three rows of a hidden token have its position. The first [MASK]
// is context, and predicts the token from the context alone. The pseudo mask predicts the token from the context and
// from the spans that precede the token's span in the order of prediction.                           Bao et al. 2020
Example pmlm(const Sentence& s, const ObjectiveOptions& o) {
    Example e = whole(s, s.size(), o);
    const TokenRows all = e.rows;
    const int n = all.count();
    Sequence random(o.seed, "pmlm", s.name, o.step);
    const auto length = [&] { return random.uniform_double() < o.blocks ? 2 + int(random.below(5)) : 1; };
    std::vector<Places> tokens;
    for (int place : ordinary(all, o)) tokens.push_back({place});
    std::vector<int> span(n);  // for each token, the number of its span, from 1; 0: it is not hidden
    int number = 0;
    if (!tokens.empty())
        for (const Places& each : drawn_spans(tokens, length, random, o)) {
            number++;
            for (int place : each) span[place] = number;
        }
    e.rank.assign(n, 0);
    const auto push = [&](int id, int place, int weight) {
        e.rows.push(id, all.types[place], all.positions[place], s.name);
        e.rank.push_back(weight);
    };
    const auto each_hidden = [&](auto use) {
        for (int place = 0; place < n; place++)
            if (span[place] > 0) use(place, all.ids[place], span[place]);
    };
    each_hidden([&](int place, int id, int) {
        e.rows.ids[place] = o.mask;
        e.labels.push(place, id);
    });
    each_hidden([&](int place, int id, int of) { push(id, place, of); });
    each_hidden([&](int place, int id, int of) {
        e.labels.push(e.rows.count(), id);
        push(o.mask, place, -of);
    });
    e.document.target = e.rows.count() - n;
    return e;
}

Example plm_shuffled(const Sentence& s, const ObjectiveOptions& o) {
    const TokenRows all = tokens_of(s, o);
    Places order(all.count() - 1);
    std::iota(order.begin(), order.end(), 1);
    Sequence random(o.seed, "plm-shuffled", s.name, o.step);
    shuffle(order, random);
    TokenRows shuffled;
    shuffled.push_from(all, 0);  // [CLS] stays first
    for (int place : order) shuffled.push_from(all, place);
    return next_tokens(shuffled, {all.count() - 1, 0}, 0);
}

void two_streams(Batch& b, const ObjectiveOptions&) { b.graph = two_stream_mask(b.parts, b.rank); }
void block_streams(Batch& b, const ObjectiveOptions&) { b.graph = block_streams_mask(b.parts, b.rank); }
// Sets the mask of k-bert, made from the ranks that tree_of() gave the rows. A fact follows the words of its entity in
// the sentence (the trunk), so its words belong to the entity of the last trunk word before them.
void knowledge(Batch& b, const ObjectiveOptions&) {
    std::vector<int> entity, branch;
    int last = -1;
    for (int rank : b.rank) {
        if (rank >= -1) last = rank;
        entity.push_back(last);
        branch.push_back(rank >= -1 ? -1 : -2 - rank);
    }
    b.graph = knowledge_mask(b.parts, entity, branch);
}
void pseudo_masks(Batch& b, const ObjectiveOptions&) { b.graph = pseudo_mask(b.parts, b.rank); }

void expect_fitting(const Objective& objective, const Sentence& s, const ObjectiveOptions& o) {
    if (objective.has(Objective::mask_token) && o.mask < 0)
        throw BadUsage("objective ", objective.name, " needs [MASK] in the vocabulary, which has none");
    if (objective.has(Objective::pairs) && s.target.empty())
        throw BadInput("objective ", objective.name, " needs pairs, but sentence ", s.name,
                       " has no target; give text with source<TAB>target on every line");
    if (s.ids.size() < 2 && s.asked.empty())
        throw Error("sentence ", s.name, " has ", s.ids.size(), " tokens, expected [CLS] ... [SEP]");
}

// Word dropout (Bowman et al. 2016): in the target rows of UniVAE's decoder half, replaces randomly drawn tokens by
// [UNK], so that the decoder half must use the latents. [CLS] is never replaced.
void hide_words(Batch& batch, std::uint32_t step, const ObjectiveOptions& o) {
    TokenRows& rows = batch.rows;
    const Stream stream = make_stream(o.seed, "word_dropout", step);
    for (std::size_t i = 0; i < rows.ids.size(); i++)
        if (rows.ids[i] != o.cls && (batch.read.empty() || rows.types[i] == o.target_type) &&
            uniform(stream.at(rows.document[i], rows.positions[i], 0)[0]) < o.word_dropout)
            rows.ids[i] = o.unknown;
}

double weight_of(const std::string& word, const std::string& words) {
    double weight = 0;
    if (!read_number(word, weight) || !(weight > 0) || weight > 1e9)
        throw BadUsage("objective ", words, ": ", word,
                       " is no weight; expected a number above 0, as in mlm:2,unilm:1");
    return weight;
}

}  // namespace

Example unilm(const Sentence& s, const ObjectiveOptions& o) {
    const int source = s.ids.size();
    return next_tokens(tokens_of(s, o), {source, int(s.target.size()) - 1}, source - 1);
}

Example tree_of(const Sentence& s, const ObjectiveOptions& o) {
    const TokenRows all = tokens_of(s, o);
    const int n = all.count();
    // If token `open` is an opening bracket ("[" if kind is 0, "(" if kind is 2), returns the index after its closing
    // bracket. Returns -1 if token `open` is not this bracket, if the brackets are empty, or if another bracket or
    // [SEP] comes before the closing bracket.
    const auto closed = [&](int open, int kind) {
        if (open >= n || o.brackets[kind] < 0 || all.ids[open] != o.brackets[kind]) return -1;
        for (int i = open + 1; i < n; i++) {
            const int id = all.ids[i];
            if (id == o.brackets[kind + 1]) return i > open + 1 ? i + 1 : -1;
            const bool last = i + 1 == int(s.ids.size()) || i + 1 == n;  // token i is [SEP]
            if (last || std::count(o.brackets, o.brackets + 4, id) > 0) return -1;
        }
        return -1;
    };
    Example e;
    int removed = 0, entities = 0, facts = 0;  // removed: number of brackets and words of facts so far
    const auto push = [&](int from, int to, int position, int rank) {
        for (int i = from; i < to; i++) {
            e.rows.push(all.ids[i], all.types[i], position + i - from, s.name);
            e.rank.push_back(rank);
        }
    };
    for (int i = 0; i < n;) {
        if (i == int(s.ids.size()) && o.target_start >= 0) removed = 0;  // the target's positions are fixed
        const int words = closed(i, 0), position = all.positions[i] - removed;
        if (words < 0 || closed(words, 2) < 0) {
            push(i, i + 1, position, -1);
            i++;
            continue;
        }
        const int count = words - i - 2, first = i;
        push(i + 1, words - 1, position, entities++);
        for (i = words; closed(i, 2) >= 0; i = closed(i, 2))
            push(i + 1, closed(i, 2) - 1, position + count, -2 - facts++);
        removed += i - first - count;
    }
    e.document = {e.rows.count(), 0};
    return e;
}

Batch Objective::batch(const Sentences& sentences, std::uint32_t step, const ObjectiveOptions& options,
                       int pad_to) const {
    std::vector<Example> examples;
    for (const Sentence* s : sentences) {
        expect_fitting(*this, *s, options);
        ObjectiveOptions one = options;
        one.step = step;
        if (has(canvases)) one.canvas = 0;
        do examples.push_back(example(*s, one));
        while (has(canvases) && ++one.canvas < one.canvases);
    }
    Batch b = pack(examples, pad_to);
    if (options.word_dropout > 0) hide_words(b, step, options);
    give_masks(b, options);
    // Sizes of some kinds of attention depend on the number of segments of the last layer, and on what they see.
    const SegmentGraph& last = has(scattered) ? b.last_graph() : b.scored_graph;
    b.bucket = text(name, ",", b.bucket, ",", last.queries.size(), ",", last.lists_of_a_row(b.rows.count()));
    return b;
}

void Objective::give_masks(Batch& b, const ObjectiveOptions& options) const {
    mask(b, options);
    if (!has(scattered) && b.source.count() == 0) b.scored_graph = only_queries(b.last_graph(), b.labels.rows);
}

const std::vector<Objective>& objectives(bool encoder) {
    constexpr auto none = Objective::none, pairs = Objective::pairs, mask_token = Objective::mask_token;
    constexpr auto writes = Objective::writes, whole_source = Objective::whole_source;
    static const std::vector<Objective> all = {
        {"mlm", "hidden tokens, from all others", mask_token | Objective::scattered, mlm, one_stack<full_mask>},
        {"lm", "every next token, from those before", writes, lm, one_stack<causal_mask>},
        {"lm-target", "the same mask, the target of a pair alone", pairs | writes, lm_target, one_stack<causal_mask>},
        {"lm-reverse", "every token before, from those after", Objective::writes_backward, lm_reverse,
         one_stack<anticausal_mask>},
        {"prefix-lm", "what follows a prefix of random length", writes | whole_source, prefix_lm,
         one_stack<unilm_mask>},
        {"unilm", "the target of a pair, from all of its source", pairs | writes | whole_source, unilm,
         one_stack<unilm_mask>},
        {"unilm-reverse", "the same, from the last token of the target to the first",
         pairs | writes | whole_source | Objective::last_first, last_first<unilm>, one_stack<unilm_mask>},
        {"unilm-masked", "hidden tokens of the target of a pair, from its source and the target before them",
         pairs | mask_token | writes | whole_source | Objective::at_mask | Objective::scattered, unilm_masked,
         one_stack<unilm_mask>},
        {"plm", "tokens in a random order, in two streams", mask_token | Objective::ranks, plm, two_streams},
        {"pmlm", "hidden spans, from the context, and from the context and earlier spans",
         mask_token | Objective::ranks | Objective::scattered, pmlm, pseudo_masks},
        {"diffusion", "a random number of hidden tokens of a target or a text, by a bound on the likelihood",
         diffusion_traits, in_form<DiffusionForm::one_stack>, one_stack<source_alone_mask>,
         rows_in_form<DiffusionForm::one_stack>},
        {"block-diffusion", "the same for one block after another, each from the true blocks before it",
         diffusion_traits | Objective::ranks, in_form<DiffusionForm::blocks>, block_streams,
         rows_in_form<DiffusionForm::blocks>},
        {"any-order", "every token of a target or a text from those before it in a drawn order, by a bound",
         mask_token | Objective::ranks | Objective::streams | Objective::canvases | Objective::bound, any_order,
         two_streams, rows_in_form<DiffusionForm::streams>},
        {"gaps", "how many tokens are missing before each token that is left of a target or a text", Objective::counts,
         in_form<DiffusionForm::one_stack, gaps>, one_stack<source_alone_mask>},
        {"k-bert", "hidden tokens of a sentence whose words have facts",
         mask_token | Objective::ranks | Objective::scattered | Objective::trees, k_bert, knowledge},
        {"plm-shuffled", "the same by shuffled input, not told which place is next", none, plm_shuffled,
         one_stack<causal_mask>},
    };
    return encoder ? encoder_decoder_objectives() : all;
}

const Objective& find_objective(const std::string& name, const std::vector<Objective>& table) {
    return find_named(table, name, "objective", " of this model");
}

ObjectiveMixture ObjectiveMixture::parse(const std::string& words, const std::vector<Objective>& table) {
    ObjectiveMixture mixture;
    std::istringstream in(words);
    double sum = 0;
    for (std::string word; std::getline(in, word, ',');) {
        const std::size_t colon = word.find(':');
        const double weight = colon == std::string::npos ? 1 : weight_of(word.substr(colon + 1), words);
        mixture.parts.push_back({&find_objective(word.substr(0, colon), table), weight});
        sum += weight;
    }
    if (mixture.parts.empty()) find_objective(words, table);
    for (Part& part : mixture.parts) part.weight /= sum;
    return mixture;
}

const Objective& ObjectiveMixture::at(std::uint64_t seed, std::uint32_t step) const {
    Sequence random(seed, "objective", step);
    double u = random.uniform_double();
    for (const Part& part : parts) {
        if (u < part.weight) return *part.objective;
        u -= part.weight;
    }
    return *parts.back().objective;
}

const Objective* ObjectiveMixture::find(Objective::Trait trait) const {
    for (const Part& part : parts)
        if (part.objective->has(trait)) return part.objective;
    return nullptr;
}

}  // namespace masquerade
