// SPDX-License-Identifier: MIT
#include "models/runs/hugging_face/weights.h"

#include <climits>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/io/file.h"
#include "models/runs/hugging_face/config.h"

namespace masquerade {
namespace fs = std::filesystem;
namespace {

// In single quotes, for a shell.
std::string quoted(const std::string& path) {
    std::string q = "'";
    for (char c : path) q += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return q + "'";
}

// Paths come as arguments: no name of a folder can break the program.
std::string pickle_line(const std::string& folder) {
    return "python3 -c \"import sys, torch; from safetensors.torch import save_file; "
           "save_file({k: v.contiguous().clone() for k, v in torch.load(sys.argv[1] + '/pytorch_model.bin', "
           "map_location='cpu', weights_only=True).items()}, sys.argv[1] + '/model.safetensors', {'format': "
           "'pt'})\" " +
           quoted(folder);
}

std::string tensorflow_line(const std::string& folder) {
    return "python3 -c \"import json, re, sys, tensorflow as tf; from safetensors.numpy import save_file; "
           "f = sys.argv[1]; r = tf.train.load_checkpoint(f + '/bert_model.ckpt'); "
           "n = lambda k: re.sub('(embeddings|output_weights)$', lambda m: m[0] + '.weight', "
           "k.replace('/', '.').replace('layer_', 'layer.').replace('kernel', 'weight')"
           ".replace('output_bias', 'bias').replace('encoder.embedding_hidden_mapping_in', "
           "'embeddings_project')); "
           "save_file({n(k): (lambda x: x.T if k.endswith('kernel') else x)(r.get_tensor(k)).copy() for k in "
           "r.get_variable_to_shape_map() if not re.search('adam_[mv]$|global_step', k)}, f + "
           "'/model.safetensors'); "
           "c = json.load(open(f + '/bert_config.json')); c.setdefault('model_type', 'bert' if "
           "r.has_tensor('bert/embeddings/position_embeddings') else 'roformer'); "
           "json.dump(c, open(f + '/config.json', 'w'))\" " +
           quoted(folder);
}

}  // namespace

void refuse_folder(const std::string& folder, const std::string& missing) {
    auto has = [&](const char* name) { return fs::exists(folder + "/" + name); };
    const std::string found = text("there is no ", folder, "/", missing);
    if (missing != "config.json" && has("pytorch_model.bin"))
        throw BadInput(
            text(found,
                 ", only pytorch_model.bin, a pickle of PyTorch's, which is not read here; convert it "
                 "once: ",
                 pickle_line(folder)));
    if (missing != "config.json" && has("pytorch_model.bin.index.json"))
        throw BadInput(
            text(found,
                 ", only the shards of pytorch_model.bin.index.json, pickles of PyTorch's, which are not "
                 "read here; load the model with transformers and save it anew"));
    if (has("bert_model.ckpt.index"))
        throw BadInput(
            text(found,
                 ", only bert_model.ckpt, a checkpoint of TensorFlow's, which is not read here; convert "
                 "it once: ",
                 tensorflow_line(folder)));
    throw BadInput(text(
        found, "; a folder of Hugging Face's with config.json, model.safetensors and vocab.txt is expected"));
}

WeightFiles::WeightFiles(const std::string& folder) : path_(folder + "/model.safetensors") {
    if (fs::exists(path_)) {
        add(path_);
        return;
    }
    path_ += ".index.json";
    if (!fs::exists(path_)) refuse_folder(folder, "model.safetensors");
    const nlohmann::json index = read_json(path_);
    auto map = index.is_object() ? index.find("weight_map") : index.end();
    if (map == index.end() || !map->is_object())
        throw BadInput(text(
            path_, " has no object \"weight_map\": tensors and the shards they lie in are expected there"));
    std::set<std::string> shards;
    for (const auto& [name, shard] : map->items()) {
        if (!shard.is_string())
            throw BadInput(text(path_, ": weight_map.", clipped(name, 200), " is ", in_words(shard),
                                "; the name of a file is expected"));
        shards.insert(shard.get<std::string>());
        const std::string& file = shard.get_ref<const std::string&>();
        if (file.empty() || file.size() > NAME_MAX || file.find('/') != file.npos)
            throw BadInput(text(path_, ": weight_map.", clipped(name, 200), " is ", in_words(shard),
                                "; a file in the same folder is expected"));
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
