// SPDX-License-Identifier: MIT
// Tests packed texts: a line is read as from memory, and damage is found.
#include "data/packed_text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "data/grammar.h"
#include "data/held_out.h"
#include "engine/base/error.h"
#include "tests/data/packed.h"
#include "tests/folder.h"
#include "tests/train/files.h"
#include "tokenizer/trainer.h"

using namespace masquerade;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> some_lines(bool pairs) {
    std::vector<std::string> lines = grammar_questions(5, 300);
    lines[7] = "something unheard of \xE2\x98\x83 and zzz";  // has words outside the vocabulary
    lines[8] = "?";
    if (pairs)
        for (std::size_t i = 0; i < lines.size(); i++) lines[i] += "\t" + lines[i / 2].substr(0, 15);
    return lines;
}

std::string joined_lines(const std::vector<std::string>& lines) {
    std::string all;
    for (const std::string& line : lines) all += line + '\n';
    return all;
}

WordPiece learned(bool cased = false, Rules rules = Rules::google) {
    WordPiece::Options options;
    options.lower = !cased;
    options.rules = rules;
    return WordPiece(train_vocabulary(grammar_questions(5, 300), 120), options);
}

// A vocabulary whose ids need four bytes. The tokens of the text have the largest ids.
WordPiece large() {
    std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
    for (int i = 0; i < 66000; i++) tokens.push_back("unused" + std::to_string(i));
    const WordPiece small = learned();
    for (int id = 5; id < small.vocabulary().size(); id++) tokens.emplace_back(small.vocabulary().token(id));
    return WordPiece(Vocabulary(std::move(tokens)), {});
}

bool same(const Sentence& a, const Sentence& b) {
    return a.ids == b.ids && a.target == b.target && a.name == b.name && a.cut == b.cut && a.target_cut == b.target_cut;
}

// Opens a packed text, reads all its lines, and checks that ids are below the size of the vocabulary.
void read_all(const std::string& folder) {
    const PackedText packed(folder);
    std::vector<int> ids;
    for (std::uint64_t i = 0; i < packed.lines(); i++)
        for (int target = 0; target <= packed.pairs(); target++) packed.append(i, target, SIZE_MAX, ids);
    for (const int id : ids) REQUIRE((id >= 0 && id < packed.vocabulary()));
}

}  // namespace

TEST_CASE("packed text: each line, and each count, is that of the text in memory") {
    for (const bool pairs : {false, true})
        for (const WordPiece& tokenizer : {learned(), learned(true), large(), learned(false, Rules::hugging_face),
                                           learned(true, Rules::hugging_face)}) {
            const TemporaryFolder folder;
            const std::string file = folder.write("text", joined_lines(some_lines(pairs)));
            pack(folder.file("pack"), tokenizer, file);
            for (const TextKind kind : {TextKind::sentences, TextKind::any}) {
                const TrainingText here = find_training_text(file, "", kind),
                                   there = find_training_text(folder.file("pack"), "", kind);
                CHECK(there.packed->tokenizer().vocabulary().lines() == tokenizer.vocabulary().lines());
                CHECK(there.packed->cased() != tokenizer.options().lower);
                CHECK(there.packed->tokenizer().options().rules == tokenizer.options().rules);
                CHECK(there.packed->tokenizer().encode("Who is [SEP] Z\xC3\xA9?") ==
                      tokenizer.encode("Who is [SEP] Z\xC3\xA9?"));
                CHECK(there.pairs() == here.pairs());
                CHECK(there.sources_alone == here.sources_alone);
                CHECK(there.lines() == here.train.size());
                CHECK(there.held_out == here.held_out);
                CHECK(there.held_out_targets == here.held_out_targets);
                CHECK(here.held_out.size() > 1);
                for (const int most : {3, 4, 7, 8, 9, 100}) {
                    const auto a = here.sentences(tokenizer, most, most), b = there.sentences(tokenizer, most, most);
                    REQUIRE(a->size() == b->size());
                    for (std::uint64_t i = 0; i < a->size(); i++) CHECK(same(a->at(i), b->at(i)));
                    for (const bool targets : {false, true}) {
                        const ReadCounts x = a->counts(tokenizer.vocabulary(), targets),
                                         y = b->counts(tokenizer.vocabulary(), targets);
                        CHECK(x.lines == y.lines);
                        CHECK(x.cut == y.cut);
                        if (most == 100) CHECK((x.words == y.words && x.unknown == y.unknown));
                        if (most == 100 && !targets) CHECK(x.unknown > 0);
                    }
                }
            }
        }
}

