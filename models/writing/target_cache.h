// SPDX-License-Identifier: MIT
// The keys that writing keeps from step to step in each layer. The rows of the sources are made once; the rows of what
// is written lie in slots, one a prefix, one row a token, or one state for all tokens.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "data/sentences.h"
#include "engine/tensor/buffer.h"
#include "models/nets/backbone.h"
#include "models/writing/search.h"

namespace masquerade {

// One tensor (rows,columns) for every layer of a stack from `first` on.
class KeptKeys {
  public:
    // Room for states, or for the rows that the attention keeps; `cross`: the cross-attention's.
    void allocate(const Backbone& stack, const std::string& path, std::int64_t rows, int first = 0, bool states = false,
                  bool cross = false);
    void drop(int i) { layers_.at(std::size_t(i - first_)).value = nullptr; }  // of layer i nothing is kept
    // Null below the first layer, where nothing is allocated, and of a layer that was dropped.
    Tensor* layer(int i) {
        if (i < first_ || layers_.empty()) return nullptr;
        Tensor& kept = layers_.at(std::size_t(i - first_));
        return kept.value ? &kept : nullptr;
    }
    std::deque<Tensor>& all() { return layers_; }
    // All rows in order, and what layer i keeps in them: kv (rows,columns).
    Ints rows(Tape& tape) const { return tape.ints(rows_); }
    void keep(Tape& tape, int i, const Tensor* kv) { store_rows(kv->view(), rows(tape), layer(i)->view()); }

  private:
    int first_ = 0;
    std::vector<int> rows_;
    std::deque<Tensor> layers_;
    std::vector<Buffer> buffers_;
};

// The written rows of every prefix, in reading order: what is written from right to left fills its slot from the end.
class TargetCache {
  public:
    // Empty, with room for so many prefixes of at most `longest` tokens.
    void start(const Backbone& stack, int slots, int longest, bool backward = false);
    // The prefixes of this step: each keeps the slot of the one it continues; where several continue one, all but the
    // first get a copy of its rows.
    void follow(Tape& tape, const std::vector<NextToken::Row>& rows);
    // After follow(): the first row of prefix i, its next token among them, and where that goes.
    int first_row(std::size_t i) const { return row(slot_of_[i], backward_ ? written_ : 0); }
    std::vector<int> next_rows() const;
    Tensor* layer(int i) { return keys_.layer(i); }
    Tensor* cross(int i) { return cross_.layer(i); }  // states of cross-attention; null: there are none
    Tensor* near(int i) { return near_.layer(i); }    // rows beside the states; null: there are none
    std::vector<int> near_rows() const;               // of the prefixes
    bool states() const { return states_; }           // a state stands for all tokens of a prefix
    int written() const { return written_; }          // tokens of every prefix that are in it
    void advance() { written_++; }

  private:
    // The row of a token; tokens are counted as they are written.
    int row(int slot, int token) const {
        return states_ ? slot : slot * longest_ + (backward_ ? longest_ - 1 - token : token);
    }

    KeptKeys keys_, cross_, near_;
    bool backward_ = false, states_ = false;
    int slots_ = 0, longest_ = 0, written_ = 0, near_of_each_ = 0;
    std::vector<int> slot_of_;  // of the rows of the step before; empty before the first token
    std::vector<int> from_, to_, near_from_, near_to_;
};

}  // namespace masquerade
