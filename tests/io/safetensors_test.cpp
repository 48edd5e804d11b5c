// SPDX-License-Identifier: MIT
#include "engine/io/safetensors.h"

#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <limits>

#include "engine/io/file.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

// Returns the bytes of a file that is made by hand: the length of the header, the header, the data.
std::string raw_file(const std::string& header, std::size_t data_bytes) {
    std::string bytes(8, '\0');
    for (int i = 0; i < 8; i++) bytes[std::size_t(i)] = char(header.size() >> (8 * i));
    return bytes + header + std::string(data_bytes, 'x');
}

std::string refusal(const std::string& bytes) {
    TemporaryFolder folder;
    std::string path = folder.file("made.safetensors");
    write_file(path, bytes);
    std::string message = message_of<BadInput>([&] { TensorFile file(path); });
    CHECK_SAYS(message, path);
    CHECK(message == message_of<BadInput>([&] { check_safetensors(path); }));
    return message;
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return "{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

// Returns the error message for a file with one tensor and 24 bytes of data.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return refusal(raw_file("{\"a\":" + entry(dtype, shape, offsets) + "}", 24));
}

// Returns the error message for a file with two tensors of one F32 number each.
std::string two(const char* name, const char* offsets, const char* other, const char* others, std::size_t bytes) {
    std::string header = text("{\"", name, "\":", entry("\"F32\"", "[1]", offsets), ",\"", other,
                              "\":", entry("\"F32\"", "[1]", others), "}");
    return refusal(raw_file(header, bytes));
}

}  // namespace

TEST_CASE("safetensors: what was written comes back, bit by bit") {
    TemporaryFolder folder;
    std::string path = folder.file("model.safetensors");
    std::vector<float> w(6);
    for (std::size_t i = 0; i < 6; i++) w[i] = 0.1f * float(i) - 0.2f;
    w[4] = std::numeric_limits<float>::quiet_NaN();
    w[5] = std::numeric_limits<float>::infinity();
    std::vector<bfloat16> b = {bfloat16(1.5f), bfloat16(-2.f), bfloat16(3e38f)};
    std::vector<double> d = {0.1, -1e-300};
    std::vector<std::uint64_t> state = {0, 1, UINT64_MAX};
    int nothing = 0;
    View weight{w.data(), DType::f32, Device::cpu, {2, 3}, ""}, bias{b.data(), DType::bf16, Device::cpu, {3}, ""};
    View empty{&nothing, DType::f32, Device::cpu, {0, 4}, ""}, scalar{&d[1], DType::f64, Device::cpu, {}, ""};
    std::vector<StoredTensor> tensors = {stored("layer.\"0\".bias", bias), stored("w", weight),
                                         stored("state", state),           stored("empty", empty),
                                         stored("scalar", scalar),         stored("d", d)};
    write_safetensors(path, tensors, {{"format", "pt"}, {"step", "17"}});

    TensorFile file(path);
    CHECK(file.tensors().size() == 6);
    CHECK(file.metadata().at("step") == "17");
    CHECK(file.metadata().at("format") == "pt");
    for (const StoredTensor& tensor : file.tensors())
        CHECK(reinterpret_cast<std::uintptr_t>(tensor.data) % bytes_of(tensor.element) == 0);
    CHECK(file.integers("state") == state);
    CHECK(file.reals("d") == d);
    std::vector<float> w2(6);
    file.copy_to("w", View{w2.data(), DType::f32, Device::cpu, {2, 3}, "w"});
    CHECK(std::memcmp(w.data(), w2.data(), 24) == 0);
    std::vector<bfloat16> b2(3);
    file.copy_to("layer.\"0\".bias", View{b2.data(), DType::bf16, Device::cpu, {3}, "b"});
    CHECK(std::memcmp(b.data(), b2.data(), 6) == 0);
    CHECK(file.at("scalar").shape == Shape{});
    CHECK(file.at("empty").bytes() == 0);

    auto copy_refusal = [&](DType dtype, Shape shape) {
        return message_of<BadInput>([&] { file.copy_to("w", View{w2.data(), dtype, Device::cpu, shape, "w"}); });
    };
    CHECK_SAYS(copy_refusal(DType::f32, {3, 2}), "tensor w is (2,3); (3,2) is expected");
    CHECK_SAYS(copy_refusal(DType::f64, {2, 3}), "tensor w (2,3) holds F32; F64 is expected");
    CHECK_SAYS(message_of<BadInput>([&] { file.at("stat"); }), "has no tensor stat among its 6; did you mean state");
    CHECK_SAYS(message_of<BadInput>([&] { file.integers("d"); }), "tensor d (2) holds F64; U64 is expected");
    tensors.push_back(stored("d", d));
    CHECK_SAYS(message_of<Error>([&] { write_safetensors(path, tensors); }), "tensor d is written twice");
}

