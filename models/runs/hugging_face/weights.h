// SPDX-License-Identifier: MIT
// The tensors of a folder, in one file or in shards, for models/runs/hugging_face/*.cpp.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/io/safetensors.h"

namespace masquerade {

class WeightFiles {
  public:
    // model.safetensors, or else the shards that model.safetensors.index.json names. BadInput.
    explicit WeightFiles(const std::string& folder);

    // The file that holds a tensor, or null.
    const TensorFile* holder(const std::string& name) const;
    bool has(const std::string& name) const { return holder(name) != nullptr; }
    const std::vector<std::unique_ptr<TensorFile>>& files() const { return files_; }
    const std::string& path() const { return path_; }  // of the file, or of the index
    std::size_t count() const { return holders_.size(); }

  private:
    void add(const std::string& path);
    std::string path_;
    std::vector<std::unique_ptr<TensorFile>> files_;
    std::unordered_map<std::string, const TensorFile*> holders_;
};

}  // namespace masquerade
