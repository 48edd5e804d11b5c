// SPDX-License-Identifier: MIT
// What our readers make of files, for agree.py. A path on each line of the input, and an object of JSON on each line of
// the output: {"refused": message}, or what was read. The argument `own FILE` writes a small safetensors file of our
// own.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/error.h"
#include "engine/io/safetensors.h"
#include "input/input.h"

using namespace masquerade;
using nlohmann::json;

namespace {

json tensors_of(const std::string& path) {
    const TensorFile file(path);
    json tensors = json::object();
    for (const StoredTensor& tensor : file.tensors()) {
        const auto* data = static_cast<const unsigned char*>(tensor.data);
        json entry = {{"bytes", std::vector<unsigned char>(data, data + tensor.bytes())}};
        if (tensor.unreadable.empty()) {
            entry["dtype"] = name_of(tensor.element);
            entry["shape"] = std::vector<std::int64_t>(tensor.shape.size, tensor.shape.size + tensor.shape.rank);
        } else {
            entry["unreadable"] = tensor.unreadable;
        }
        tensors[tensor.name] = entry;
    }
    return {{"metadata", file.metadata()}, {"tensors", tensors}};
}

json answer(const std::string& path, bool tensors) {
    try {
        return {{"read", tensors ? tensors_of(path) : parse_input<BadInput>(read_input<BadInput>(path), path)}};
    } catch (const BadInput& error) {
        return {{"refused", error.what()}};
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 3) {
        write_safetensors(arguments[2],
                          {stored("d", std::vector<double>{1.5, -2}), stored("n", std::vector<std::uint64_t>{7})},
                          {{"step", "3"}});
        return 0;
    }
    for (std::string path; std::getline(std::cin, path);)
        std::cout << answer(path, path.substr(path.rfind('.')) == ".safetensors")
                         .dump(-1, ' ', false, json::error_handler_t::replace)
                  << '\n';
}