TEST_CASE("safetensors: the bytes are those of the format") {
    TemporaryFolder folder;
    std::string path = folder.file("one.safetensors");
    write_safetensors(path, {stored("d", std::vector<double>{1.0})});
    std::string bytes = read_file(path);
    std::size_t length = std::size_t((unsigned char)bytes[0]) + 256 * std::size_t((unsigned char)bytes[1]);
    CHECK(length % 8 == 0);
    CHECK(bytes.size() == 8 + length + 8);
    CHECK(bytes.find("\"d\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}") != bytes.npos);
    CHECK(bytes.substr(8 + length) == std::string("\0\0\0\0\0\0\xf0\x3f", 8));

    // A file of another program: without metadata and padding, and with tensors that are out of order and unaligned.
    std::string header = R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
                         R"("a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})";
    std::string foreign = raw_file(header, 5);
    float value = 2.5f, back = 0;
    std::memcpy(foreign.data() + foreign.size() - 4, &value, 4);
    write_file(path, foreign);
    TensorFile file(path);
    CHECK(file.tensors()[0].name == "a");
    file.copy_to("b", View{&back, DType::f32, Device::cpu, {1}, "b"});
    CHECK(back == 2.5f);
    write_file(path, raw_file("{}", 0));
    CHECK(TensorFile(path).tensors().empty());
    write_file(path, raw_file("{\"a\":" + entry("\"F32\"", "[4611686018427387904,0]", "[0,0]") + "}\n \t", 0));
    CHECK(TensorFile(path).at("a").bytes() == 0);
}

TEST_CASE("safetensors: other people's half and double precision is converted") {
    // 1, -2, the largest number, the smallest subnormal number, infinity, -0, and a NaN.
    std::vector<std::uint16_t> half = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x8000, 0x7e00};
    std::vector<double> real = {1.1, 2.2};
    TemporaryFolder folder;
    std::string path = folder.file("half.safetensors");
    write_safetensors(
        path, {{"h", Element::f16, {7}, half.data()}, stored("d", real), {"i", Element::i16, {7}, half.data()}});
    TensorFile file(path);
    std::vector<float> x(7);
    View to{x.data(), DType::f32, Device::cpu, {7}, "x"};
    file.convert_to("h", to);
    CHECK(x[0] == 1.f);
    CHECK(x[1] == -2.f);
    CHECK(x[2] == 65504.f);
    CHECK(x[3] == 0x1p-24f);
    CHECK(x[4] == std::numeric_limits<float>::infinity());
    CHECK((x[5] == 0.f && std::signbit(x[5])));
    CHECK(std::isnan(x[6]));
    CHECK_SAYS(message_of<BadInput>([&] { file.convert_to("i", to); }), "holds I16; real numbers are expected");
    std::vector<bfloat16> y(2);
    file.convert_to("d", View{y.data(), DType::bf16, Device::cpu, {2}, "y"});
    CHECK(float(y[1]) == float(bfloat16(2.2f)));
}

