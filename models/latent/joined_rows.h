// SPDX-License-Identifier: MIT
// The rows of one tensor from all parts of a batch (TrainOptions::parts), in the order of the parts, from all
// processes.
#pragma once
#include <string>

#include "engine/base/processes.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/copy.h"

namespace masquerade {

class JoinedRows {
  public:
    // Keeps a copy of the first `count` rows of a part. Row i is the slice with index i in the first dimension.
    void keep(const View& rows, int count) { append(rows.data, rows.device, count * bytes_of_row(rows), rows.device); }
    bool empty() const { return used_ == 0; }
    // Returns the kept rows of process 0, then those of process 1 and so on, and forgets them. `like` has the type, the
    // device and, but for the first dimension, the shape of the rows. The view is valid until the next keep().
    View take(View like) {
        like.shape.size[0] = 1;
        if (!alone()) join_all(like.device);
        like.data = all_.data();
        like.shape.size[0] = std::int64_t(used_ / like.bytes());
        used_ = 0;
        return like;
    }

  private:
    static std::size_t bytes_of_row(const View& rows) { return rows.bytes() / rows.shape[0]; }
    void join_all(Device device) {
        std::string mine(used_, 0);
        copy_bytes(all_.data(), device, mine.data(), Device::cpu, used_);
        used_ = 0;
        for (const std::string& rows : gather_messages(mine)) append(rows.data(), Device::cpu, rows.size(), device);
    }
    // The memory only grows, because freeing memory of a GPU waits until all work is done.
    void append(const void* rows, Device from, std::size_t bytes, Device device) {
        if (used_ + bytes > all_.bytes()) {
            Buffer larger(2 * (used_ + bytes), device);
            copy_bytes(all_.data(), device, larger.data(), device, used_);
            all_ = std::move(larger);
        }
        copy_bytes(rows, from, static_cast<char*>(all_.data()) + used_, device, bytes);
        used_ += bytes;
    }

    Buffer all_;
    std::size_t used_ = 0;  // bytes of the kept rows
};

}  // namespace masquerade
