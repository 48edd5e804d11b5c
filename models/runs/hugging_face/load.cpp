// SPDX-License-Identifier: MIT
#include <climits>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "engine/io/file.h"
#include "engine/tensor/numbers.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "models/runs/hugging_face/names.h"

namespace masquerade {
namespace {
namespace fs = std::filesystem;

// The tensors of a checkpoint's folder, in one file or in several (shards).
class WeightFiles {
  public:
    // Opens model.safetensors or, if there is none, the shards that model.safetensors.index.json names. Throws BadInput
    // if these files are missing or contradict each other.
    explicit WeightFiles(const std::string& folder) : path_(folder + "/model.safetensors") {
        if (fs::exists(path_)) {
            add(path_);
            return;
        }
        path_ += ".index.json";
        if (!fs::exists(path_)) file_of(folder, "model.safetensors");  // throws and says what is missing
        const nlohmann::json index = read_json(path_);
        auto map = index.is_object() ? index.find("weight_map") : index.end();
        if (map == index.end() || !map->is_object())
            throw BadInput(path_,
                           " has no object \"weight_map\": tensors and the shards they lie in are expected there");
        std::set<std::string> shards;
        for (const auto& [name, shard] : map->items()) {
            const std::string file = shard.is_string() ? shard.get<std::string>() : "";
            if (file.empty() || file.size() > NAME_MAX || file.find('/') != file.npos)
                throw BadInput(path_, ": weight_map.", clipped(name, 200), " is ", in_words(shard),
                               "; the name of a file in the same folder is expected");
            shards.insert(file);
        }
        for (const std::string& shard : shards) add(folder + "/" + shard);
        for (const auto& [name, shard] : map->items())
            if (!has(name) || holder(name)->path() != folder + "/" + shard.get<std::string>())
                throw BadInput(path_, " puts ", clipped(name, 200), " into ", clipped(shard.get<std::string>()),
                               ", which does not hold it; copy the folder again");
    }
    // Returns the file that contains a tensor, or null.
    const TensorFile* holder(const std::string& name) const {
        const auto found = holders_.find(name);
        return found == holders_.end() ? nullptr : found->second;
    }
    bool has(const std::string& name) const { return holder(name) != nullptr; }
    const std::vector<std::unique_ptr<TensorFile>>& files() const { return files_; }
    const std::string& path() const { return path_; }  // path of the only file, or of the index
    std::size_t count() const { return holders_.size(); }

  private:
    void add(const std::string& path) {
        files_.push_back(std::make_unique<TensorFile>(path));
        for (const StoredTensor& tensor : files_.back()->tensors())
            if (const auto [other, fresh] = holders_.emplace(tensor.name, files_.back().get()); !fresh)
                throw BadInput(path, " holds the tensor ", clipped(tensor.name, 200), ", and so does ",
                               other->second->path(), "; each tensor once is expected");
    }

    std::string path_;
    std::vector<std::unique_ptr<TensorFile>> files_;
    std::unordered_map<std::string, const TensorFile*> holders_;
};

// Throws BadInput if the folder and the model differ in an option that shapes of tensors may not show. Without this
// check, the model would compute wrong results with the folder's weights.
void check_same(const std::string& path, const BackboneOptions& folder, const BackboneOptions& model) {
    auto same = [&](const char* key, const auto& found, const auto& expected) {
        if (found != expected)
            throw BadInput(std::boolalpha, path, ": ", key, " is ", found, ", the model's is ", expected,
                           "; make the model from the folder's config");
    };
    auto gelu = [](GeluKind kind) { return text(kind == GeluKind::erf ? "gelu (by erf)" : "gelu_new (by tanh)"); };
    auto layout = [](const BackboneOptions& o) {
        const HuggingFaceFamily* family = family_of(o);
        return text(family ? family->type : "none", o.rotary_value ? " with rotary_value" : "");
    };
    if (model.pre_norm)
        throw BadInput(path,
                       " describes post-LN layers, as all of Hugging Face's BERTs have; the model's are pre-LN "
                       "(pre_norm), for which these weights mean nothing");
    same("model_type", layout(folder), layout(model));
    same("norm", folder.norm, model.norm);
    same("ffn", folder.ffn, model.ffn);
    same("bias", folder.bias, model.bias);
    same("head_bias", folder.biased_head(), model.biased_head());
    same("kv_heads", folder.heads, model.kv_heads > 0 ? model.kv_heads : folder.heads);
    if (folder.rotary) same("rope_theta", folder.rotary_base, model.rotary_base);
    same("hidden_size", folder.width, model.width);
    same("num_attention_heads", folder.heads, model.heads);
    same("hidden_act", gelu(folder.gelu), gelu(model.gelu));
    same("layer_norm_eps", folder.eps, model.eps);
}

class Loader {
  public:
    Loader(const std::string& folder, const Backbone& backbone, Parameters& parameters, const TokenChoice& choice,
           std::uint64_t seed)
        : config_path_(file_of(folder, "config.json")),
          config_(read_hugging_face_config(folder)),
          model_(backbone.options),
          parameters_(parameters),
          choice_(choice),
          seed_(seed),
          files_(folder) {
        check_same(config_path_, config_.backbone, model_);
        choice_.check(config_.backbone.vocabulary, config_.pad);
        if (const int V = choice_.size(config_.backbone.vocabulary); V != model_.vocabulary)
            throw BadInput(config_path_, ": vocab_size is ", config_.backbone.vocabulary, ", of which ", V,
                           " tokens are chosen; the model has ", model_.vocabulary,
                           ". Make it with as many, or choose others");
        find_prefix();
    }