TEST_CASE("safetensors: every malformed file is refused in one line") {
    const std::string f32 = "\"F32\"", good = "{\"a\":" + entry(f32, "[2,3]", "[0,24]") + "}";
    {
        TemporaryFolder folder;
        write_file(folder.file("good"), raw_file(good, 24));
        TensorFile file(folder.file("good"));
        CHECK(file.at("a").shape == Shape{2, 3});
        CHECK_SAYS(message_of<BadInput>([&] { TensorFile none(folder.file("none")); }), "No such file or directory");
        CHECK_SAYS(message_of<BadInput>([&] { TensorFile none(folder.path); }), "Is a directory");
    }
    CHECK_SAYS(refusal(""), "it is empty");
    CHECK_SAYS(refusal("abc"), "it has 3 bytes");
    CHECK_SAYS(refusal("this is some other file, text perhaps"), "announce a header of");
    CHECK_SAYS(refusal(raw_file(good, 24).substr(0, 40)), "ends at byte 40. It was cut off");
    CHECK_SAYS(refusal(raw_file(good, 23)), "tensor a ends at byte 24 of the data, which has only 23 bytes");
    CHECK_SAYS(refusal(raw_file(good, 25)), "tensors end at byte 24 of the data, but 25 bytes");
    CHECK_SAYS(refusal(raw_file("{\"a\":{\"dtype\"", 0)),
               "header is not JSON: it ends in the middle, at byte 21 of the file");
    CHECK_SAYS(refusal(raw_file("[1,2]", 0)), "its header is a list of 2");
    CHECK_SAYS(refusal(raw_file("\xEF\xBB\xBF" + good, 24)), "its header begins with a byte order mark");
    CHECK_SAYS(refusal(raw_file(good + std::string(3, '\0'), 24)),
               text("not JSON: byte ", 8 + good.size() + 1, " of the file cannot be read"));
    CHECK_SAYS(refusal(raw_file("{\"a\\u0000b\":7}", 0)), "tensor a\\u0000b is described by 7;");
    CHECK_SAYS(refusal(raw_file("{\"__metadata__\":{\"\\u0000\":1}}", 0)), "__metadata__ \\u0000 is 1;");
    CHECK_SAYS(refusal(raw_file("{\"a\":7}", 0)), "tensor a is described by 7;");
    CHECK_SAYS(refusal(raw_file("{\"a\":{\"shape\":[1]}}", 4)), "tensor a has no \"dtype\"");
    CHECK_SAYS(refusal(raw_file("{\"a\xff\":7}", 0)), "not JSON");
    CHECK_SAYS(refusal(raw_file(std::string(100000, '['), 0)), "deeper than 64, at byte 73 of the file");
    CHECK_SAYS(refusal(raw_file("{\"a\":{\"dtype\":" + std::string(100000, '[') + std::string(100000, ']') + "}}", 0)),
               "deeper than 64");
    CHECK(refusal(raw_file("{\"" + std::string(1000000, 'a') + "\":7}", 0)).size() < 1000);
    CHECK_SAYS(refusal(raw_file("{\"__metadata__\":7}", 0)), "__metadata__ is 7;");
    CHECK_SAYS(refusal(raw_file("{\"__metadata__\":{\"a\":1}}", 0)), "__metadata__ a is 1;");

    CHECK_SAYS(one("4", "[6]", "[0,24]"), "unknown dtype 4");
    for (const char* shape : {"[-6]", "[6.0]", "6", "[\"6\"]", "[[6]]", "{}"})
        CHECK_SAYS(one(f32, shape, "[0,24]"), "a list of sizes is expected");
    CHECK_SAYS(one(f32, "[1,1,1,1,5]", "[0,24]"), "tensor a (1,1,1,1,5) of F32 takes 20 bytes, but 24 are given to it");
    CHECK_SAYS(one("\"C64\"", "[2]", "[0,24]"), "tensor a (2) of C64 takes 16 bytes, but 24 are given to it");
    for (const char* dtype : {"F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E5M2FNUZ", "F8_E4M3FNUZ"})
        CHECK_SAYS(one(text('"', dtype, '"'), "[23]", "[0,24]"),
                   text("tensor a (23) of ", dtype, " takes 23 bytes, but 24 are given to it"));
    CHECK_SAYS(one("\"F4\"", "[7]", "[0,24]"), "tensor a (7) takes 28 bits, which are no whole bytes");
    CHECK_SAYS(one("\"F33\"", "[6]", "[24,0]"), "ends at byte 0 of the data, before");
    CHECK_SAYS(one(f32, "[4294967296,4294967296]", "[0,24]"), "more than any file");
    CHECK_SAYS(one(f32, "[18446744073709551615]", "[0,24]"), "more than any file");
    CHECK_SAYS(one(f32, "[2305843009213693952]", "[0,24]"), "more than any file");
    CHECK_SAYS(one(f32, "[0,4294967296,4294967296]", "[0,0]"), "more than any file");
    CHECK_SAYS(one(f32, "[5]", "[0,24]"), "tensor a (5) of F32 takes 20 bytes, but 24 are given to it, from byte 0");
    for (const char* offsets : {"[0]", "[0,24,48]", "[-1,23]", "[0,2.4e1]", "24"})
        CHECK_SAYS(one(f32, "[6]", offsets), "two byte offsets are expected");
    CHECK_SAYS(one(f32, "[6]", "[24,0]"), "ends at byte 0 of the data, before");
    CHECK_SAYS(one(f32, "[1]", "[18446744073709551611,18446744073709551615]"), "which has only 24 bytes");

    CHECK_SAYS(two("a", "[0,4]", "a", "[4,8]", 8), "its header has \"a\" twice in one object");
    CHECK_SAYS(two("a\\n", "[0,4]", "a\\n", "[4,8]", 8), "its header has \"a\\n\" twice");
    CHECK_SAYS(two("a", "[0,4]", "b", "[2,6]", 8), "tensor b begins at byte 2 of the data, inside tensor a,");
    CHECK_SAYS(two("a", "[0,4]", "b", "[0,4]", 4), "inside tensor a,");
    CHECK_SAYS(two("a", "[0,4]", "b", "[5,9]", 9), "bytes 4 to 5 of the data, before tensor b");
}