TEST_CASE("packed text: a file that is cut off, longer, or missing is refused when the text is opened") {
    const TemporaryFolder folder;
    pack(folder.file("pack"), learned(), folder.write("text", joined_lines(some_lines(true))));
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.file("pack"))) names.insert(entry.path().filename());
    CHECK(names == std::set<std::string>{"held-out.txt", "ids.bin", "index.bin", "pack.json", "vocab.txt"});
    for (const std::string& name : names) {
        CAPTURE(name);
        const std::string path = folder.file("pack/" + name), bytes = read_bytes(path);
        for (const std::size_t size : {std::size_t(0), std::size_t(1), bytes.size() / 2, bytes.size() - 2}) {
            write_file(path, bytes.substr(0, size));
            CHECK_SAYS(message_of<BadInput>([&] { PackedText(folder.file("pack")); }), name);
        }
        write_file(path, bytes + "x");
        CHECK_SAYS(message_of<BadInput>([&] { PackedText(folder.file("pack")); }), name);
        fs::remove(path);
        CHECK_SAYS(message_of<BadInput>([&] { PackedText(folder.file("pack")); }), name);
        write_file(path, bytes);
        CHECK(message_of<BadInput>([&] { PackedText(folder.file("pack")).check(); }) == "");
    }
    CHECK(PackedText::is_at(folder.file("pack")));
    CHECK(!PackedText::is_at(folder.path));
}

TEST_CASE("packed text: a changed byte is found, and no damage leads to ids beyond the vocabulary") {
    const TemporaryFolder folder;
    pack(folder.file("pack"), learned(), folder.write("text", joined_lines(some_lines(true))));
    for (const std::string name : {"held-out.txt", "ids.bin", "index.bin", "pack.json", "vocab.txt"}) {
        CAPTURE(name);
        const std::string path = folder.file("pack/" + name), bytes = read_bytes(path);
        const bool large = name == "ids.bin" || name == "index.bin";  // not read when the text is opened
        int found = 0;
        for (std::size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 60)
            for (const int bit : {1, 64, 128}) {
                std::string changed = bytes;
                changed[at] = char(changed[at] ^ bit);
                write_file(path, changed);
                const std::string said = message_of<BadInput>([&] {
                    const PackedText packed(folder.file("pack"));
                    CHECK(large);
                    packed.check();
                });
                CAPTURE(at);
                CHECK_SAYS(said, name);
                found += !message_of<BadInput>([&] { read_all(folder.file("pack")); }).empty();
            }
        CHECK(found > 0);
        write_file(path, bytes);
    }
}

TEST_CASE("packed text: a file that is cut off while it is read is an error") {
    const TemporaryFolder folder;
    pack(folder.file("pack"), learned(), folder.write("text", joined_lines(some_lines(false))));
    for (const char* name : {"ids.bin", "index.bin"}) {
        const PackedText packed(folder.file("pack"));
        fs::resize_file(folder.file("pack/") + name, 8);
        std::vector<int> ids;
        CHECK_SAYS(message_of<BadInput>([&] { packed.append(packed.lines() - 1, false, 9, ids); }), "it ends at byte");
        fs::remove_all(folder.file("pack"));
        pack(folder.file("pack"), learned(), folder.file("text"));
    }
}

TEST_CASE("packed text: a folder is written whole or not at all, and never over another") {
    const TemporaryFolder folder;
    const auto fails = [&] {
        write_new_folder(folder.file("pack"), [&](const std::string& place) {
            PackWriter writer(place, learned(), false);
            throw BadInput("cannot write ", place, "/ids.bin: the disk is full");
        });
    };
    CHECK(message_of<BadInput>(fails) == "cannot write " + folder.file("pack") + "/ids.bin: the disk is full");
    CHECK(fs::is_empty(folder.path));
    const std::string file = folder.write("text", joined_lines(some_lines(false)));
    pack(folder.file("new/pack/"), learned(), file);
    read_all(folder.file("new/pack"));
    CHECK_SAYS(message_of<BadInput>([&] { pack(folder.file("new/pack"), learned(), file); }), "is there already");
    CHECK(std::distance(fs::directory_iterator(folder.file("new")), fs::directory_iterator()) == 1);
}

