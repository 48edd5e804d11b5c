// SPDX-License-Identifier: MIT
// ./inspect checkpoint: lists the tensors of a checkpoint, or of a Hugging Face folder; saves a model for Hugging Face;
// computes logits.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>

#include "data/text.h"
#include "engine/base/log.h"
#include "engine/io/file.h"
#include "engine/io/run_folder.h"
#include "engine/io/safetensors.h"
#include "engine/tape/tape.h"
#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "models/runs/run.h"
#include "models/runs/start.h"
#include "tokenizer/frame.h"
#include "tokenizer/hugging_face/hugging_face.h"
#include "tools/inspect/inspect.h"
#include "tools/say.h"

namespace masquerade {
namespace fs = std::filesystem;
namespace {

// Returns the columns "type" and "shape" of tensor t in a list of tensors. If the tensor cannot be read, t.unreadable
// contains the text of both columns.
template <class T>
std::string type_and_shape(const T& t) {
    return t.unreadable.empty() ? fmt::format("{:6}{}", name_of(t.element), text(t.shape)) : t.unreadable;
}

// Returns the width of the column of names in a list of tensors.
template <class T>
std::size_t width_of_names(const std::vector<T>& tensors, std::size_t least) {
    for (const T& t : tensors) least = std::max(least, printable(t.name).size() + 2);
    return least;
}

// Writes a model as a Hugging Face folder, and says so. If this fails, none of the files remain in the folder.
void save_whole(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                const WordPiece& tokenizer) {
    fill_folder(folder, [&](const std::string& place) { save_hugging_face(place, backbone, parameters, tokenizer); });
    say("{}: {} tokens, {} numbers\n", folder, backbone.options.vocabulary, parameters.count());
}

// A model from a Hugging Face folder, loaded with some or all of its tokens.
struct Model {
    HuggingFaceConfig config;
    std::optional<WordPiece> tokenizer;
    Parameters parameters;
    Backbone backbone;
    HuggingFaceWeights weights;

