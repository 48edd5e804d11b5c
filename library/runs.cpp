// SPDX-License-Identifier: MIT
// Runs in the C interface.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/log.h"
#include "library/call.h"
#include "models/runs/attention_maps.h"
#include "models/runs/start.h"
#include "models/runs/writer.h"
#include "tools/generate/options.h"
#include "tools/run_options.h"

using namespace masquerade;

namespace {

// Returns a unilm with the weights of a Hugging Face folder, which reads lines of up to `max_length` tokens; 0: of as
// many as the weights have positions for, but at most 512.
std::unique_ptr<Run> foreign_run(const Family& family, const std::string& path, int max_length, Device device,
                                 DType storage) {
    const std::unique_ptr<Start> start = Start::open(path);
    const std::unique_ptr<RunSettings> settings = family.settings();
    start->adopt(*settings);
    Config config;
    settings->declare(config);
    config.set("objective", "mlm");
    if (config.value("types") == "1") config.set("target_type", "0");
    const int positions = config.value("rotary") == "true" ? 0 : std::stoi(config.value("positions"));
    const int room = positions > 2 ? positions - 2 : 65536;  // the settings reserve positions for a target of 2 tokens
    if (max_length > room)
        throw BadUsage("max_length is ", max_length, ", and ", path, " has ", positions,
                       " positions; expected at most ", room);
    const int longest = max_length > 0 ? max_length : std::min(room, 512);
    config.set("max_target", "2");
    config.set("max_length", std::to_string(longest));
    const WordPiece reader = start->tokenizer();
    std::unique_ptr<Run> run = family.fresh(*settings, reader.vocabulary(), storage, device);
    run->tokenizer = reader;
    log_line("note: ", path, ": ", start->give_weights(*run), "; lines are cut at ", longest, " tokens");
    run->parameters.freeze();
    return run;
}

// Writes the lines or samples that `options` ask for. `set` may change them after they were read.
std::string written(masquerade_run& of, const Strings& lines, const char* const* options,
                    const std::function<void(Writing&)>& set) {
    GenerateOptions how;
    std::string all;
    with_keys(
        options,
        [&](Options& app) {
            how.declare(app);
            app.value("--seed", how.how.seed, "N", "seed of all random numbers");
            app.reads(of.place);
        },
        [&] {
            how.how.run = of.folder;
            set(how.how);
            const RunWriter writer = how.writer(*of.run, *of.family);
            if (writer.samples > 0 && !lines.empty())
                throw BadUsage(lines.size(), " lines are given, but these options draw ", writer.samples,
                               " samples, which read no lines; ",
                               of.family->options & Family::of_latents ? "reconstruct=true reads them"
                                                                       : "expected no lines");
            const std::size_t count = writer.samples > 0 ? writer.samples : lines.size();
            for (std::size_t first = 0; first < count; first += lines_together) {
                const std::size_t end = std::min(count, first + lines_together);
                all += writer.write(writer.samples > 0 ? Strings(end - first)
                                                       : Strings(lines.begin() + first, lines.begin() + end),
                                    first);
            }
            writer.finish();
        });
    return all;
}

LineScores scores_of(const masquerade_run& of, const Strings& lines, const char* const* options) {
    int importance = 20;
    std::uint64_t seed = 1;
    LineScores scores;
    with_keys(
        options,
        [&](Options& app) {
            app.number("--importance", importance, 1, 100000, "importance samples of a line");
            app.value("--seed", seed, "N", "seed of all random numbers");
        },
        [&] { scores = of.run->scores(lines, importance, seed); });
    return scores;
}

}  // namespace

int masquerade_open(const char* folder, const char* const* options, masquerade_run** run) {
    return call([&] {
        expect(folder, "folder");
        expect(run, "run");
        DeviceOptions device;
        int average = 0, max_length = 0;
        std::string precision = "f32";
        masquerade_run opened;
        with_keys(
            options,
            [&](Options& app) {
                device.declare(app);
                app.number("--average", average, 1, 1000000, "use the mean weights of the last N checkpoints");
                declare_precision(app, precision);
                app.number("--max-length", max_length, 2, 65536, "longest line of a Hugging Face folder, in tokens");
            },
            [&] {
                const Device on = device.choose();
                const DType storage = storage_of(precision);
                const bool foreign = std::filesystem::exists(text(folder, "/config.json")) && !is_run(folder);
                if (foreign && average > 0)
                    throw BadUsage("average needs the checkpoints of a run, and ", folder, " is a Hugging Face folder");
                if (!foreign && max_length > 0)
                    throw BadUsage("max_length is only for a Hugging Face folder, and ", folder, " is a run");
                opened.family = foreign ? &find_family("unilm") : &family_of_run(folder);
                opened.run = foreign ? foreign_run(*opened.family, folder, max_length, on, storage)
                                     : opened.family->load_as(folder, false, on, storage);
                if (average > 0) opened.run->average_checkpoints(average);
            });
        opened.folder = folder;
        opened.place = std::filesystem::absolute(folder).string();
        if (std::string& step = opened.run->step_folder; !step.empty()) step = std::filesystem::absolute(step).string();
        *run = runs().add(std::move(opened));
    });
}

int masquerade_close(masquerade_run* run) {
    return call([&] { runs().close(run); });
}