TEST_CASE("safetensors: a tensor that nothing here can hold spoils no other") {
    struct Row {
        const char *dtype, *shape, *bytes;
    };
    for (const Row& row : {Row{"F8_E4M3", "[2,3]", "6"}, Row{"F8_E5M2", "[6]", "6"}, Row{"F8_E8M0", "[0]", "0"},
                           Row{"F4", "[4,3]", "6"}, Row{"F6_E2M3", "[8]", "6"}, Row{"F6_E3M2", "[2,2,2]", "6"},
                           Row{"C64", "[2,2]", "32"}, Row{"F32", "[1,1,2,1,3]", "24"}, Row{"I64", "[1,0,2,1,3]", "0"},
                           Row{"F33", "[2]", "7"}, Row{"F33", "[1,1,1,1,1,1]", "7"}}) {
        CAPTURE(row.dtype);
        TemporaryFolder folder;
        const int bytes = std::stoi(row.bytes);
        std::string data =
            raw_file(text("{\"b\":", entry(text('"', row.dtype, '"'), row.shape, text("[0,", row.bytes, "]")),
                          ",\"a\":", entry("\"F32\"", "[2]", text("[", bytes, ",", bytes + 8, "]")), "}"),
                     std::size_t(bytes) + 8);
        const float numbers[2] = {1.5f, -2};
        std::memcpy(data.data() + data.size() - 8, numbers, 8);
        write_file(folder.file("f"), data);
        const TensorFile file(folder.file("f"));
        float read[2] = {};
        file.copy_to("a", View{read, DType::f32, Device::cpu, {2}, "a"});
        CHECK((read[0] == 1.5f && read[1] == -2));
        REQUIRE(file.find("b") != nullptr);
        CHECK(file.find("b")->bytes() == std::size_t(bytes));
        const std::string named = text("tensor b is ", row.dtype, " (");
        CHECK_SAYS(message_of<BadInput>([&] { file.at("b"); }), named);
        CHECK_SAYS(message_of<BadInput>([&] {
                       file.convert_to("b", View{read, DType::f32, Device::cpu, {2}, "b"});
                   }),
                   named);
        CHECK_SAYS(message_of<BadInput>([&] { file.expect_finite("b"); }), named);
        CHECK_SAYS(message_of<BadInput>([&] { file.integers("b"); }), named);
    }
}

// If reading took time in proportion to n * n, the larger file would take a hundred times as long, which would be
// minutes.
TEST_CASE("safetensors: ten times the tensors take about ten times as long") {
    TemporaryFolder folder;
    const auto ticks = [&](int count) {
        const std::clock_t begin = std::clock();  // processor time, which hardly depends on other programs
        const std::vector<float> number = {1.5f};
        std::vector<StoredTensor> tensors;
        for (int i = 0; i < count; i++)
            tensors.push_back({text("layer.", i, ".weight"), Element::f32, {1}, number.data()});
        write_safetensors(folder.file("many"), tensors);
        const TensorFile file(folder.file("many"));
        for (const StoredTensor& tensor : tensors) CHECK(file.find(tensor.name) != nullptr);
        return double(std::clock() - begin);
    };
    const double few = ticks(10000);
    CHECK(ticks(100000) < 50 * few);
}

