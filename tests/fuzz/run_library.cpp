// SPDX-License-Identifier: MIT
// Fuzzes the C interface (library/masquerade.h): calls its functions in random order, with random lines, options, arrays
// and handles, which may be closed. Every call must return a status, and on failure a message in our own words; it may
// store a result only if it succeeds.
//
// Format of an input, in bytes: [run], followed by five bytes for every call: [function, lines, options, array, handle].
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "library/masquerade.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/run_library.h"
#include "tests/fuzz/run_samples.h"

namespace masquerade::fuzz {
namespace {

Counts counts;

constexpr const char* option_words[] = {"reconstruct=true",
                                        "beam=2",
                                        "count=2",
                                        "seed=3",
                                        "top_k=1",
                                        "top_p=0.5",
                                        "temperature=2",
                                        "temperature=0",
                                        "samples=2",
                                        "n_best=2",
                                        "interpolate=true",
                                        "resample=0:2",
                                        "swap=layers:0:1",
                                        "codes=true",
                                        "from_codes=true",
                                        "order=confidence",
                                        "canvas=true",
                                        "parallel=true",
                                        "refine=1",
                                        "scores=true",
                                        "maximum=3",
                                        "minimum=2",
                                        "backward=true",
                                        "length=4",
                                        "points=3",
                                        "each=2",
                                        "importance=2",
                                        "characters=true",
                                        "device=cpu",
                                        "threads=1",
                                        "average=2",
                                        "states=cls",
                                        "states=mean",
                                        "posterior=true",
                                        "show_rounds=true",
                                        "threshold=0.5",
                                        "steps=2",
                                        "per_pass=2",
                                        "remask=1",
                                        "block=2",
                                        "lengths=3",
                                        "latent_temperature=0.5",
                                        "prior=uniform",
                                        "nosuch=1",
                                        "=",
                                        "",
                                        "beam",
                                        "beam=999999999999",
                                        "seed=-1",
                                        "temperature=nan",
                                        "cased=true",
                                        "no_repeat=2",
                                        "forbid=[SEP]",
                                        "bert4keras=true",
                                        "ends_last=true",
                                        "entropy_bound=0.1",
                                        "repetition_penalty=2",
                                        "length_penalty=-1"};

// The arguments of a call, made from its five bytes.
class Arguments {
  public:
    explicit Arguments(const unsigned char* bytes) {
        Grammar random(bytes[1]);
        for (std::size_t n = bytes[1] % 5; n > 0; n--) {
            lines_.push_back(random.text().substr(0, 200));
            if (random.below(4) == 0) lines_.back() += "\t" + random.text().substr(0, 50);
            if (random.below(8) > 0)
                for (char& c : lines_.back())
                    if (c == '\n') c = ' ';
        }
        for (const std::string& line : lines_) line_pointers.push_back(line.c_str());
        if (bytes[1] % 31 == 30) line_pointers.push_back(nullptr);
        Grammar choices(bytes[2]);
        for (std::size_t n = bytes[2] % 4; n > 0; n--)
            option_pointers.push_back(option_words[choices.below(std::size(option_words))]);
        option_pointers.push_back(nullptr);
        Grammar numbers(bytes[3]);
        constexpr std::int64_t sizes[] = {0, 1, 2, 3, 4, 8, 16, -1, std::numeric_limits<std::int64_t>::max()};
        array = {int(numbers.below(6)), int(numbers.below(5)), {}, data_};
        for (std::int64_t& size : array.shape) size = sizes[numbers.below(std::size(sizes))];
        if (numbers.below(8) == 0) array.data = nullptr;
        constexpr double values[] = {0, 1, 0.5, -1, 1e300, NAN, INFINITY, 3};
        for (double& value : data_) value = values[numbers.below(std::size(values))];
        if (array.type == MASQUERADE_INT32)
            for (std::size_t i = 0; i < 2 * std::size(data_); i++) {
                const std::int32_t id = std::int32_t(numbers.below(70)) - 2;
                std::memcpy(reinterpret_cast<char*>(data_) + 4 * i, &id, 4);
            }
    }
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;

    const char* line() const { return line_pointers.empty() ? nullptr : line_pointers[0]; }
    std::vector<const char*> line_pointers, option_pointers;
    masquerade_array array;