    HuggingFaceWeights load() {
        HuggingFaceWeights loaded;
        loaded.head = has_head();
        check_tied(loaded.head);
        for (const HuggingFaceName& name : hugging_face_names(model_))
            head_is_biased_ |= name.zeros > 0 && !find(name).name.empty();
        for (const HuggingFaceName& name : hugging_face_names(model_))
            if (loaded.head || !name.of_head()) expect(name);
        // Memory is allocated after the checks, because wrong sizes in config.json could request any amount of memory.
        if (!parameters_.values().data) parameters_.allocate(seed_);
        for (const HuggingFaceName& name : hugging_face_names(model_))
            if (loaded.head || !name.of_head()) take(name);
        parameters_.round();
        for (const auto& file : files_.files())
            for (const StoredTensor& tensor : file->tensors()) {
                loaded.tensors.push_back(
                    {tensor.name, tensor.element, tensor.shape, tensor.unreadable, places_[tensor.name]});
                if (loaded.tensors.back().place.empty()) loaded.unused.push_back(tensor.name);
            }
        return loaded;
    }

  private:
    void find_prefix() {
        std::string tried;
        for (const HuggingFaceFamily& family : hugging_face_families()) {
            prefix_ = text(family.type, ".");
            if (files_.has(prefix_ + word_embeddings)) return;
            tried += text(", nor with \"", prefix_, "\" before it");
        }
        prefix_ = "";
        if (!files_.has(word_embeddings))
            throw BadInput(files_.path(), " has no ", word_embeddings, " among its ", files_.count(), " tensors", tried,
                           "; the weights of a BERT, RoFormer or NomicBERT are expected");
    }

    bool has_head() const {
        for (const auto& file : files_.files())
            for (const StoredTensor& tensor : file->tensors())
                if (tensor.name.compare(0, 16, "cls.predictions.") == 0) return true;
        return false;
    }

    // A tensor in the files, and the rows of this tensor that belong to a parameter.
    struct Found {
        std::string name;  // empty: the files have no such tensor
        RowPart rows;
    };
    // Looks for a tensor under HuggingFaceName::name, then under old_name.
    Found find(const HuggingFaceName& name) const {
        const std::string prefix = name.of_head() ? "" : prefix_;
        if (files_.has(prefix + name.name)) return {prefix + name.name, {}};
        if (!name.old_name.empty() && files_.has(prefix + name.old_name))
            return {prefix + name.old_name, name.old_rows};
        return {};
    }

    const Tensor& parameter_of(const HuggingFaceName& name) const {
        if (const Tensor* parameter = parameters_.find(name.path)) return *parameter;
        throw Error("the parameters lack ", name.path, "; those of the backbone are expected");
    }

