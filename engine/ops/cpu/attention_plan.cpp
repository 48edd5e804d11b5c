// SPDX-License-Identifier: MIT
#include "engine/ops/cpu/attention_plan.h"

#include "engine/ops/visible.h"

#include <algorithm>
#include <utility>

namespace masquerade::cpu {
namespace {
using vectors::lanes;
static_assert(lanes <= 16, "a word of DocumentPlan::toggled has 16 lanes");

void number_keys(const SegmentGraph& graph, DocumentRange document, DocumentPlan& plan) {
    if (plan.numbered.size() < graph.keys.size()) {
        plan.numbered.resize(graph.keys.size(), 0);
        plan.first_row.resize(graph.keys.size());
    }
    plan.key_segments.clear();
    plan.rows = 0;
    for (int i = document.first; i < document.last; i++) {
        const bool joined = i > document.first && graph.queries[i].document != graph.queries[i - 1].document;
        const int common = joined ? common_rows(graph, i) : -1;
        for (int v = graph.queries[i].sees_begin; v < graph.queries[i].sees_end; v++) {
            int index = graph.sees[v];
            if (plan.numbered[index]) continue;
            if (v - graph.queries[i].sees_begin == common) {
                plan.first_row[index] = plan.first_row[graph.sees[graph.queries[i - 1].sees_begin + common]];
                continue;
            }
            plan.numbered[index] = 1;
            plan.key_segments.push_back(index);
            plan.first_row[index] = plan.rows;
            plan.rows += graph.keys[index].end - graph.keys[index].begin;
        }
    }
    for (int index : plan.key_segments) plan.numbered[index] = 0;
}

void add_run(DocumentPlan& plan, QueryBlock& block, int key, int channel, int count, unsigned seen_by) {
    if (count == 0) return;
    block.visits += count;
    block.seeing |= seen_by;
    if (block.first_run < int(plan.runs.size())) {
        KeyRun& last = plan.runs.back();
        if (last.seen_by == seen_by && last.key + last.count == key && last.channel + last.count == channel) {
            last.count += count;
            return;
        }
    }
    plan.runs.push_back({key, channel, count, seen_by});
}

// The lanes [lane, lane + count) of a block are the query rows [row, row + count) of a query segment.
struct LanesOfSegment {
    const QuerySegment& segment;
    int lane, row, count;
    unsigned bits() const { return ((1u << count) - 1) << lane; }
};

// Adds the runs of key segment `index` for the lanes of one query segment, that is, its ranges of keys that the same
// lanes see. This function is for a key segment of which some of these lanes do not see all keys. At each position
// where a query begins or stops seeing keys, the bit of this query is toggled. Between two neighbouring positions of
// this kind, the queries whose bits are set see the keys. The time depends mainly on the number of runs, not on the
// number of keys, so that narrow windows are cheap.
void add_toggled_runs(const SegmentGraph& graph, const LanesOfSegment& some, int index, int first_channel,
                      DocumentPlan& plan, QueryBlock& block) {
    const KeySegment& key = graph.keys[index];
    const int size = key.end - key.begin;
    if (int(plan.toggled.size()) <= size) {
        plan.toggled.resize(size + 1, 0);
        plan.changes.resize(size / 64 + 1, 0);
    }
    int first = size, last = 0;
    for (int i = 0; i < some.count; i++)
        each_run(graph, some.segment, some.row + i, index, [&](int begin, int end) {
            for (int place : {begin - key.begin, end - key.begin}) {
                plan.toggled[place] ^= std::uint16_t(1u << (some.lane + i));
                plan.changes[place / 64] |= std::uint64_t(1) << place % 64;
            }
            first = std::min(first, begin - key.begin);
            last = std::max(last, end - key.begin);
        });
    unsigned now = 0;
    for (int word = first / 64, begin = first; word <= last / 64; word++)
        for (std::uint64_t& bits = plan.changes[word]; bits; bits &= bits - 1) {
            const int place = word * 64 + __builtin_ctzll(bits);
            if (now) add_run(plan, block, plan.first_row[index] + begin, first_channel + begin, place - begin, now);
            now ^= plan.toggled[place];
            plan.toggled[place] = 0;
            begin = place;
        }
}

// Adds the runs of the key segments that these lanes see, from the segment number `from` in their list on.
void add_runs(const SegmentGraph& graph, const LanesOfSegment& some, int from, DocumentPlan& plan, QueryBlock& block) {
    const QuerySegment& segment = some.segment;
    int next = 0;  // channel of the first key of the next segment
    for (int v = segment.sees_begin; v < segment.sees_end; v++) {
        const int index = graph.sees[v];
        const KeySegment& key = graph.keys[index];
        const int channel = std::exchange(next, next + AttentionDropout::channels_of(key));
        if (v < segment.sees_begin + from) continue;
        if (sees_whole(segment, index))
            add_run(plan, block, plan.first_row[index], channel, key.end - key.begin, some.bits());
        else
            add_toggled_runs(graph, some, index, channel, plan, block);
    }
}

// Returns the end of the range of query segments, from s on, that share one block. Each of them belongs to another
// document than the one before (the documents were joined), their rows follow one another and fit into the lanes, and
// each sees the same rows, as a whole, as its first key segment. A lane still adds its keys in the order of its own
// list.
int end_of_shared_block(const SegmentGraph& graph, DocumentRange document, int s) {
    const auto sees_first = [&](const QuerySegment& q) {
        return q.begin < q.end && q.sees_begin < q.sees_end && sees_whole(q, graph.sees[q.sees_begin]);
    };
    int end = s + 1;
    while (end < document.last && graph.queries[end].document != graph.queries[end - 1].document &&
           graph.queries[end].begin == graph.queries[end - 1].end &&
           graph.queries[end].end - graph.queries[s].begin <= lanes && common_rows(graph, end) == 0 &&
           sees_first(graph.queries[end]) && sees_first(graph.queries[s]))
        end++;
    return end;
}

}  // namespace

const DocumentPlan& plan_document(const AttentionCall& call, DocumentRange document) {
    thread_local DocumentPlan plan;
    const SegmentGraph& graph = call.graph;
    number_keys(graph, document, plan);
    plan.blocks.clear();
    plan.runs.clear();
    plan.most_visits = plan.queries = 0;
    const auto add_block = [&](int row, int count, auto add_runs_of_block) {
        const int runs = int(plan.runs.size());
        QueryBlock block{row, count, runs, runs, 0, (1u << count) - 1, 0};
        add_runs_of_block(block);
        block.last_run = int(plan.runs.size());
        plan.queries += count;
        plan.most_visits = std::max(plan.most_visits, block.visits);
        plan.blocks.push_back(block);
    };
    for (int s = document.first, end; s < document.last; s = end) {
        end = end_of_shared_block(graph, document, s);
        const QuerySegment& segment = graph.queries[s];
        const int row = segment.begin;
        if (end == s + 1) {
            for (int r = row; r < segment.end; r += lanes) {
                const int count = std::min(lanes, segment.end - r);
                add_block(r, count, [&](QueryBlock& block) {
                    add_runs(graph, {segment, 0, r, count}, 0, plan, block);
                });
            }
            continue;
        }
        add_block(row, graph.queries[end - 1].end - row, [&](QueryBlock& block) {
            const int first = graph.sees[segment.sees_begin];
            const KeySegment& common = graph.keys[first];
            add_run(plan, block, plan.first_row[first], 0, common.end - common.begin, block.everyone);
            for (int i = s; i < end; i++) {
                const QuerySegment& q = graph.queries[i];
                add_runs(graph, {q, q.begin - row, q.begin, q.end - q.begin}, 1, plan, block);
            }
        });
    }
    return plan;
}

}  // namespace masquerade::cpu
