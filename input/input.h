// SPDX-License-Identifier: MIT
// Reads whole files, and parses JSON with limits. This folder does not use other folders of the repository and knows
// none of their exceptions, so each caller chooses the exception that is thrown: read_input<BadInput>(path).
#pragma once
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace masquerade {

constexpr std::size_t largest_text = 100'000'000;  // maximum bytes of a safetensors header and, by default, of a file
constexpr int deepest_json = 64;                   // maximum depth of nested lists and objects
constexpr std::size_t most_json = 2'000'000;       // default maximum number of JSON values; each takes about 100 bytes

// Called with the path of every file, and of every folder of a training run, before the file or folder is read. A
// program can set this function to one that throws if the program will also overwrite the file (tools/outputs.h).
inline std::function<void(const std::string& path)> before_reading = [](const std::string&) {};

// Reads a file, a pipe or a terminal to its end, into `bytes`. Returns "", or one line that says why reading failed.
// Reading fails, too, if there are more than `largest` bytes. Never waits for another program to open a pipe: an
// empty pipe is a failure.
std::string read_whole(const std::string& path, std::string& bytes, std::size_t largest);

// Parses JSON. All code of the engine and the programs parses JSON with this function. Returns "" or the problem, as
// words that follow the file's name in a message: the text is not JSON, is nested too deeply, has more than `most`
// values, or has a key twice in one object. `offset` is the byte at which the text begins in its file, for messages.
std::string parse_bounded(std::string_view text, nlohmann::json& value, std::size_t offset = 0,
                          std::size_t most = most_json);

// JSON text must be UTF-8, but a file name can have any bytes. json_name() converts a file name to text for JSON, and
// name_in_json() converts the text back. A name that is not UTF-8, or starts with "file://", becomes a URI such as
// "file:///caf%E9.txt".
std::string json_name(const std::string& bytes);
std::string name_in_json(const std::string& text);

// Returns the text if it has at most `most` bytes. Otherwise, returns its beginning, cut between two code points, and
// "...".
std::string clipped(const std::string& text, std::size_t most = 60);
// Returns a short description of a JSON value, for messages: "an object", "a list of 3", 7, "text in quotes".
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