    // Throws BadInput if the tensor `name` has a wrong shape, or if the files lack it. A bias with name.zeros > 0 may
    // be missing if the files have none of these biases. Records in places_ which parameter will be read from the
    // tensor.
    void expect(const HuggingFaceName& name) {
        const Tensor& parameter = parameter_of(name);
        const auto [found, rows] = find(name);
        Shape shape = name.rows.of({nullptr, parameter.dtype, Device::cpu, parameter.shape, ""}).shape;
        if (by_token(name)) shape.size[0] = config_.backbone.vocabulary;
        shape.size[0] *= rows.parts;
        if (found.empty() && name.zeros > 0 && !head_is_biased_) return;
        if (found.empty())
            throw BadInput(files_.path(), " has no tensor ", name.of_head() ? "" : prefix_, name.name, " ", shape,
                           ", which the model needs for ", name.place(),
                           "; do config.json and the weights come from "
                           "one model?");
        const TensorFile& file = *files_.holder(found);
        const StoredTensor& tensor = file.at(found);
        if (tensor.shape != shape)
            throw BadInput(file.path(), ": tensor ", found, " is ", tensor.shape, "; ", shape, " is expected for ",
                           name.place(), ". Set the sizes in ", config_path_,
                           " right, or take both files from one "
                           "model");
        std::string& place = places_[found];
        place += (place.empty() ? "" : "; ") + name.place();
    }

    static bool by_token(const HuggingFaceName& name) { return name.name == word_embeddings || name.name == head_bias; }

    // Reads the tensor `name` into the rows of its parameter; if the files lack the tensor, the rows are set to 0. If
    // the tensor has a row for each token, choose_rows() first computes the rows of the new model's tokens.
    void take(const HuggingFaceName& name) const {
        const auto [found, rows] = find(name);
        const View to = name.rows.of(parameters_.master(parameter_of(name)));
        if (found.empty()) return write_numbers(to, Numbers(name.zeros).data());
        const TensorFile& file = *files_.holder(found);
        file.expect_finite(found, to.dtype);
        const bool chosen = by_token(name) && !(choice_.keep.empty() && choice_.compounds.empty());
        if (!chosen && !name.half_split && rows.parts == 1) return file.convert_to(found, to);
        const Shape& shape = file.at(found).shape;
        Numbers all(shape.count());
        const View whole{all.data(), DType::f64, Device::cpu, shape, found.c_str()};
        file.convert_to(found, whole);
        if (chosen) return write_numbers(to, choose_rows(choice_, all, int(shape[0])).data());
        const View some = rows.of(whole);
        if (!name.half_split) return write_numbers(to, some.as<double>());
        Numbers ordered(some.count());
        reorder_heads(some, ordered.data(), model_.width / model_.heads, false);
        write_numbers(to, ordered.data());
    }

    // Throws BadInput if the output matrix differs from the word embeddings, because a Backbone has a single matrix for
    // both. Also throws BadInput if tie_word_embeddings is false and the files have a head without an output matrix, or
    // if the tensors under the two names of the output bias differ.
    void check_tied(bool head) {
        if (!config_.tied && head && !files_.has(tied_matrix))
            throw BadInput(config_path_, ": tie_word_embeddings is false, and ", files_.path(), " has no ", tied_matrix,
                           " that could be the embedding all the same; only tied models are read");
        check_equal(tied_matrix, prefix_ + word_embeddings);
        check_equal(tied_bias, head_bias);
    }
    void check_equal(const std::string& second, const std::string& first) {
        if (!files_.has(second) || !files_.has(first)) return;
        const StoredTensor &a = files_.holder(first)->at(first), &b = files_.holder(second)->at(second);
        if (a.shape != b.shape || a.element != b.element || std::memcmp(a.data, b.data, a.bytes()) != 0)
            throw BadInput(files_.path(), ": ", second, " ", b.shape, " is not ", first, " ", a.shape,
                           " once more; only models that tie the two are read");
        places_[second] = "as " + first;
    }

    const std::string config_path_;
    const HuggingFaceConfig config_;
    const BackboneOptions& model_;
    Parameters& parameters_;
    const TokenChoice& choice_;
    const std::uint64_t seed_;
    const WeightFiles files_;
    std::string prefix_;
    bool head_is_biased_ = false;  // whether the files have any bias that may be missing (HuggingFaceName::zeros)
    std::map<std::string, std::string> places_;  // for each tensor, the parameters that are read from it
};

}  // namespace

HuggingFaceWeights load_hugging_face(const std::string& folder, const Backbone& backbone, Parameters& parameters,
                                     const TokenChoice& choice, std::uint64_t seed) {
    return Loader(folder, backbone, parameters, choice, seed).load();
}

}  // namespace masquerade
