// SPDX-License-Identifier: MIT
#include "models/runs/hugging_face/weights.h"

#include <climits>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/io/file.h"
#include "models/runs/hugging_face/names.h"

namespace masquerade {
namespace fs = std::filesystem;

WeightFiles::WeightFiles(const std::string& folder) : path_(folder + "/model.safetensors") {
    if (fs::exists(path_)) {
        add(path_);
        return;
    }
    path_ += ".index.json";
    if (!fs::exists(path_)) file_of(folder, "model.safetensors");  // says what is missing
    const nlohmann::json index = read_json(path_);
    auto map = index.is_object() ? index.find("weight_map") : index.end();
    if (map == index.end() || !map->is_object())
        throw BadInput(text(
            path_, " has no object \"weight_map\": tensors and the shards they lie in are expected there"));
    std::set<std::string> shards;
    for (const auto& [name, shard] : map->items()) {
        const std::string file = shard.is_string() ? shard.get<std::string>() : "";
        if (file.empty() || file.size() > NAME_MAX || file.find('/') != file.npos)
            throw BadInput(text(path_, ": weight_map.", clipped(name, 200), " is ", in_words(shard),
                                "; the name of a file in the same folder is expected"));
        shards.insert(file);
    }
    for (const std::string& shard : shards) add(folder + "/" + shard);
    for (const auto& [name, shard] : map->items())
        if (!has(name) || holder(name)->path() != folder + "/" + shard.get<std::string>())
            throw BadInput(text(path_, " puts ", clipped(name, 200), " into ",
                                clipped(shard.get<std::string>()),
                                ", which does not hold it; copy the folder again"));
}

const TensorFile* WeightFiles::holder(const std::string& name) const {
    const auto found = holders_.find(name);
    return found == holders_.end() ? nullptr : found->second;
}

void WeightFiles::add(const std::string& path) {
    files_.push_back(std::make_unique<TensorFile>(path));
    for (const StoredTensor& tensor : files_.back()->tensors())
        if (const auto [other, fresh] = holders_.emplace(tensor.name, files_.back().get()); !fresh)
            throw BadInput(text(path, " holds the tensor ", clipped(tensor.name, 200), ", and so does ",
                                other->second->path(), "; each tensor once is expected"));
}

}  // namespace masquerade
