// SPDX-License-Identifier: MIT
// Writes the text in standard input as a packed text, and checks a packed text.
#include <filesystem>

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

// Reads standard input once, and writes the files of a packed text into the folder `place`. Returns a line that says
// how many sentences or pairs there are.
std::string write_pack(const std::string& place, const WordPiece& tokenizer, bool pairs) {
    PackWriter writer(place, tokenizer, pairs);
    std::vector<HeldOutLines::Line> lines;
    HeldOutLines chosen([&](HeldOutLines::Line line) { lines.push_back(std::move(line)); });
    // Encodes the training lines in parallel, and writes them in their order.
    const auto pack = [&] {
        std::vector<Tokens> sources(lines.size()), targets(lines.size());
        parallel_for(std::int64_t(lines.size()), 1000, [&](std::int64_t begin, std::int64_t end) {
            thread_local Encoder encoder(tokenizer);
            for (std::int64_t i = begin; i < end; i++) {
                encoder.append(lines[i].source, sources[i]);
                encoder.append(lines[i].target, targets[i]);
            }
        });
        for (std::size_t i = 0; i < lines.size(); i++) writer.add(sources[i], targets[i]);
        lines.clear();
    };
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
        pack();
    };
    each_block(pack_lines, [] {
        if (!wait_for_input()) throw BadInput("stopped as asked; nothing was written");
    });
    const auto held_out = chosen.finish();
    pack();
    for (const std::string& warning : {warning_about(counts, input), chosen.warning()})
        if (!warning.empty()) log_line("warning: ", warning);
    if (writer.lines() == 0)
        throw BadInput(input, " has no ", pairs ? "pair: none" : "sentence: none", " of ", counts.lines, " lines has ",
                       pairs ? "both a source and a target, with a tab between them" : "text");
    if (!pairs && 2 * tabs >= counts.lines)
        log_line("note: most lines have a tab and are packed as sentences; --pairs packs source<TAB>target");
    std::string apart;
    for (const HeldOutLines::Line& line : held_out) apart += line.source + (pairs ? '\t' + line.target : "") + '\n';
    writer.finish(apart, held_out.size(), counts);
    return fmt::format("{} {} to train on, {} held out", writer.lines(), pairs ? "pairs" : "sentences",
                       held_out.size());
}

}  // namespace

void pack_text(const TokenizeSettings& s) {
    if (std::filesystem::exists(s.pack))
        throw BadUsage(s.pack, " is there already; remove it, or name another folder with --pack");
    stop_requested();  // from now on, a signal lets the program remove its temporary folder
    HuggingFace read = read_vocabulary(s);
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