TEST_CASE("packed text: a run reads the same one again, or refuses it") {
    const TemporaryFolder folder;
    const std::string file = folder.write("text", joined_lines(some_lines(false)));
    pack(folder.file("pack"), learned(), file);
    const TextOrigin origin = find_training_text(folder.file("pack"), "").origin;
    CHECK(read_again(origin).packed->lines() == origin.lines);
    fs::remove_all(folder.file("pack"));
    pack(folder.file("pack"), learned(true), file);
    CHECK_SAYS(message_of<BadInput>([&] { read_again(origin); }), "has changed since the run was started");
    fs::remove_all(folder.file("pack"));
    CHECK_SAYS(message_of<BadInput>([&] { read_again(origin); }), "pack");
}

TEST_CASE("held-out lines: at most 10,000, in any order the same ones, and none of them is a training line") {
    // A line that is held out is a training line if there is no other.
    for (const int others : {0, 1}) {
        std::vector<std::string> train;
        HeldOutLines chosen([&](HeldOutLines::Line line) { train.push_back(std::move(line.source)); });
        for (const std::string line : {"line 23", "line 24", "line 76"}) chosen.add(line, "");
        if (others) chosen.add("another line", "");
        CHECK(chosen.finish().size() == (others ? 3 : 0));
        CHECK(train.size() == (others ? 1 : 3));
    }
    // A line that was let go, because there were too many candidates, stays a training line when it comes again.
    {
        std::vector<std::pair<std::uint32_t, std::string>> some;  // 5,001 candidates with their hashes
        for (int i = 0; some.size() < 5001; i++) {
            const std::string line = "line " + std::to_string(i);
            const std::uint32_t hash = make_stream(0, line, 0).key0;
            if (hash % 50 == 0) some.emplace_back(hash, line);
        }
        std::sort(some.begin(), some.end());
        std::size_t train = 0;
        HeldOutLines chosen([&](HeldOutLines::Line) { train++; });
        for (std::size_t i = 1; i < some.size(); i++)
            for (const int copy : {0, 1}) chosen.add(some[i].second, copy ? "again" : "");
        CHECK(train == 0);
        chosen.add(some[0].second, "");  // now the line with the largest hash goes, twice
        CHECK(train == 2);
        chosen.add(some.back().second, "");
        CHECK(train == 3);
        CHECK(chosen.finish().size() == 9999);
    }
    // Too many copies of the first candidate push all others out, and then leave as well. Hence the warning.
    std::pair<std::uint32_t, int> first{~0u, 0};
    for (int i = 0; i < 400000; i++)
        if (const std::uint32_t hash = make_stream(0, "line " + std::to_string(i), 0).key0; hash % 50 == 0)
            first = std::min(first, {hash, i});
    for (const int copies : {1, 9000, 11000}) {
        std::size_t train = 0;
        HeldOutLines chosen([&](HeldOutLines::Line) { train++; });
        for (int i = 0; i < 400000; i++) chosen.add("line " + std::to_string(i), "");
        for (int i = 0; i < copies; i++) chosen.add("line " + std::to_string(first.second), "");
        const std::string warning = chosen.warning();
        const std::size_t left = chosen.finish().size();
        CHECK(train + left == std::size_t(400000 + copies));
        CHECK(warning.empty() == (left > 4000));
        CHECK((copies == 11000) == (left < 4000));
    }
    std::vector<std::string> lines;
    for (int i = 0; i < 700000; i++) lines.push_back("line " + std::to_string(i % 350000));
    std::vector<std::string> before;
    for (const bool reversed : {false, true}) {
        if (reversed) std::reverse(lines.begin(), lines.end());
        std::vector<std::string> train, held_out;
        HeldOutLines chosen([&](HeldOutLines::Line line) { train.push_back(std::move(line.source)); });
        for (const std::string& line : lines) chosen.add(line, "");
        std::uint64_t last = 0;
        for (HeldOutLines::Line& line : chosen.finish()) {
            CHECK(line.number >= last);
            last = line.number;
            held_out.push_back(std::move(line.source));
        }
        CHECK(train.size() + held_out.size() == lines.size());
        CHECK(held_out.size() <= 10000);
        CHECK(held_out.size() > 9990);
        std::sort(train.begin(), train.end());
        std::sort(held_out.begin(), held_out.end());
        for (const std::string& line : held_out) REQUIRE(!std::binary_search(train.begin(), train.end(), line));
        if (reversed) CHECK(held_out == before);
        before = held_out;
    }
}
