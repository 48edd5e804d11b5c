// SPDX-License-Identifier: MIT
#include "models/runs/origin.h"

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/io/checksum.h"
#include "input/input.h"

namespace masquerade {

nlohmann::json json_of(const TextOrigin& o) {
    nlohmann::json json = {{"name", json_name(o.name)},
                           {"file", json_name(o.file)},
                           {"held_out_file", json_name(o.held_out_file)},
                           {"held_out_hash", hexadecimal(o.held_out_hash)},
                           {"lines", o.lines},
                           {"hash", hexadecimal(o.hash)},
                           {"pairs", o.pairs}};
    if (o.step >= 0) json["step"] = o.step;
    const PairOptions& m = o.made;
    if (m.any())
        json["made"] = {{"task", m.task}, {"length", m.length}, {"words", m.words}, {"level", m.level},
                        {"seed", m.seed}, {"grid", m.grid},     {"clues", m.clues}};
    return json;
}

TextOrigin origin_of(const std::string& run_json, const std::string& path) {
    const auto run = parse_input<BadInput>(run_json, path);
    try {
        const nlohmann::json& d = run.at("data");
        PairOptions made;
        if (d.contains("made")) {
            const nlohmann::json& m = d["made"];
            made = {m.at("task"),
                    m.at("length"),
                    m.at("words"),
                    m.at("level"),
                    m.at("seed"),
                    m.value("grid", made.grid),
                    m.value("clues", made.clues)};
        }
        return {name_in_json(d.at("name")),
                name_in_json(d.at("file")),
                name_in_json(d.at("held_out_file")),
                d.at("lines"),
                std::stoull(d.at("hash").get<std::string>(), nullptr, 16),
                d.value("pairs", false),
                std::stoull(d.value("held_out_hash", "0"), nullptr, 16),
                made,
                d.value("step", std::int64_t(-1))};
    } catch (const std::exception&) {
        throw BadInput(path, " is not a run's record (no complete \"data\"); was it edited?");
    }
}

std::uint64_t file_hash(const nlohmann::json& record) {
    const nlohmann::json::json_pointer hash("/data/hash");
    if (!record.contains(hash) || !record.at(hash).is_string()) return 0;
    return std::strtoull(record.at(hash).get_ref<const std::string&>().c_str(), nullptr, 16);
}

std::int64_t latent_step(const nlohmann::json& record) {
    const nlohmann::json::json_pointer step("/data/step");
    return record.contains(step) && record.at(step).is_number_unsigned() ? record.at(step).get<std::int64_t>() : -1;
}

}  // namespace masquerade