TEST_CASE("safetensors: weights that are not finite are named with their place") {
    TemporaryFolder folder;
    std::vector<float> numbers(6000, 1.f);
    const std::vector<std::uint64_t> whole(3);
    const auto said = [&] {
        write_safetensors(folder.file("w"), {{"w", Element::f32, {2, 3000}, numbers.data()}, stored("n", whole)});
        return message_of<BadInput>([&] { TensorFile(folder.file("w")).expect_finite("w"); });
    };
    CHECK(said() == "");
    numbers[4999] = std::numeric_limits<float>::quiet_NaN();
    CHECK_SAYS(said(), "/w: tensor w (2,3000) holds nan as number 4999 of 0 to 5999; weights are finite");
    numbers[0] = -std::numeric_limits<float>::infinity();
    CHECK_SAYS(said(), "holds -inf as number 0 of 0 to 5999");
    const std::vector<std::uint64_t> many(5000);
    write_safetensors(folder.file("w"), {stored("n", many)});
    CHECK_SAYS(message_of<BadInput>([&] { TensorFile(folder.file("w")).expect_finite("n"); }),
               "tensor n (5000) holds U64; real numbers are expected");
}

TEST_CASE("safetensors: any flipped bit, any cut of our own files is found") {
    TemporaryFolder folder;
    std::string path = folder.file("own.safetensors");
    std::vector<double> d(9);
    for (std::size_t i = 0; i < d.size(); i++) d[i] = 1.0 / double(i + 1);
    write_safetensors(path, {stored("d", d), stored("n", std::vector<std::uint64_t>{5})}, {{"step", "100"}});
    const std::string good = read_file(path);
    TensorFile whole(path);
    for (std::size_t bit = 0; bit < good.size() * 8; bit++) {
        std::string bad = good;
        bad[bit / 8] = char(bad[bit / 8] ^ (1 << bit % 8));
        write_file(path, bad);
        bool named = false;  // if a bit in the name of the checksum flips, the file merely has no checksum
        try {
            TensorFile file(path);
            named = file.metadata().count("masquerade.checksum") == 0;
            if (named) CHECK((file.reals("d") == d && file.metadata().at("step") == "100"));
        } catch (const BadInput&) {
            named = true;
        }
        INFO("bit ", bit);
        CHECK(named);
    }
    for (std::size_t bytes = 0; bytes < good.size(); bytes++) {
        write_file(path, good.substr(0, bytes));
        CHECK_THROWS_AS(check_safetensors(path), BadInput);
    }
}

TEST_CASE("safetensors: a full disk is one clear line and leaves no half file") {
    std::vector<double> d(100000, 1.5);
    TemporaryFolder folder;
    std::string path = folder.file("full.safetensors");
    CHECK_SAYS(message_of<BadInput>([&] { write_safetensors(folder.write("file", "") + "/x", {stored("d", d)}); }),
               "Not a directory");
    if (has_full_disk()) {
        std::filesystem::create_symlink("/dev/full", path);  // every write to this device fails for lack of space
        CHECK_SAYS(message_of<BadInput>([&] { write_safetensors(path, {stored("d", d)}); }),
                   "cannot write " + path + ": No space left on device");
        CHECK(std::filesystem::is_character_file(path));  // the link and the device are still there
        std::filesystem::remove(path);
    }

    auto before = std::signal(SIGXFSZ, SIG_IGN);
    rlimit old{}, small{};
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 300000;  // in bytes; the write that crosses the limit is cut short, and the next one fails
    setrlimit(RLIMIT_FSIZE, &small);
    std::string message = message_of<BadInput>([&] { write_safetensors(path, {stored("d", d)}); });
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, before);
    CHECK_SAYS(message, "cannot write " + path + ": File too large");
    CHECK(!std::filesystem::exists(path));
}
