// SPDX-License-Identifier: MIT
#include "tools/outputs.h"

#include <utility>

#include "engine/io/file.h"
#include "engine/io/run_folder.h"
#include "tests/train/files.h"

using namespace masquerade;
namespace fs = std::filesystem;

namespace {

// During the lifetime of this object, a file that `outputs` would overwrite cannot be read.
struct Guarded {
    const std::function<void(const std::string&)> nobody = before_reading;
    explicit Guarded(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs = {}) {
        refuse_to_read(outputs, inputs);
    }
    ~Guarded() { before_reading = nobody; }
};

}  // namespace

TEST_CASE("outputs: what will be written is not read, by whatever name") {
    TemporaryFolder folder;
    const std::string path = folder.write("text", "words"), link = folder.file("link"), hard = folder.file("hard"),
                      other = folder.write("other", "more");
    fs::create_symlink("text", link);
    fs::create_hard_link(path, hard);
    for (const std::string& written : {path, link, hard}) {
        const Guarded guarded({{"--out", written}});
        for (const std::string& read : {path, link, hard})
            CHECK_SAYS(message_of<BadUsage>([&] { read_file(read); }), "--out " + written + " is read");
        CHECK_SAYS(message_of<BadUsage>([&] { FileReader{path}; }),
                   " as well, and would be lost: give --out another file");
        CHECK(read_file(other) == "more");
    }
    CHECK(read_file(path) == "words");
    CHECK_THROWS_AS(Guarded({{"--a", other}, {"--b", path}}, {link}), BadUsage);
    // An input folder, of which every file is read.
    CHECK_THROWS_AS(Guarded({{"--a", other}}, {path, folder.path}), BadUsage);
    const Guarded fresh({{"--a", folder.file("new")}}, {path, folder.path});
    CHECK(read_file(path) == "words");
}

TEST_CASE("outputs: of a run folder what the run keeps is not written over, and the rest may be") {
    TemporaryFolder folder;
    const std::string run = folder.file("run"), link = folder.file("link"), hard = folder.file("hard");
    fs::create_directories(run + "/step-000010");
    for (const char* name : {"run.json", "step-000010/model.safetensors", "page.html"})
        folder.write(text("run/", name), "{}");
    fs::create_directory_symlink("run", link);
    fs::create_hard_link(run + "/step-000010/model.safetensors", hard);
    const auto refused = [&](const std::string& written, const std::string& read) {
        const Guarded guarded({{"--out", written}});
        return !message_of<BadUsage>([&] { RunFolder::open(read); }).empty();
    };
    for (const std::string& read : {run, link, run + "/step-000010"}) {
        for (const char* kept :
             {"run.json", "vocab.txt", "tokenizer.json", "log.jsonl", "samples.txt", "latest", "best",
              "step-000010/model.safetensors", "step-000010/new", "step-000020/config.json"}) {
            CAPTURE(kept);
            CHECK(refused(run + "/" + kept, read));
            CHECK(refused(link + "/" + kept, read));
        }
        CHECK(refused(hard, read));
        for (const char* free : {"page.html", "new.html", "new/run.json", "step-1"})
            CHECK(!refused(run + "/" + free, read));
        CHECK(!refused(folder.file("run.json"), read));
    }
}
