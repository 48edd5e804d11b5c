// SPDX-License-Identifier: MIT
#include "engine/io/checkpoint.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/io/checksum.h"
#include "engine/io/file.h"
#include "engine/tensor/numbers.h"

namespace masquerade {
namespace {

// Returns the checksum of a file, in hexadecimal digits.
std::string digits_of(const std::string& file) {
    const std::string bytes = read_file(file);
    return hexadecimal(checksum(bytes.data(), bytes.size(), 0));
}

// Returns the string under `key`, or "" if the key is absent. Throws BadInput if the value is no string or is empty.
std::string said_by(const nlohmann::json& object, const char* key, const std::string& path) {
    const auto found = object.find(key);
    if (!object.is_object() || found == object.end()) return "";
    if (found->is_string() && !found->get_ref<const std::string&>().empty()) return *found;
    throw BadInput(path, ": ", key, " is ", in_words(*found), "; a text is expected: was it edited?");
}

std::string said_by(const TensorFile& file, const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? "" : found->second;
}

// Returns true if both entries exist and differ. "" stands for a missing entry.
bool differ(const std::string& a, const std::string& b) { return !a.empty() && !b.empty() && a != b; }

}  // namespace

std::uint64_t checksum_of(const Parameters& parameters) {
    const OnHost values(parameters.values());
    std::uint64_t sum = 0;
    for (const Tensor& p : parameters.all()) {
        const View weights = parameters.slice(values.view(), p);
        sum = checksum(weights.data, weights.bytes(), sum);
    }
    return sum;
}

void write_model(const std::string& folder, std::int64_t step, const Parameters& parameters) {
    const OnHost values(parameters.values());
    std::vector<StoredTensor> weights;
    for (const Tensor& p : parameters.all()) weights.push_back(stored(p.path, parameters.slice(values.view(), p)));
    write_safetensors(
        folder + "/model.safetensors", weights,
        {{"format", "pt"}, {"step", std::to_string(step)}, {"config", digits_of(folder + "/config.json")}});
}

Metadata state_of(const Parameters& parameters) { return {{"model", hexadecimal(checksum_of(parameters))}}; }

TensorFile open_model(const RunFolder& folder, std::int64_t step) {
    const std::string config = folder.step_folder(step) + "/config.json", record = folder.record_file();
    TensorFile model(folder.step_folder(step) + "/model.safetensors");
    if (const std::string said = said_by(model, "step"); differ(said, std::to_string(step)))
        throw BadInput(model.path(), " holds the weights of step ", clipped(said), "; expected those of step ", step,
                       ": restore the file, or rename its folder as it was");
    if (differ(said_by(model, "config"), digits_of(config)))
        throw BadInput(
            config,
            " is not the file that was saved with the weights beside it: restore that file, or use another step");
    // The salt is a text that identifies a run.
    const std::string ours = std::filesystem::exists(record) ? said_by(read_json(record), "salt", record) : "",
                      saved_in = said_by(read_json(config), "salt", config);
    if (differ(ours, saved_in))
        throw BadInput(config, " was saved in the run ", clipped(saved_in), ", but ", record, " is of the run ",
                       clipped(ours), "; a run reads only its own steps: move the step back into its run");
    return model;
}

TensorFile open_state(const RunFolder& folder, std::int64_t step, const Parameters& parameters) {
    TensorFile state(folder.step_folder(step) + "/state.safetensors");
    if (differ(said_by(state, "model"), hexadecimal(checksum_of(parameters))))
        throw BadInput(state.path(),
                       " belongs to other weights than model.safetensors beside it: restore the file that was "
                       "saved with them, use another step, or start a new run with --init ",
                       folder.step_folder(step));
    return state;
}

void expect_shapes(const TensorFile& file, const Parameters& parameters) {
    for (const Tensor& p : parameters.all()) file.expect(p.path, p.shape, parameters.dtype());
}

void read_weights(const TensorFile& file, Parameters& parameters) {
    for (const Tensor& p : parameters.all()) {
        file.copy_to(p.path, parameters.master(p));
        file.expect_finite(p.path);
    }
    parameters.round();
}

}  // namespace masquerade
