// SPDX-License-Identifier: MIT
// ./bench many: the options, the programs that it starts, and the tables.
#include "tools/bench/many.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/log.h"
#include "engine/base/processes.h"
#include "engine/base/shared_library.h"
#include "engine/base/wrap.h"
#include "input/input.h"
#include "tools/bench/measure.h"

namespace masquerade {
namespace {

constexpr double micro = 1e-6, milli = 1e-3, giga = 1e9;
std::string in_us(double seconds) { return figures(seconds / micro); }
std::string in_ms(double seconds) { return figures(seconds / milli); }
std::string in_gigabytes(double bytes) { return figures(bytes / giga); }

struct CaseOptions {
    MeasuredRun run;
    std::vector<int> processes = {1, 2, 4};
    bool simulate = false;
    // Numbers of a cluster that is not at hand, in the units of the options. -1 means that they are measured here.
    double part = -1, update = 0, latency = -1, bandwidth = -1, between = -1;
    int node = 0;

    bool measures_part() const { return part < 0; }
    bool measures_messages() const { return latency < 0 || bandwidth < 0; }
};

// Returns the runs to measure: the run that the user names or, if there are no words, two models that need no pairs. A
// run without the setting `parts` has `parts` parts.
std::vector<MeasuredRun> runs_of(const CaseOptions& o, int parts) {
    std::vector<MeasuredRun> runs = {o.run};
    if (o.run.words.empty()) runs = {{{"univae"}, o.run.data}, {{"unilm", "objective=lm"}, o.run.data}};
    const auto is_parts = [](const std::string& word) { return word.rfind("parts=", 0) == 0; };
    for (MeasuredRun& run : runs)
        if (std::none_of(run.words.begin(), run.words.end(), is_parts)) run.words.push_back(text("parts=", parts));
    return runs;
}

void expect_mpi() {
    const bool has_mpirun = !first_line_of("command -v mpirun").empty();
    if (has_mpirun && !find_library("libmasquerade_mpi.so", "MASQUERADE_MPI").empty()) return;
    throw BadInput("./bench many starts several processes by mpirun, but there is no ",
                   has_mpirun ? "libmasquerade_mpi.so beside the program" : "mpirun",
                   ": run make deps-mpi, then make and make bench");
}

// Measures this run by `count` new processes of `threads` threads each, and returns the row. OpenMPI reads the
// variables, and starts more processes than there are processors.
Json row_of(const Bench& bench, const MeasuredRun& run, int count, int threads) {
    constexpr const char* allow =
        "PMIX_MCA_gds=hash OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
        "OMPI_MCA_rmaps_base_oversubscribe=1 "
        "OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe "
        "PRTE_MCA_hwloc_default_binding_policy=none ";
    const std::string by = counted(count, "process");
    bench.progress(text(run.words[0], ": ", by, " of ", counted(threads, "thread")));
    const SharedFolder folder;
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string(), file = folder.file("row");
    std::string command =
        text(count > 1 ? text(allow, "mpirun -n ", count, ' ') : "", shell_word(program), " --device ",
             name_of(bench.common.device), " --threads ", threads, " --repeats ", bench.options.repeats,
             bench.common.seed_given ? text(" --seed ", bench.common.seed) : "", " --save ", shell_word(file),
             " many --processes 1");
    for (const std::string& word : run.words) command += ' ' + shell_quoted(word);
    if (!run.data.empty()) command += " --data " + shell_word(run.data);
    const std::string error = first_line_of(command + " 2>&1 | sed -n 's/^error: //p'");
    if (std::filesystem::exists(file)) {
        const Json all = parse_input<Error>(read_input<Error>(file), file);
        if (all.at("complete")) return all.at("rows").at(0);
    }
    bench.progress("");  // throws Stopped after Ctrl-C, which the other processes have received, too
    throw Error(run.words[0], " by ", by, " was not measured: ", error.empty() ? "no error message" : error);
}

double median_of(const Json& row) { return row["seconds"]["median"]; }

constexpr const char* one_text = "Each number of processes computes the same steps, with the same bits.\n";
constexpr const char* row_form = "{:>9}{:>9}{:>12}{:>18}{:>8}{:>16}{:>11}\n";
std::string head_of_rows() {
    return fmt::format(row_form, "processes", "threads", "ms a step", "range", "ratio", "exchange ms", "MiB sent");
}
// Returns a line of the table. `one` is the row of one process, or null.
std::string line_of(const Json& row, const Json& one) {
    const bool many = row["processes"] > 1;
    const std::string line =
        fmt::format(row_form, row["processes"].get<int>(), row["threads"].get<int>(), in_ms(row["seconds"]["median"]),
                    in_ms(row["seconds"]["least"]) + " - " + in_ms(row["seconds"]["most"]),
                    one.is_null() ? "" : figures(median_of(row) / median_of(one)),
                    many ? in_ms(row["exchange"]["least"]) + " - " + in_ms(row["exchange"]["most"]) : "",
                    many ? figures(row["sent"].get<double>() / (1 << 20)) : "");
    return line.substr(0, line.find_last_not_of(" \n") + 1) + '\n';
}
std::string about(const Json& row) {
    return fmt::format("{}: {}\n  {:.2f} M parameters, {}, parts={}, {} tokens in a batch\n",
                       row["model"].get<std::string>(), row["description"].get<std::string>(),
                       row["parameters"].get<double>() / 1e6, row["precision"].get<std::string>(),
                       row["parts"].get<int>(), row["batch_tokens"].get<int>());
}
std::string about_messages(const Json& row) {
    if (!row.contains("messages")) return "";
    std::string said = text("messages between ", row["processes"], " processes:");
    for (const Json& message : row["messages"])
        said += fmt::format(" {:.0f} B {} us,", message["bytes"].get<double>(), in_us(message["seconds"]));
    said += text(" latency ", in_us(row["latency"]), " us, bandwidth ", in_gigabytes(row["bandwidth"]), " GB/s");
    return wrapped(said, 80) + '\n';
}

using Rows = std::map<int, Json>;  // by the number of processes

// Measures a run by each number of processes, which share the threads of this process equally. Returns the rows.
Rows measure_all(Bench& bench, const MeasuredRun& run, const std::set<int>& counts) {
    Rows rows;
    for (int count : counts) {
        const Json row = row_of(bench, run, count, std::max(1, threads() / count));
        if (rows.empty())
            bench.show('\n' + about(row) + head_of_rows());
        else if (row["weights"] != rows.begin()->second["weights"])
            log_line("note: WARNING: ", row["name"].get<std::string>(),
                     " do NOT compute the same bits as the first row");
        rows[count] = row;
        bench.add(row, line_of(row, rows.count(1) ? rows[1] : Json()));
    }
    for (const auto& [count, row] : rows) bench.show(about_messages(row));
    return rows;
}

// Prints the model's prediction for 1, 2, 4, ..., 1024 processes.
void show_prediction(Bench& bench, const Cluster& c, const RunSizes& sizes) {
    const auto [bytes, parts] = sizes;
    constexpr const char* form = "{:>9}{:>8}{:>13}{:>13}{:>12}{:>12}{:>12}\n";
    const std::string nodes =
        c.node > 0 ? text(", ", in_gigabytes(c.bandwidth_between), " GB/s between nodes of ", c.node) : "";
    std::string said = fmt::format(
        "computed, not measured: {} ms for each part, {} ms for the update, gradients of {} MiB, latency {} us, "
        "bandwidth {} GB/s{}; each process has a processor or GPU of its own",
        in_ms(c.part), in_ms(c.update), figures(bytes / (1 << 20)), in_us(c.latency), in_gigabytes(c.bandwidth), nodes);
    said = wrapped(said, 80) + '\n' +
           fmt::format(form, "processes", "parts", "compute ms", "exchange ms", "ms a step", "speed-up", "efficiency");
    const double one = predict(c, parts, 1, bytes).parts_per_second();
    for (int count = 1; count <= 1024; count *= 2) {
        const Prediction p = predict(c, std::max(parts, count), count, bytes);
        const double faster = p.parts_per_second() / one;
        said += fmt::format(form, count, p.parts, in_ms(p.compute), in_ms(p.exchange), in_ms(p.step()), figures(faster),
                            fmt::format("{:.0f} %", 100 * faster / count));
        bench.add({{"computed", true},
                   {"processes", count},
                   {"parts", p.parts},
                   {"compute", p.compute},
                   {"exchange", p.exchange},
                   {"seconds", p.step()},
                   {"speed_up", faster}},
                  "");
    }
    bench.show(said + '\n');
}

// Compares the prediction for the processes of this machine with the measurement. The times of one process with the
// same number of threads are measured, too. If there are more threads than processors, they take turns.
void compare(Bench& bench, const MeasuredRun& run, const Rows& rows, Cluster c) {
    constexpr const char* form = "{:>9}{:>9}{:>15}{:>15}{:>8}\n";
    std::string said = "predicted for this machine from one process that computes alone, and measured:\n" +
                       fmt::format(form, "processes", "threads", "predicted ms", "measured ms", "ratio");
    Rows single = {{threads(), rows.at(1)}};
    for (const auto& [count, row] : rows) {
        if (count == 1) continue;
        const int own = row["threads"];
        if (!single.count(own)) single[own] = row_of(bench, run, 1, own);
        const double turns = std::max(1.0, double(count * own) / threads());
        c.part = turns * single[own]["part"].get<double>(), c.update = turns * single[own]["update"].get<double>();
        const double step = predict(c, row["parts"], count, row["gradient_bytes"]).step();
        said += fmt::format(form, count, own, in_ms(step), in_ms(median_of(row)), figures(step / median_of(row)));
    }
    bench.show(said + '\n');
}

void simulate(Bench& bench, const MeasuredRun& run, const CaseOptions& o, const std::set<int>& counts) {
    Rows rows;
    if (o.measures_messages())
        rows = measure_all(bench, run, counts);
    else if (o.measures_part())
        rows = measure_all(bench, run, {1});
    RunSizes sizes;
    Cluster c;
    for (const auto& [count, row] : rows) {
        sizes = {row["gradient_bytes"], row["parts"]};
        if (count == 1) c.part = row["part"], c.update = row["update"];
        if (count > 1 && c.latency == 0) c.latency = row["latency"], c.bandwidth = row["bandwidth"];
    }
    if (rows.empty()) sizes = sizes_of(bench, run);
    if (!o.measures_part()) c.part = o.part * milli, c.update = o.update * milli;
    if (o.latency >= 0) c.latency = o.latency * micro;
    if (o.bandwidth > 0) c.bandwidth = o.bandwidth * giga;
    c.bandwidth_between = o.between > 0 ? o.between * giga : c.bandwidth;
    c.node = o.node;
    show_prediction(bench, c, sizes);
    if (o.measures_part() && o.latency < 0 && o.bandwidth < 0) compare(bench, run, rows, c);
}

void run(Bench& bench, const CaseOptions& o) {
    bench.has_peer = false;
    std::set<int> counts(o.processes.begin(), o.processes.end());
    const int most = *counts.rbegin();
    const bool many = most > 1;
    if (o.simulate) {
        if (!alone()) throw BadUsage("--simulate starts processes itself: leave out mpirun or srun");
        if (!many && o.measures_messages())
            throw BadUsage(
                "--simulate measures messages between processes: give --processes 2, or --latency and "
                "--bandwidth");
        counts.insert(1);
    }
    const auto runs = runs_of(o, alone() ? most : processes().count());
    if (!o.simulate && (!alone() || !many)) {  // this process itself is one of those to measure
        bench.begin(Json::object(), "", one_text);
        for (const MeasuredRun& run : runs) {
            const Json row = measure_together(bench, run);
            bench.add(row, '\n' + about(row) + head_of_rows() + line_of(row, {}) + about_messages(row));
        }
        return;
    }
    if (many && (!o.simulate || o.measures_messages())) expect_mpi();
    const bool measures = !o.simulate || o.measures_messages() || o.measures_part();
    bench.begin(Json::object(), "", measures ? one_text : "Nothing is measured, because all times are given.\n\n");
    for (const MeasuredRun& run : runs) {
        if (o.simulate)
            simulate(bench, run, o, counts);
        else
            measure_all(bench, run, counts);
    }
}

}  // namespace

RunCase many_case(Options& app) {
    auto o = std::make_shared<CaseOptions>();
    app.value("words", o->run.words, "[MODEL] [KEY=VALUE ...]",
              "settings as for ./train (default: univae, then unilm objective=lm); parts is the largest number of "
              "processes by default");
    app.input("--data", o->run.data, "FILE", "text as for ./train (default: corpus/)");
    app.number(
           "--processes", o->processes, 1, 1024,
           "numbers of processes to measure on this machine; mpirun starts them (default: 1,2,4). If mpirun or srun "
           "has started ./bench itself, only these processes are measured",
           "N,...")
        .list();
    const Option simulate = app.flag("--simulate", o->simulate, "predict a step of 1, 2, 4, ..., 1024 processes");
    const auto number = [&](const char* name, double& value, const char* what, const char* unit) {
        return app.number(name, value, 0.0, 1e9, what, unit).needs(simulate);
    };
    const Option part = number("--part", o->part, "--simulate: ms of a part (default: measured here)", "X");
    number("--update", o->update, "with --part: ms of the update in each step (default: 0)", "X").needs(part);
    number("--latency", o->latency, "--simulate: latency of a message in us (default: measured here)", "X");
    const Option bandwidth = app.number("--bandwidth", o->bandwidth, 1e-6, 1e9,
                                        "--simulate: GB/s that a process sends (default: measured here)", "X")
                                 .needs(simulate);
    const Option node = app.number("--node", o->node, 1, 1 << 20, "--simulate: processes on a node (default: all)", "N")
                            .needs(bandwidth);
    app.number("--between", o->between, 1e-6, 1e9, "--node: GB/s that a process sends to other nodes", "X").needs(node);
    return [o](Bench& bench) { run(bench, *o); };
}

}  // namespace masquerade
