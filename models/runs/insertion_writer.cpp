// SPDX-License-Identifier: MIT
#include <algorithm>

#include "models/runs/insertion_run.h"
#include "models/runs/writer.h"

namespace masquerade {
namespace {

class ByInsertion : public RunWriter {
  public:
    ByInsertion(const InsertionRun& run, const Writing& how)
        : how_(how), run_(run), options_(how.options_for(run, true)) {
        if (how.count > 0)
            throw BadUsage(
                "--count needs a model that samples text; insertion writes a target for each line of standard input");
        run.insert({}, options_, {});  // checks the options now, before input lines are read
    }

    std::string write(std::vector<std::string> lines, std::uint32_t first) override {
        std::vector<std::string> sources;
        std::vector<Canvas> starts;
        for (const std::string& line : lines) {
            const std::size_t tab = std::min(line.find('\t'), line.size());
            sources.push_back(line.substr(0, tab));
            starts.push_back(how_.from_canvas && tab < line.size() ? run_.canvas_of(line.substr(tab + 1)) : Canvas());
        }
        std::vector<Sentence> sentences = run_.sentences(sources);
        for (std::size_t i = 0; i < sentences.size(); i++) sentences[i].name = int(first + i);
        std::string all;
        for (const Written& w : run_.insert(pointers_to(sentences), options_, std::move(starts))) {
            std::vector<std::string> words;
            for (int token : w.tokens) words.push_back(run_.tokenizer.vocabulary().token(token));
            all += (how_.show_rounds ? draw_rounds(w, words) : run_.text(w.tokens)) + '\n';
        }
        return all;
    }

  private:
    const Writing how_;
    const InsertionRun& run_;
    const SearchOptions options_;
};

}  // namespace

std::unique_ptr<RunWriter> InsertionRun::writer(const Writing& how) {
    return std::make_unique<ByInsertion>(*this, how);
}

}  // namespace masquerade
