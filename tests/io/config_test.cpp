// SPDX-License-Identifier: MIT
#include "engine/io/config.h"

#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/io/file.h"
#include "engine/io/nearest.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

enum class Colour { red, green, blue };

struct Options {
    int width = 128;
    std::int64_t steps = 0;
    std::uint64_t seed = 1;
    double learning_rate = 2e-3, beta = 0.1;
    bool rotary = true;
    std::string recompute, kind = "vmf";
    Colour colour = Colour::green;

    void declare(Config& config) {
        config.add("width", &width, "C, model width", 1, 65536);
        config.add("steps", &steps, "stop after so many", 0);
        config.add("seed", &seed, "of every random number");
        config.add("learning_rate", &learning_rate, "the peak", 0, 10);
        config.add("beta", &beta, "weight of the KL term");
        config.add("rotary", &rotary, "rotary positions");
        config.add("recompute", &recompute, "scopes to compute again");
        config.add("latent", &kind, "family of latents", {"none", "gaussian", "vmf"});
        config.add("colour", &colour, "of the curtain",
                   {{"red", Colour::red}, {"green", Colour::green}, {"blue", Colour::blue}});
    }
};

}  // namespace

TEST_CASE("config: values go into the struct, by their type") {
    Options o;
    Config config;
    o.declare(config);
    for (const char* pair : {"width=256", "steps=9000000000", "seed=18446744073709551615", "learning_rate=1e-4",
                             "rotary=off", "recompute=decoder.layer.*", "latent=gaussian", "colour=blue", "beta=-0.5"})
        config.set(pair);
    CHECK(o.width == 256);
    CHECK(o.steps == 9000000000);
    CHECK(o.seed == UINT64_MAX);
    CHECK(o.learning_rate == 1e-4);
    CHECK(o.beta == -0.5);
    CHECK(!o.rotary);
    CHECK(o.recompute == "decoder.layer.*");
    CHECK(o.kind == "gaussian");
    CHECK(o.colour == Colour::blue);
    CHECK(config.value("colour") == "blue");
    CHECK_THROWS_AS(o.declare(config), Error);
}

TEST_CASE("config: what cannot be is refused with what was expected, and changes nothing") {
    Options o;
    Config config;
    o.declare(config);
    auto refusal = [&](const std::string& pair) { return message_of<BadUsage>([&] { config.set(pair); }); };
    const nlohmann::json before = config.to_json();
    CHECK_SAYS(refusal("widht=3"), "unknown setting widht; did you mean width?");
    CHECK_SAYS(refusal("lerning_rate=3"), "did you mean learning_rate?");
    CHECK_SAYS(refusal("zzzzzz=3"),
               "unknown setting zzzzzz; the nearest are width, steps, seed; ./train MODEL --help lists all");
    CHECK_SAYS(refusal("width"), "\"width\" is not a setting; key=value is expected");
    CHECK_SAYS(refusal("=3"), "key=value is expected");
    for (const char* value : {"0", "65537", "-1", "", "12x", "1.5", "1e3", "99999999999999999999", "0x10", "+-3"})
        CHECK_SAYS(refusal(std::string("width=") + value),
                   "a whole number from 1 to 65536 is expected (C, model width)");
    CHECK_SAYS(refusal("steps=-1"), "steps=-1: a whole number, at least 0 is expected");
    CHECK_SAYS(refusal("seed=-1"), "seed=-1: a whole number, at least 0 is expected");
    for (const char* value : {"nan", "inf", "-0.1", "11", "x", "", "1e999"})
        CHECK_SAYS(refusal(std::string("learning_rate=") + value), "a number from 0 to 10 is expected");
    CHECK_SAYS(refusal("beta=inf"), "a number is expected");
    CHECK_SAYS(refusal("rotary=maybe"), "rotary=maybe: true or false is expected");
    CHECK_SAYS(refusal("latent=vq"), "latent=vq: none|gaussian|vmf is expected (family of latents)");
    CHECK_SAYS(refusal("colour=pink"), "red|green|blue is expected");
    CHECK(config.to_json() == before);
    std::string kind = "one";
    config.add_words("kind", &kind, "kind, or kinds in words", {"one", "two"}, [](const std::string& words) {
        if (words.find("three") != words.npos) throw BadUsage("kind: there is no three");
    });
    CHECK_SAYS(refusal("kind=three"), "kind=three: one|two|WORDS is expected (kind, or kinds in words)");
    CHECK_SAYS(refusal("kind=A one; B three"), "kind: there is no three");
    CHECK(kind == "one");
    config.set("kind=A two; B one");
    CHECK(kind == "A two; B one");
    CHECK(config.value("kind") == kind);
}