int masquerade_describe(masquerade_run* run, char** json) {
    return call_with(runs(), run, [&](const masquerade_run& of) {
        expect(json, "json");
        Config config;
        of.run->settings_to_change().declare(config);
        const Vectors vectors = of.run->features({""});
        const nlohmann::ordered_json all = {{"family", of.family->name},
                                            {"description", of.run->description()},
                                            {"step", of.run->step},
                                            {"parameters", of.run->parameters.count()},
                                            {"vocabulary", of.run->tokenizer.vocabulary().size()},
                                            {"vectors", vectors.empty() ? 0 : vectors[0].size()},
                                            {"settings", config.to_json()}};
        give(all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n', json);
    });
}

int masquerade_encode(masquerade_run* run, const char* const* lines, size_t count, const char* const* options,
                      masquerade_array* vectors) {
    return call_with(runs(), run, [&](const masquerade_run& of) {
        expect(vectors, "vectors");
        std::string states;
        VectorChoice which;
        with_keys(
            options,
            [&](Options& app) {
                const Option chosen = app.choice("--states", states, {"mean", "cls"}, "the vectors are hidden states");
                app.flag("--posterior", which.drawn, "draw latents from their posterior").excludes(chosen);
                app.value("--seed", which.seed, "N", "seed of the draws");
            },
            [&] {
                which.set_state(states);
                const Strings given = at_tabs(lines_of(lines, count)).left;
                // An empty line shows how long a vector is if there are no lines.
                const Vectors rows = of.run->vectors(given.empty() ? Strings{""} : given, which);
                if (rows.empty())
                    throw BadUsage(of.folder, " is a run of ", of.family->name, " that has no such vectors of lines");
                Numbers all;
                for (std::size_t i = 0; i < given.size(); i++) append(all, rows[i]);
                give(all, {std::int64_t(count), std::int64_t(rows[0].size())}, vectors);
            });
    });
}

int masquerade_decode(masquerade_run* run, const masquerade_array* latents, const char* const* options, char** lines) {
    return call_with(runs(), run, [&](masquerade_run& of) {
        expect(lines, "text");
        const auto rows = std::make_shared<Matrix>();
        rows->numbers = numbers_in(latents, "latents", 2, {MASQUERADE_FLOAT64, MASQUERADE_FLOAT32});
        rows->rows = latents->shape[0], rows->columns = latents->shape[1];
        for (std::size_t i = 0; i < rows->numbers.size(); i++)
            if (!std::isfinite(rows->numbers[i]))
                throw BadUsage("latents[", std::int64_t(i) / rows->columns, ", ", std::int64_t(i) % rows->columns,
                               "] is ", rows->numbers[i], ", expected a finite number");
        if (of.family->options != Family::of_latents)
            throw BadUsage(of.folder, " is a run of ", of.family->name, ", which has no latents");
        give(written(of, {}, options,
                     [&](Writing& how) {
                         if (how.rewrites() || !how.from_vectors.empty() || !how.nearest.empty() ||
                             !how.vectors.empty() || !how.states.empty())
                             throw BadUsage(
                                 "the rows of latents are decoded: leave out options that say what to decode instead");
                         how.from_vectors = "latents", how.given_vectors = rows;
                     }),
             lines);
    });
}

int masquerade_generate(masquerade_run* run, const char* const* lines, size_t count, const char* const* options,
                        char** out) {
    return call_with(runs(), run, [&](masquerade_run& of) {
        expect(out, "text");
        give(written(of, lines_of(lines, count), options, [](Writing&) {}), out);
    });
}

int masquerade_score(masquerade_run* run, const char* const* lines, size_t count, const char* const* options,
                     masquerade_array* scores) {
    return call_with(runs(), run, [&](const masquerade_run& of) {
        expect(scores, "scores");
        Numbers all;
        for (const LineScore& s : scores_of(of, lines_of(lines, count), options))
            all.push_back(s.nats), all.push_back(s.tokens);
        give(all, {std::int64_t(count), 2}, scores);
    });
}

int masquerade_score_tokens(masquerade_run* run, const char* line, const char* const* options, masquerade_array* nats,
                            char** tokens) {
    return call_with(runs(), run, [&](const masquerade_run& of) {
        expect(nats, "nats");
        expect(tokens, "tokens");
        const LineScore score = scores_of(of, {line_of(line)}, options).at(0);
        if (score.each.empty()) throw BadUsage(of.folder, ": the likelihood of a line is not a sum over its tokens");
        char* names = nullptr;
        give(as_lines(of.run->pieces_of(score.labels)), &names);
        std::unique_ptr<char, void (*)(char*)> kept(names, masquerade_free_text);
        give(score.each, {std::int64_t(score.each.size())}, nats);
        *tokens = kept.release();
    });
}

int masquerade_attention(masquerade_run* run, const char* line, masquerade_use_attention use, void* user) {
    return call_with(runs(), run, [&](masquerade_run& of) {
        const std::string given = line_of(line);
        if (!use) throw BadUsage("the argument use is NULL");
        if (of.run->parameters.device() != Device::cpu)
            throw BadUsage("the run is on a GPU: open it with device=cpu to read its attention");
        const TrainingText example = given_line(given, of.run->common().wants(of.family->reads), of.folder);
        const std::vector<AttentionMap> maps = attention_maps(*of.run, example);
        if (maps.empty()) throw BadUsage(of.folder, ": its kind of attention has no probabilities");
        for (const AttentionMap& map : maps) {
            Numbers p;
            for (const Vectors& head : map.heads)
                for (const Numbers& row : head) append(p, row);
            const masquerade_array array{MASQUERADE_FLOAT64,
                                         3,
                                         {std::int64_t(map.heads.size()), std::int64_t(map.rows.size()),
                                          std::int64_t(map.columns.size())},
                                         p.data()};
            use(map.path.c_str(), as_lines(map.rows).c_str(), as_lines(map.columns).c_str(), &array, user);
        }
    });
}