  private:
    std::vector<std::string> lines_;
    double data_[16 * 16 * 16] = {};
};

// Requires what every call promises. `stored` says whether a result was stored.
void check(int status, bool stored) {
    const std::string said = masquerade_error();
    if (status == MASQUERADE_OK) {
        counts.read++;
        require(said.empty(), "a call that succeeds leaves no message");
        return;
    }
    counts.refused++;
    require(status == MASQUERADE_FAILURE || status == MASQUERADE_MISUSE, "a status is 0, 1 or 2");
    require(!said.empty() && said.size() < 3000, "a message is short, and not empty");
    for (const char* raw : {"json.exception", "_M_", "std::", "basic_string", "stoi", "vector::", "unexpected kind"})
        if (said.find(raw) != said.npos) throw Broken{"a message is in our words: " + said};
    require(!stored, "a call that fails stores nothing");
}

void check_text(int status, char* text) {
    check(status, text != nullptr);
    const std::size_t size = text ? std::strlen(text) : 0;
    if (status == MASQUERADE_OK) require(text && (size == 0 || text[size - 1] == '\n'), "a text is whole lines");
    masquerade_free_text(text);
}

void check_array(int status, masquerade_array array) {
    check(status, array.data || array.type);
    double sum = 0;
    std::int64_t count = array.dimensions > 0 ? 1 : 0;
    for (int d = 0; d < array.dimensions; d++) count *= array.shape[d];
    for (std::int64_t i = 0; i < count && array.type == MASQUERADE_FLOAT64; i++)
        sum += static_cast<const double*>(array.data)[i];  // under AddressSanitizer, reads to the end
    require(!std::isnan(sum), "no result is NaN");
    masquerade_free_array(&array);
}

void ignore_map(const char* path, const char*, const char*, const masquerade_array* p, void*) {
    require(*path && p->dimensions == 3, "a map has a path and three dimensions");
}

std::string broken_calls(const std::string& input) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(input.data());
    std::vector<masquerade_run*> all_runs;
    std::vector<masquerade_tokenizer*> all_tokenizers;
    std::string calls;
    try {
        const std::string& sample = run_sample(bytes[0]);
        masquerade_run* run = nullptr;
        check(masquerade_open(sample.c_str(), nullptr, &run), run);
        all_runs.push_back(run);
        for (std::size_t at = 1; at + 4 < input.size(); at += 5) {
            const Arguments a(bytes + at);
            calls += " " + std::to_string(bytes[at] % 15);
            masquerade_run* of = bytes[at + 4] % 16 == 15 ? nullptr : all_runs[bytes[at + 4] % all_runs.size()];
            masquerade_tokenizer* by =
                all_tokenizers.empty() ? nullptr : all_tokenizers[bytes[at + 4] % all_tokenizers.size()];
            const char* const* lines = a.line_pointers.data();
            const char* const* options = a.option_pointers.data();
            const std::size_t count = a.line_pointers.size();
            char* text = nullptr;
            masquerade_array array{};
            int status;
            switch (bytes[at] % 15) {
                case 0:
                    status = masquerade_open(sample.c_str(), options, &run);
                    check(status, false);
                    if (status == MASQUERADE_OK) all_runs.push_back(run);
                    break;
                case 1: check(masquerade_close(of), false); break;
                case 2: status = masquerade_describe(of, &text), check_text(status, text); break;
                case 3:
                    status = masquerade_encode(of, lines, count, options, &array), check_array(status, array);
                    break;
                case 4: status = masquerade_decode(of, &a.array, options, &text), check_text(status, text); break;
                case 5: status = masquerade_generate(of, lines, count, options, &text), check_text(status, text); break;
                case 6: status = masquerade_generate(of, nullptr, 0, options, &text), check_text(status, text); break;
                case 7: status = masquerade_score(of, lines, count, options, &array), check_array(status, array); break;
                case 8:
                    status = masquerade_score_tokens(of, a.line(), options, &array, &text);
                    check_text(status, text);
                    if (status == MASQUERADE_OK) check_array(status, array);
                    break;
                case 9: check(masquerade_attention(of, a.line(), ignore_map, nullptr), false); break;
                case 10: {
                    masquerade_tokenizer* made = nullptr;
                    status = masquerade_tokenizer_of(of, &made);
                    check(status, made);
                    if (made) all_tokenizers.push_back(made);
                    break;
                }
                case 11: status = masquerade_tokenize(by, a.line(), options, &array), check_array(status, array); break;
                case 12: status = masquerade_detokenize(by, &a.array, &text), check_text(status, text); break;
                case 13: status = masquerade_mask_words(&a.array, &text), check_text(status, text); break;
                default:
                    status = masquerade_mask(a.line(), int(bytes[at + 3]) - 3, int(bytes[at + 4]) - 3, &array);
                    check_array(status, array);
                    break;
            }
        }
    } catch (const Broken& e) {
        calls = e.property + "; " + name_of_run(bytes[0]) + ", functions" + calls;
        for (masquerade_run* run : all_runs) masquerade_close(run);
        for (masquerade_tokenizer* tokenizer : all_tokenizers) masquerade_close_tokenizer(tokenizer);
        return calls;
    }
    for (masquerade_run* run : all_runs) masquerade_close(run);
    for (masquerade_tokenizer* tokenizer : all_tokenizers) masquerade_close_tokenizer(tokenizer);
    return "";
}

std::string make_calls(Grammar& random) {
    std::string input(1, char(random.below(run_count())));
    for (std::size_t n = 5 * (1 + random.below(8)); n > 0; n--) input += char(random.below(256));
    return input;
}

// Every function with every run.
std::vector<std::string> known_calls() {
    std::vector<std::string> all;
    for (std::size_t run = 0; run < run_count(); run++) {
        std::string input(1, char(run));
        for (int function : {10, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14}) input += {char(function), 1, 0, 7, 0};
        all.push_back(input);
    }
    return all;
}

}  // namespace

const Target& library_target() {
    static const Target target = {
        "library", "runs", 1, make_calls, broken_calls, known_calls, [] { return counts.told(); }};
    return target;
}

}  // namespace masquerade::fuzz
