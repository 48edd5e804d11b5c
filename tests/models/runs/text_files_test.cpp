// SPDX-License-Identifier: MIT
// Tests that everything that reads a text file line by line also reads the form that Windows writes, with a byte order
// mark and CR LF.
#include <doctest/doctest.h>

#include <fstream>
#include <functional>

#include "data/text.h"
#include "engine/tensor/numbers.h"
#include "input/lines.h"
#include "models/runs/insertion_run.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/files.h"
#include "tokenizer/hugging_face/hugging_face.h"
#include "tokenizer/replacements.h"
#include "models/runs/training.h"

using namespace masquerade;

namespace {

std::vector<std::string> lines_of(std::string_view bytes) {
    std::vector<std::string> all;
    TextLines lines(bytes);
    for (std::string_view line; lines.next(line);) all.emplace_back(line);
    CHECK(lines.number() == int(all.size()));
    return all;
}

// A form in which another program may write the lines of a file.
struct Form {
    const char *name, *mark, *end;
    bool last_end;
};
constexpr Form forms[] = {{"plain", "", "\n", true},
                          {"no last end", "", "\n", false},
                          {"CR LF", "", "\r\n", true},
                          {"a mark", "\xEF\xBB\xBF", "\n", true},
                          {"Windows", "\xEF\xBB\xBF", "\r\n", true},
                          {"Windows, no last end", "\xEF\xBB\xBF", "\r\n", false}};
std::string in_form(const Form& form, const std::vector<std::string>& lines) {
    std::string bytes = form.mark;
    for (std::size_t i = 0; i < lines.size(); i++)
        bytes += lines[i] + (i + 1 < lines.size() || form.last_end ? form.end : "");
    return bytes;
}

struct Settings {
    int width = 1;
    std::string mask;
    std::string loaded(const std::string& path) {
        Config config;
        config.add("width", &width, "C");
        config.add("mask", &mask, "words");
        config.load(path);
        return text(width, mask);
    }
};

std::string order_of(const std::string& path) {
    auto settings = tiny(find_family("insertion"));
    Config keys;
    settings->declare(keys);
    keys.set("order", path);
    const TrainingText t = text_for(TextKind::pairs);
    const auto run = find_family("insertion").fresh(*settings, learn_vocabulary(*settings, t), DType::f32, Device::cpu);
    const auto task = run->task(t);
    std::string all;
    for (double n : dynamic_cast<InsertionRun&>(*run).objective_options().insertion.scores.operator*())
        all += text(n, " ");
    return all;
}

// Something that reads such a file, and what it has read.
struct Reader {
    const char* name;
    std::vector<std::string> lines;
    std::function<std::string(const std::string& path)> read;
};

std::vector<Reader> readers() {
    const auto settings = tiny(find_family("insertion"));
    const int tokens = learn_vocabulary(*settings, text_for(TextKind::pairs)).size();
    std::vector<std::string> numbers;
    for (int i = 0; i < tokens; i++) numbers.push_back(text(i % 7, i % 2 ? "" : ".5"));
    return {
        {"vocabulary",
         {"[PAD]", "[UNK]", "a b", "##c"},
         [](const std::string& path) { return Vocabulary::load(path).lines(); }},
        {"tokenizer",
         {"[PAD]", "[UNK]", "a b", "##c"},
         [](const std::string& path) { return read_tokenizer(path).vocabulary.lines(); }},
        {"replacements",
         {"\xE2\x80\x9C\t\"", "", "a\tbc "},
         [](const std::string& path) {
             std::string all;
             for (const auto& [from, to] : read_replacements(path)) all += text(std::uint32_t(from), ">", to, ";");
             return all;
         }},
        {"settings",
         {"width = 3", "# of nothing", "mask = A full"},
         [](const std::string& path) { return Settings().loaded(path); }},
        {"settings in JSON",
         {"{\"width\": 3,", "\"mask\": \"A full\"}"},
         [](const std::string& path) { return Settings().loaded(path); }},
        {"order", numbers, order_of},
        {"sentences", {"a b", "", "c"}, [](const std::string& path) { return joined(read_text(path).source, "|"); }},
        {"pairs",
         {"a\tb c", "d\te"},
         [](const std::string& path) {
             return joined(read_text(path).source, "|") + ">" + joined(read_text(path).target, "|");
         }},
        {"stream",
         {"a b", "", "c"},
         [](const std::string& path) {
             std::ifstream in(path);
             LineReader reader(in, "stream");
             std::string all;
             for (std::string line; reader.next(line);) all += line + "|";
             return all;
         }},
    };
}

}  // namespace

TEST_CASE("lines: their ends and a byte order mark are no part of them") {
    using All = std::vector<std::string>;
    CHECK(lines_of("") == All{});
    CHECK(lines_of("\n") == All{""});
    CHECK(lines_of("a\n\r\nb") == All{"a", "", "b"});
    CHECK(lines_of("\xEF\xBB\xBF"
                   "a\r\nb\r\r\n\r") == All{"a", "b\r", ""});
    CHECK(lines_of("a\n\xEF\xBB\xBF"
                   "b\rc\n") == All{"a",
                                    "\xEF\xBB\xBF"
                                    "b\rc"});
}

TEST_CASE("lines: every reader of a text file reads the same whatever the system that wrote it") {
    const TemporaryFolder folder;
    for (const Reader& reader : readers())
        for (const Form& form : forms) {
            INFO(std::string(reader.name), ", ", std::string(form.name));
            const std::string read = reader.read(folder.write("file", in_form(form, reader.lines)));
            CHECK(read == reader.read(folder.write("plain", in_form(forms[0], reader.lines))));
            CHECK(!read.empty());
        }
}

TEST_CASE("lines: an error names the line") {
    const TemporaryFolder folder;
    CHECK_SAYS(message_of<BadInput>(
                   [&] { Settings().loaded(folder.write("settings", "\xEF\xBB\xBFwidth=2\r\n\r\nwdith=3\r\n")); }),
               "settings:3: unknown setting wdith");
}
