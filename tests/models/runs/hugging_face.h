// SPDX-License-Identifier: MIT
// Helpers for the tests of Hugging Face folders: the folders in tests/golden/hugging_face, changed copies of them, and
// models that are loaded from them.
#pragma once
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/tape/tape.h"
#include "engine/io/file.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "tests/folder.h"

namespace masquerade {

inline std::string golden_folder(const std::string& name) { return "tests/golden/hugging_face/" + name; }

// A copy of a golden folder, whose files a test may change.
struct ChangedFolder : TemporaryFolder {
    explicit ChangedFolder(const std::string& golden) {
        for (const auto& entry : std::filesystem::directory_iterator(golden_folder(golden)))
            std::filesystem::copy(entry, file(entry.path().filename().string()));
    }
    void config(const std::function<void(nlohmann::json&)>& change) const {
        nlohmann::json config = read_json(file("config.json"));
        change(config);
        write("config.json", config.dump());
    }
    // Adds or replaces a tensor of f32 numbers. If the shape is empty, removes the tensor.
    void tensor(const std::string& name, const Shape& shape, float value = 0) const {
        const TensorFile old(file("model.safetensors"));
        std::vector<StoredTensor> tensors;
        for (const StoredTensor& t : old.tensors())
            if (t.name != name) tensors.push_back(t);
        const std::vector<float> numbers(std::size_t(shape.count()), value);
        if (shape.rank > 0) tensors.push_back({name, Element::f32, shape, numbers.data()});
        write_safetensors(file("model.safetensors"), tensors);
    }
};

struct LoadedModel {
    Parameters parameters;
    Backbone backbone;
    HuggingFaceWeights weights;

    // `change` is called on the options that the folder's config gives, before the model is made.
    explicit LoadedModel(
        const std::string& folder, DType type = DType::f32, const TokenChoice& choice = {},
        const std::function<void(BackboneOptions&)>& change = [](BackboneOptions&) {})
        : parameters(type), backbone(parameters, options(folder, choice, change)) {
        parameters.allocate(5);
        weights = load_hugging_face(folder, backbone, parameters, choice);
    }
    static BackboneOptions options(const std::string& folder, const TokenChoice& choice,
                                   const std::function<void(BackboneOptions&)>& change) {
        BackboneOptions o = read_hugging_face_config(folder).backbone;
        o.vocabulary = choice.size(o.vocabulary);
        change(o);
        return o;
    }
    View master(const std::string& path) const { return parameters.master(*parameters.find(path)); }
};

inline bool same_bits(const Parameters& a, const Parameters& b) {
    if (a.all().size() != b.all().size() || a.dtype() != b.dtype()) return false;
    for (const Tensor& t : a.all()) {
        const Tensor* other = b.find(t.path);
        if (!other || other->shape != t.shape) return false;
        const View x = a.master(t), y = b.master(*other);
        if (std::memcmp(x.data, y.data, x.bytes()) != 0) return false;
    }
    return true;
}

}  // namespace masquerade
