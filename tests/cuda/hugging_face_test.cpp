// SPDX-License-Identifier: MIT
// Tests that a Hugging Face folder that is loaded onto the fake device and saved again has the same bytes as on the
// CPU. The host cannot access the memory of the fake device.
#include "engine/io/file.h"
#include "tests/cuda/fake_device.h"
#include "tests/models/runs/hugging_face.h"

using namespace masquerade;

namespace {

// Loads the model of a golden folder onto a device, saves it again, and returns the bytes of its weights.
std::string saved_from(const std::string& golden, Device device, DType storage, const TokenChoice& choice) {
    const std::string from = golden_folder(golden);
    BackboneOptions o = read_hugging_face_config(from).backbone;
    o.vocabulary = choice.size(o.vocabulary);
    Parameters parameters(storage, device);
    const Backbone backbone(parameters, o);
    parameters.allocate(5);
    load_hugging_face(from, backbone, parameters, choice);
    const TemporaryFolder folder;
    save_hugging_face(folder.path, backbone, parameters, Vocabulary({"[PAD]", "[UNK]"}));
    return read_file(folder.file("model.safetensors"));
}

}  // namespace

TEST_CASE("hugging face: onto a device and back") {
    FakeDevice device;
    TokenChoice choice;
    choice.keep = {0, 1, 9, 7};
    choice.compounds = {{2, 3, 3}, {}};
    choice.unk = 1;
    for (const TokenChoice& tokens : {TokenChoice(), choice})
        for (const char* golden : {"bert_shards", "roformer_value", "nomic_gelu", "nomic_2048"})
            for (DType storage : {DType::f32, DType::bf16}) {
                CAPTURE(std::string(golden));
                const std::string here = saved_from(golden, Device::cpu, storage, tokens);
                CHECK(here == saved_from(golden, Device::cuda, storage, tokens));
            }
}