    // Without `choice`, the model has all tokens of the folder. Without `reader`, the model has no tokenizer, so it
    // can neither be saved nor read text.
    Model(const std::string& folder, std::uint64_t seed, const HuggingFaceConfig& c, const TokenChoice& choice = {},
          std::optional<WordPiece> reader = {})
        : config(c), tokenizer(std::move(reader)), backbone(parameters, config.backbone) {
        weights = load_hugging_face(folder, backbone, parameters, choice, seed);
    }
};

// Returns the tokens that the tokenizer can produce, and all special and added tokens. Added tokens that are not in
// the model's own vocabulary come last.
ChosenTokens simplified(const WordPiece& reader) {
    const Vocabulary& all = reader.vocabulary();
    Strings first;
    std::set<int> beyond;
    for (const char* special : special_tokens)
        if (all.id(special) >= 0) first.push_back(special);
    for (const AddedToken& token : reader.added())
        if (token.beyond)
            beyond.insert(token.id);
        else if (!all.is_special(token.id))
            first.push_back(token.text);
    ChosenTokens chosen =
        simplified_tokens(first_tokens(all, all.size() - int(beyond.size())), first, reader.options());
    Strings tokens = chosen.vocabulary.tokens();
    for (int id : beyond) {
        tokens.push_back(all.token(id));
        chosen.choice.keep.push_back(id);
    }
    chosen.vocabulary = Vocabulary(std::move(tokens));
    chosen.choice.pad = all.pad();
    return chosen;
}

ChosenTokens choose(const WordPiece& reader, int rows, const CheckpointSettings& s) {
    if (s.tokens.empty()) return fitted_tokens(reader, rows, s.path);
    if (s.tokens == "pad-first") return pad_first(reader, rows);
    const WordPiece known = with_tokens(reader, first_tokens(reader.vocabulary(), rows));
    if (s.tokens == "simplified") return simplified(known);
    ChosenTokens chosen = wanted_tokens(known, Vocabulary::load(s.tokens));
    int lost = 0;
    for (const AddedToken& token : known.added()) lost += chosen.vocabulary.id(token.text) < 0;
    if (lost > 0)
        log_line("note: ", s.tokens, " lacks ", lost, " special or added tokens of ", s.path, ": they are left out");
    return chosen;
}

Model open_model(const CheckpointSettings& s, std::uint64_t seed) {
    HuggingFaceConfig config = read_hugging_face_config(s.path);
    HuggingFace read = read_tokenizer(s.path);
    for (const std::string& note : read.notes) log_line("note: ", note);
    const WordPiece reader(std::move(read.vocabulary), std::move(read.options), std::move(read.added));
    const ChosenTokens chosen = choose(reader, config.backbone.vocabulary, s);
    config.backbone.vocabulary = chosen.choice.size(config.backbone.vocabulary);
    return Model(s.path, seed, config, chosen.choice, with_tokens(reader, chosen.vocabulary));
}

void save(const Model& model, const std::string& folder) {
    for (const char* name :
         {"config.json", "model.safetensors", "vocab.txt", "tokenizer.json", "tokenizer_config.json"})
        if (fs::exists(folder + "/" + name))
            throw BadInput(folder, " holds a ", name, " already; choose another folder");
    if (!model.weights.head)
        log_line("note: the model has no masked-language-model head; the saved one has a new one, at its first values");
    save_whole(folder, model.backbone, model.parameters, *model.tokenizer);
}

// Reads standard input; each line becomes a document, and its tokens become rows. A line is "first" or
// "first<TAB>second". [CLS] and [SEP] are added, and lines that are longer than the model permits are cut.
void read_lines(const Model& model, TokenRows& rows, Documents& documents) {
    const WordPiece& tokenizer = *model.tokenizer;
    const Vocabulary& v = tokenizer.vocabulary();
    if (v.cls() < 0 || v.sep() < 0) throw BadInput("the vocabulary has no [CLS] or no [SEP], which a line needs");
    LineReader reader(std::cin, "standard input");
    for (std::string line; reader.next(line);) {
        const std::size_t tab = line.find('\t');
        const bool pair = tab != line.npos;
        Tokens first = tokenizer.encode(line.substr(0, tab)), second;
        if (pair) second = tokenizer.encode(line.substr(tab + 1));
        const int room = std::max(0, model.config.backbone.positions - (pair ? 3 : 2)), before = rows.count();
        const Lengths kept = longest_first(tokenizer.options().rules, room, first.size(), second.size());
        auto push = [&](int id, int type) { rows.push(id, type, rows.count() - before, documents.size()); };
        push(v.cls(), 0);
        for (int i = 0; i < kept.first; i++) push(first[i], 0);
        push(v.sep(), 0);
        for (int i = 0; i < kept.second; i++) push(second[i], 1);
        if (pair) push(v.sep(), 1);
        documents.push_back({rows.count() - before, 0});
    }
    reader.finish();
    if (documents.empty()) throw BadInput("standard input is empty; lines of text are expected");
}

void write_logits(const Model& model, const std::string& path) {
    if (!model.weights.head)
        throw BadInput("the model has no masked-language-model head, so there are no logits; a ...ForMaskedLM has one");
    TokenRows rows;
    Documents documents;
    read_lines(model, rows, documents);
    const SegmentGraph graph = full_mask(documents);
    Arena arena;
    Tape tape(arena, model.backbone.storage());
    tape.begin("lines");
    Tensor* x = model.backbone.run(tape, rows, graph);  // (N,C): a row per token
    // (N,V): a row per token, a column per token of the vocabulary
    const Tensor* logits = model.backbone.logits(tape, model.backbone.head(tape, model.backbone.finish(tape, x)));
    std::vector<std::uint64_t> begin = {0};
    for (const auto& document : documents) begin.push_back(begin.back() + std::uint64_t(document.source));
    const std::vector<std::uint64_t> ids(rows.ids.begin(), rows.ids.end()), types(rows.types.begin(), rows.types.end());
    replace_file(path, [&](const std::string& place) {
        write_safetensors(place, {stored("ids", ids), stored("types", types), stored("begin", begin),
                                  stored("logits", logits->view())});
    });
    say("{}: logits {} of {} lines\n", path, text(logits->shape), documents.size());
}

void list(const std::string& folder, std::uint64_t seed) {
    const Model model(folder, seed, read_hugging_face_config(folder));
    const BackboneOptions& b = model.config.backbone;
    say("{}: {}\nlayers={} width={} heads={} inner={} vocabulary={} embedding={} types={} positions={} "
        "rotary={} "
        "rotary_value={} rotary_base={} ffn={} gelu={} bias={} head_bias={} eps={} dropout={} attention_dropout={} "
        "deviation={}\n\n",
        folder, model.config.type, b.layers, b.width, b.heads, b.inner, b.vocabulary, b.embedding_width(), b.types,
        b.positions, b.rotary, b.rotary_value, b.rotary_base, b.ffn, b.gelu == GeluKind::erf ? "erf" : "tanh", b.bias,
        b.biased_head(), b.eps, b.dropout, b.attention_dropout, b.deviation);
    const std::size_t width = width_of_names(model.weights.tensors, 8);
    say("{:{}}{:6}{:14}goes to\n", "tensor", width, "type", "shape");
    for (const HuggingFaceTensor& t : model.weights.tensors)
        say("{:{}}{:20}{}\n", t.name, width, type_and_shape(t), t.place.empty() ? "- (unused)" : t.place);
    say("\n{} tensors, {} of them unused; {} parameters\n", model.weights.tensors.size(), model.weights.unused.size(),
        model.parameters.count());
    for (const std::string& name : model.weights.unused) say("unused: {}\n", name);
    if (!model.weights.head) say("no masked-language-model head: head.* keep their first values\n");
}

// A folder is a Hugging Face folder if it has a model's files, and is neither a run folder nor a step folder (the folder
// of one saved step of a run).
bool is_hugging_face(const std::string& path) {
    const auto holds = [&](auto... names) { return (fs::exists(path + "/" + names) || ...); };
    return fs::is_directory(path) && !is_run(path) &&
           holds("config.json", "pytorch_model.bin", "pytorch_model.bin.index.json", "bert_model.ckpt.index");
}

void inspect_hugging_face(const CheckpointSettings& s, std::uint64_t seed) {
    if (s.save.empty() && s.logits.empty()) {
        if (!s.tokens.empty()) throw BadUsage("--tokens chooses what --save or --logits work with; give one of them");
        return list(s.path, seed);
    }
    const auto whole_path = [](const std::string& path) { return fs::weakly_canonical(fs::absolute(path)); };
    if (!s.save.empty() && !s.logits.empty() &&
        *whole_path(s.logits).lexically_relative(whole_path(s.save)).begin() != "..")
        throw BadUsage("--logits ", s.logits,
                       " lies in the folder of --save, which holds nothing but the model: give "
                       "--logits another file");
    const Model model = open_model(s, seed);
    if (!s.save.empty()) save(model, s.save);
    if (!s.logits.empty()) write_logits(model, s.logits);
}

bool is_real(Element e) { return e == Element::f16 || e == Element::bf16 || e == Element::f32 || e == Element::f64; }

void list_tensors(const std::string& path) {
    TensorFile file(path);
    const std::size_t width = width_of_names(file.tensors(), 10);
    say("{}\n{:{}}{:6}{:16}{:>12}{:>12}{:>12}{:>12}\n", path, "tensor", width, "type", "shape", "mean", "deviation",
        "least", "largest");
    std::int64_t numbers = 0;
    for (const StoredTensor& t : file.tensors()) {
        const std::int64_t n = t.shape.count();
        numbers += n;
        say("{:{}}{:22}", t.name, width, type_and_shape(t));
        if (t.unreadable.empty() && is_real(t.element) && n > 0) {
            Numbers x(n);
            file.convert_to(t.name, View{x.data(), DType::f64, Device::cpu, t.shape, t.name.c_str()});
            double mean = 0, square = 0;
            for (double v : x) mean += v / double(n);
            for (double v : x) square += (v - mean) * (v - mean) / double(n);
            auto [low, high] = std::minmax_element(x.begin(), x.end());
            say("{:12.4g}{:12.4g}{:12.4g}{:12.4g}", mean, std::sqrt(square), *low, *high);
        }
        say("\n");
    }
    say("{} tensors, {} numbers\n", file.tensors().size(), numbers);
}

// Lists the tensors of a safetensors file, of the folder of one step of a run, or of the latest step in a run folder.
void list_checkpoint(const std::string& path) {
    if (!fs::is_directory(path)) return list_tensors(path);
    std::string folder = path;
    if (!fs::exists(path + "/model.safetensors")) {
        RunFolder run = RunFolder::open(path);
        folder = run.step_folder(run.latest_step());
    }
    for (const char* name : {"model.safetensors", "state.safetensors"})
        if (fs::exists(folder + "/" + name)) list_tensors(folder + "/" + name);
}

}  // namespace

void inspect_checkpoint(const CheckpointSettings& s, std::uint64_t seed) {
    if (is_hugging_face(s.path)) return inspect_hugging_face(s, seed);
    // The model of a run of unilm, or of univae with decoder=causal, is a single stack of layers, which can be saved as
    // a Hugging Face BERT, RoFormer or NomicBERT.
    const bool plain_save = !s.save.empty() && s.tokens.empty() && s.logits.empty();
    if (plain_save && fs::is_directory(s.path))
        if (const auto run = family_of_run(s.path).load(s.path, false, Device::cpu); run->bert()) {
            if (fs::exists(s.save)) throw BadInput(s.save, " is there already; choose another folder");
            return save_whole(s.save, *run->bert(), run->parameters, run->tokenizer);
        }
    for (const auto& [option, value] : {std::pair{"--save", s.save}, {"--tokens", s.tokens}, {"--logits", s.logits}})
        if (!value.empty())
            throw BadUsage(
                option,
                " needs the folder of a Hugging Face BERT, RoFormer or NomicBERT (--save without --tokens and "
                "--logits also takes a run of unilm, or of univae with decoder=causal), which ",
                s.path, " is not; leave it out to list the tensors");
    list_checkpoint(s.path);
}

}  // namespace masquerade
