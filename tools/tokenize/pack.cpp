// SPDX-License-Identifier: MIT
// Writes the text in standard input as a packed text, and checks a packed text.
#include <filesystem>
#include <sstream>

#include "data/held_out.h"
#include "data/packed_text.h"
#include "input/lines.h"
#include "models/runs/hugging_face/token_choice.h"
#include "tools/line_filter.h"
#include "tools/program.h"
#include "tools/say.h"
#include "tools/tokenize/tokenize.h"

namespace masquerade {
namespace {

constexpr const char* input = "standard input";

// Encodes training lines in parallel, and adds them to a packed text in their order.
class LinePacker {
  public:
    LinePacker(const WordPiece& tokenizer, PackWriter& writer) : tokenizer_(tokenizer), writer_(writer) {}
    void add(HeldOutLines::Line line) { lines_.push_back(std::move(line)); }
    void flush() {
        constexpr std::size_t together = 1000;
        std::vector<Tokens> sources(lines_.size()), targets(lines_.size());
        parallel_each((lines_.size() + together - 1) / together, [&](std::int64_t part) {
            thread_local Encoder encoder(tokenizer_);
            for (std::size_t i = std::size_t(part) * together;
                 i < std::min(lines_.size(), (std::size_t(part) + 1) * together); i++) {
                encoder.append(lines_[i].source, sources[i]);
                encoder.append(lines_[i].target, targets[i]);
            }
        });
        for (std::size_t i = 0; i < lines_.size(); i++) writer_.add(sources[i], targets[i]);
        lines_.clear();
    }

  private:
    const WordPiece& tokenizer_;
    PackWriter& writer_;
    std::vector<HeldOutLines::Line> lines_;
};

// Reads standard input once, and writes the files of a packed text into the folder `place`. Returns a line that says
// how many sentences or pairs there are.
std::string write_pack(const std::string& place, const WordPiece& tokenizer, bool pairs) {
    PackWriter writer(place, tokenizer, pairs);
    LinePacker packer(tokenizer, writer);
    HeldOutLines chosen([&](HeldOutLines::Line line) { packer.add(std::move(line)); });
    TextCounts counts;
    std::uint64_t tabs = 0;
    const auto pack_lines = [&](std::string_view block, long first) {
        counts.bytes += block.size();
        for (std::string_view line : lines_of(first == 1 ? without_mark(block) : block)) {
            std::string source, target;
            tabs += line.find('\t') != line.npos;
            if (read_line(without_return(line), pairs, longest_sentence, counts, source, target))
                chosen.add(std::move(source), std::move(target));
        }
        packer.flush();
    };
    each_block(pack_lines, [] {
        if (!wait_for_input()) throw BadInput("stopped as asked; nothing was written");
    });
    const std::vector<HeldOutLines::Line> held_out = chosen.finish();
    packer.flush();
    if (const std::string warning = warning_about(counts, input); !warning.empty()) log_line("warning: ", warning);
    if (writer.lines() == 0)
        throw BadInput(input, " has no ", pairs ? "pair: none" : "sentence: none", " of ", counts.lines,
                            " lines has ", pairs ? "both a source and a target, with a tab between them" : "text");
    if (!pairs && 2 * tabs >= counts.lines)
        log_line("note: most lines have a tab and are packed as sentences; --pairs packs source<TAB>target");
    std::string lines;
    for (const HeldOutLines::Line& line : held_out) lines += line.source + (pairs ? '\t' + line.target : "") + '\n';
    writer.finish(lines, held_out.size(), counts);
    return fmt::format("{} {} to train on, {} held out", writer.lines(), pairs ? "pairs" : "sentences",
                       held_out.size());
}

}  // namespace

void pack_text(const TokenizeSettings& s) {
    if (std::filesystem::exists(s.pack))
        throw BadUsage(s.pack, " is there already; remove it, or name another folder with --pack");
    stop_requested();  // from now on, a signal lets the program remove its temporary folder
    HuggingFace read = read_tokenizer(s.vocabulary, s.cased ? std::optional(true) : std::nullopt);
    for (const std::string& note : read.notes) log_line("note: ", s.vocabulary, ": ", note);
    expect_trainable(read.vocabulary, s.vocabulary,
                     text("(echo '[PAD]'; grep -vxF '[PAD]' ", shell_word(s.vocabulary), ") >new-vocab.txt"));
    const WordPiece tokenizer = training_tokenizer(std::move(read));
    std::string packed;
    write_new_folder(s.pack, [&](const std::string& place) { packed = write_pack(place, tokenizer, s.pairs); });
    say("{}\n", packed);
}

void check_pack(const TokenizeSettings& s) {
    const PackedText packed(s.check);
    packed.check();
    say("{}: {} {}, {} tokens; all checksums are right\n", s.check, packed.lines(),
        packed.pairs() ? "pairs" : "sentences", packed.counts(false).tokens + packed.counts(true).tokens);
}

}  // namespace masquerade
