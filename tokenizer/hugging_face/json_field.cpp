// SPDX-License-Identifier: MIT
#include "tokenizer/hugging_face/json_field.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace masquerade {

nlohmann::json read_json_file(const std::string& path) {
    using nlohmann::json;
    std::error_code ignored;
    std::ifstream file(path, std::ios::binary);
    if (std::filesystem::is_directory(path, ignored)) errno = EISDIR;
    if (!file || std::filesystem::is_directory(path, ignored))
        throw TokenizerError("cannot open " + path + ": " + std::strerror(errno));
    std::ostringstream bytes;
    bytes << file.rdbuf();

    std::vector<std::string> place{"", "", ""}, tokens;  // the keys above, and those of model.vocab
    auto see = [&](int depth, json::parse_event_t event, json& parsed) {
        if (event != json::parse_event_t::key || depth < 1 || depth > 3) return true;
        place[std::size_t(depth - 1)] = parsed.get<std::string>();
        if (depth == 3 && place[0] == "model" && place[1] == "vocab") tokens.push_back(place[2]);
        return true;
    };
    try {
        json read = json::parse(bytes.str(), see);
        std::sort(tokens.begin(), tokens.end());
        auto twice = std::adjacent_find(tokens.begin(), tokens.end());
        if (twice != tokens.end())
            throw TokenizerError(path + ": model.vocab has " + json(*twice).dump() +
                                 " twice, expected each token once");
        return read;
    } catch (const json::exception& error) {
        std::string reason = error.what();
        std::size_t id = reason.find("] ");
        if (id != reason.npos) reason.erase(0, id + 2);
        for (char& c : reason)
            if (c < ' ' || c == 0x7F) c = '?';  // bytes of the file, whatever they are
        if (reason.size() > 200) reason = reason.substr(0, 197) + "...";
        throw TokenizerError("cannot read " + path + " as JSON: " + reason);
    }
}

}  // namespace masquerade
