// SPDX-License-Identifier: MIT
// Input from outside: whole files, and JSON within bounds. It lies below all other folders, so every caller says
// which error it throws: read_input<BadInput>(path).
#pragma once
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace masquerade {

constexpr std::size_t largest_text =
    100'000'000;                              // bytes of settings and of JSON; the limit of a safetensors header, too
constexpr int deepest_json = 64;              // lists and objects in each other
constexpr std::size_t most_json = 2'000'000;  // values of a JSON text, which take some hundred bytes each in an object

// Called with the path of a file or of a run folder by whatever is about to read it. A program sets it to refuse what
// it will write over (tools/outputs.h).
inline std::function<void(const std::string& path)> before_reading = [](const std::string&) {};

// Reads a file, a pipe or a terminal to its end. Returns what is wrong, in one line; nothing where all is well. It
// never waits for somebody to open the other end of a pipe.
std::string read_whole(const std::string& path, std::string& bytes, std::size_t largest);

// Parses JSON; nothing else here does. Returns what is wrong, in words that follow the name of the file: depth, more
// values than `most`, keys that stand twice in one object, bytes that are no JSON. `offset` is where the text begins in
// its file.
std::string parse_bounded(std::string_view text, nlohmann::json& value, std::size_t offset = 0,
                          std::size_t most = most_json);

// A name of a file as text of JSON, which is UTF-8 alone, and back. A name that is not UTF-8 is written as a URI has
// it:
// "file:///caf%E9.txt".
std::string json_name(const std::string& bytes);
std::string name_in_json(const std::string& text);

// At most `most` bytes, cut between two code points, with "..." where something is missing.
std::string clipped(const std::string& text, std::size_t most = 60);
// A value in a few words, never its whole depth: "an object", "a list of 3", 7, "text in quotes".
std::string in_words(const nlohmann::json& value);

template <class Failure>
std::string read_input(const std::string& path, std::size_t largest = largest_text) {
    std::string bytes, problem = read_whole(path, bytes, largest);
    if (!problem.empty()) throw Failure(problem);
    return bytes;
}

template <class Failure, class Json = nlohmann::json>
Json parse_input(const std::string& text, const std::string& path, std::size_t most = most_json) {
    Json value;
    std::string problem = parse_bounded(text, value, 0, most);
    if (!problem.empty()) throw Failure(path + ' ' + problem);
    return value;
}

}  // namespace masquerade