TEST_CASE("config: files of lines, files of JSON, and there and back") {
    TemporaryFolder folder;
    std::string path = folder.file("small.config");
    write_file(path, "# a small one\n\nwidth = 64   # C\r\nlearning_rate=0.1\n  recompute = a#b\nlatent=none");
    Options o;
    Config config;
    o.declare(config);
    config.load(path);
    CHECK(o.width == 64);
    CHECK(o.learning_rate == 0.1);
    CHECK(o.recompute == "a#b");
    CHECK(o.kind == "none");
    o.beta = 0.1 + 0.2;
    o.seed = UINT64_MAX;

    std::string json = config.to_json().dump(2);
    Options p;
    Config again;
    p.declare(again);
    write_file(path, "\n" + json);
    again.load(path);
    CHECK(again.to_json() == config.to_json());
    CHECK(p.beta == o.beta);
    CHECK(p.seed == o.seed);
    CHECK(config.to_json()["width"].is_number_integer());
    CHECK(config.to_json()["rotary"].is_boolean());

    auto refusal = [&](const std::string& bytes) {
        write_file(path, bytes);
        return message_of<BadInput>([&] { again.load(path); });
    };
    CHECK_SAYS(refusal("width=8\n\nwidht=9\n"), path + ":3: unknown setting widht; did you mean width?");
    CHECK_SAYS(refusal("width 8"), path + ":1: \"width 8\" is not a setting");
    CHECK_SAYS(refusal("{\"width\": 0}"), path + ": width=0: a whole number from 1 to 65536");
    CHECK_SAYS(refusal("{\"width\": 7.5}"), "width=7.5");
    CHECK_SAYS(refusal("{\"widht\": 7}"), "did you mean width?");
    CHECK_SAYS(refusal("{\"recompute\": null}"), "recompute is null; text, a number, true or false is expected");
    CHECK_SAYS(refusal("{\"width\": 7"), path + " is not JSON: it ends in the middle");
    CHECK_SAYS(refusal("{\"width\": 7,, }"), path + " is not JSON: byte 13 of the file cannot be read");
    CHECK_SAYS(message_of<BadInput>([&] { again.load(folder.file("absent")); }), "No such file or directory");
    CHECK_SAYS(message_of<BadInput>([&] { again.from_json(nlohmann::json::array(), "run.json"); }),
               "run.json: an object of settings is expected, found a list of 0");
}

TEST_CASE("config: the list of settings has the topic, the value and what is expected") {
    Options o;
    Config config;
    config.topic("Model");
    o.declare(config);
    config.topic("Text");
    int length = 7;
    config.add("length", &length, "longest line", 1);
    config.set("width", "256");
    const std::vector<Config::Setting> all = config.settings();
    CHECK(all.size() == config.keys().size());
    const Config::Setting first = all.front(), last = all.back();
    CHECK(first.topic == "Model");
    CHECK(first.key == "width");
    CHECK(first.value == "256");
    CHECK(first.help == "C, model width");
    CHECK(first.expected == "a whole number from 1 to 65536");
    CHECK(last.topic == "Text");
    CHECK(last.key == "length");
    CHECK(last.expected == "a whole number, at least 1");
    for (const Config::Setting& s : all)
        if (s.key == "latent") CHECK(s.expected == "none|gaussian|vmf");
}

TEST_CASE("config: a setting follows another one until it is given itself") {
    for (bool given_first : {false, true}) {
        Options o;
        Config config;
        o.declare(config);
        config.follows("rotary", [&] { o.rotary = o.colour != Colour::red; });
        if (given_first) config.set("rotary=true");
        config.set("colour=red");
        CHECK(o.rotary == given_first);
        CHECK(config.value("rotary") == (given_first ? "true" : "false"));
        config.set("colour=blue");
        CHECK(o.rotary);
        config.set("rotary=false");
        config.set("colour=green");
        CHECK(!o.rotary);
    }
}

TEST_CASE("nearest: the fewest edits, nothing when all is different") {
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("kitten", "sitting") == 3);
    CHECK(edit_distance("widht", "width") == 1);
    CHECK(edit_distance("same", "same") == 0);
    using Words = std::vector<std::string>;
    CHECK(nearest("wdith", {"depth", "width", "with"}, 2) == Words{"width", "with"});
    CHECK(nearest("wdith", {"depth", "width"}, 3) == Words{"width", "depth"});
    CHECK(nearest("x", {}, 3).empty());
    CHECK(did_you_mean("wdith", {"depth", "width", "with"}) == "; did you mean width?");
    CHECK(did_you_mean("head", {"layers", "heads"}) == "; did you mean heads?");
    CHECK(did_you_mean("qqqq", {"layers", "heads"}).empty());
    CHECK(did_you_mean("x", {}).empty());
}

TEST_CASE("config: settings come through a pipe, and one that nobody writes into is refused") {
    const TemporaryFolder folder;
    const std::string pipe = folder.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    Options o;
    Config config;
    o.declare(config);
    CHECK_SAYS(message_of<BadInput>([&] { config.load(pipe); }), "an empty pipe");
    std::fstream both(pipe);
    both << "width=64\ncolour=red\n" << std::flush;
    REQUIRE(both.good());
    std::thread closing([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        both.close();
    });
    config.load(pipe);
    closing.join();
    CHECK(o.width == 64);
    CHECK(o.colour == Colour::red);
}

TEST_CASE("config: what is quoted of a file is short, however deep and long it is") {
    const TemporaryFolder folder;
    Options o;
    Config config;
    o.declare(config);
    const std::string deep = std::string(100000, '['), wide = std::string(1000000, 'w');
    for (const std::string& text :
         std::vector<std::string>{"{\"width\":" + deep, "{\"width\":[[]],\"a\":1}", wide, wide + "=1", "width=" + wide,
                                  "{\"" + wide + "\":1}", "{\"width\":\"" + wide + "\"}",
                                  std::string("{\"width\":1,\"width\":2}")}) {
        const std::string said = message_of<BadInput>([&] { config.load(folder.write("settings", text)); });
        CHECK(said.find(folder.file("settings")) == 0);
        CHECK(said.size() < 400);
    }
    CHECK(o.width == 128);
}
