// SPDX-License-Identifier: MIT
#include "tools/options/command_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "engine/base/named.h"
#include "engine/base/printable.h"
#include "engine/base/wrap.h"
#include "engine/io/nearest.h"
#include "input/input.h"
#include "tools/help.h"
#include "tools/program.h"

namespace masquerade {
namespace {

// Wraps words that begin in the column `indent`. Further lines begin in the same column.
std::string hanging(const std::string& words, std::size_t indent) {
    const int width = std::max(terminal_width(stdout, 100), help_column + 20);
    return wrapped(std::string(indent, ' ') + words, width, 0).substr(indent) + '\n';
}

const CLI::App& chosen_command(const CLI::App& program) {
    for (const CLI::App* one : const_cast<CLI::App&>(program).get_subcommands())
        if (!one->get_name().empty()) return *one;
    return program;
}

std::vector<const CLI::App*> parts_of(const CLI::App& app, bool commands) {
    return app.get_subcommands([=](const CLI::App* part) { return part->get_name().empty() != commands; });
}

// Returns the option's name as the user types it: "--beam", or RUN for a positional option.
std::string typed(const CLI::Option& option) {
    if (!option.get_positional()) return option.get_name(false, true);
    const std::string shown = option.get_option_text();
    return shown[0] == '[' ? shown.substr(1, shown.find(']') - 1) : shown;
}

HelpRow row_of(const CLI::Option& option) {
    if (option.get_positional()) return {option.get_option_text(), option.get_description()};
    std::string name = option.get_name(false, true);
    if (const std::size_t comma = name.find(','); comma != name.npos) name.insert(comma + 1, " ");
    if (!option.get_option_text().empty()) name += " " + option.get_option_text();
    std::string what = option.get_description();
    for (const CLI::Option* other : option.get_needs()) what += "; needs " + typed(*other);
    return {name, what};
}

// Returns a row for each option. Groups and commands inherit --help and --help-all from the program, which alone lists
// them.
std::vector<HelpRow> rows_of(const CLI::App& app, bool positional, const std::string& heading = "") {
    std::vector<HelpRow> rows;
    for (const CLI::Option* option : app.get_options())
        if (!(app.get_parent() && (option == app.get_help_ptr() || option == app.get_help_all_ptr())) &&
            option->get_positional() == positional && (heading.empty() || option->get_group() == heading))
            rows.push_back(row_of(*option));
    return rows;
}

// Appends the names of all options of a program, of its groups and of the command that the user gave.
void append_names(const CLI::App& app, Strings& names) {
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const CLI::App* part : parts_of(app, false)) append_names(*part, names);
    if (const CLI::App& command = chosen_command(app); &command != &app) append_names(command, names);
}

Strings commands_of(const CLI::App& program) {
    Strings names;
    for (const CLI::App* part : parts_of(program, true)) names.push_back(part->get_name());
    return names;
}

// Returns why a word of the command line that no option has taken is wrong.
std::string why_unexpected(const CLI::App& program, const std::string& word) {
    if (word.size() > 1 && word[0] == '-') {
        Strings names;
        append_names(program, names);
        const std::string name = word.substr(0, word.find('='));
        return text("unknown option ", clipped(name), did_you_mean(clipped(name), names));
    }
    const CLI::App& command = chosen_command(program);
    if (const Strings names = commands_of(program); &command == &program && !names.empty()) {
        const std::string meant = did_you_mean(clipped(word), names);
        return text("unknown command ", clipped(word), meant.empty() ? "; there are " + joined(names) : meant);
    }
    return text("unexpected word ", clipped(word), "; expected an option or the end of the command");
}

}  // namespace

bool is_terminal(FILE* file) { return isatty(fileno(file)); }

int terminal_width(FILE* file, int most) {
    winsize size{};
    const bool known = ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? std::min<int>(size.ws_col, most) : 80;
}

std::string paragraph(const std::string& words) { return hanging(words, 0); }

std::string help_list(const std::string& heading, const std::vector<HelpRow>& rows, int column) {
    const std::size_t begin = std::size_t(column);
    if (rows.empty()) return "";
    std::string all = "\n" + paragraph(heading + ":");
    for (const HelpRow& row : rows) {
        const std::size_t end = 2 + row.name.size();
        all += "  " + row.name + (end + 2 > begin ? "\n" + std::string(begin, ' ') : std::string(begin - end, ' ')) +
               hanging(row.what, begin);
    }
    return all;
}

std::string help_under(const CLI::App& app, const std::string& heading, int column) {
    return help_list(heading, rows_of(app, false, heading), column);
}

std::string help_of(const CLI::App& program) {
    const CLI::App& app = chosen_command(program);
    const bool is_command = &app != &program;
    std::string usage = "Usage: ./" + program.get_name();
    if (is_command) usage += " " + app.get_name();
    if (!parts_of(app, true).empty()) usage += " COMMAND";
    for (const HelpRow& row : rows_of(app, true)) usage += " " + row.name;
    std::string all = paragraph(app.get_description()) + "\n" + paragraph(usage + " [OPTION ...]");
    all += help_list("Arguments", rows_of(app, true));
    std::vector<HelpRow> commands;
    for (const CLI::App* part : parts_of(app, true)) commands.push_back({part->get_name(), part->get_description()});
    all += help_list("Commands", commands);
    for (const std::string& heading : app.get_groups())
        if (heading != common_heading) all += help_under(app, heading, help_column);
    for (const CLI::App* part : parts_of(app, false))
        if (!part->get_disabled()) all += help_list("Options " + part->get_group(), rows_of(*part, false));
    all += help_under(app, common_heading, help_column);
    const std::string more = text("./", program.get_name(), " ", is_command ? "" : "COMMAND ");
    if (is_command) all += "\n" + paragraph(more + "--help lists the options that all commands share.");
    if (!commands.empty()) all += "\n" + paragraph(more + "--help lists the options of a command.");
    return all;
}

void refuse_empty_parts(const CLI::App& program, const Strings& words) {
    for (std::size_t i = 0; i < words.size(); i++) {
        const std::size_t equals = words[i].find('=');
        const std::string name = words[i].substr(0, equals);
        const CLI::Option* option = chosen_command(program).get_option_no_throw(name);
        if (!option || option->get_delimiter() != ',') continue;
        const std::string list = equals != name.npos    ? words[i].substr(equals + 1)
                                 : i + 1 < words.size() ? words[i + 1]
                                                        : "";
        if (("," + list + ",").find(",,") != list.npos)
            throw BadUsage(name, ": a value is expected before and after each comma, found ", clipped(list));
    }
}

std::string why_refused(const CLI::App& program, const CLI::ParseError& error) {
    using Code = CLI::ExitCodes;
    const std::string said = error.what();
    // Returns the parts of CLI11's message on both sides of `between`, which are names of options.
    const auto around = [&](const std::string& between) {
        const std::size_t at = said.find(between);
        return std::pair(said.substr(0, at), said.substr(std::min(at, said.size() - between.size()) + between.size()));
    };
    const Code code = Code(error.get_exit_code());
    if (const Strings rest = program.remaining(true);
        (code == Code::ExtrasError || code == Code::RequiredError) && !rest.empty())
        return why_unexpected(program, rest[0]);
    switch (code) {
        case Code::ArgumentMismatch:
            if (const auto [name, rest] = around(" was given a disallowed flag override"); name != said)
                return text("--", name, " takes no value");
            return around(":").first + (said.find("At Most") != said.npos ? " is given more than once"
                                                                          : ": a value is expected, but none follows");
        case Code::ExcludesError: {
            const auto [one, other] = around(" excludes ");
            return text(one, " and ", other, " cannot be combined: leave out one of them");
        }
        case Code::RequiresError: {
            const auto [one, other] = around(" requires ");
            const CLI::Option* needed = chosen_command(program).get_option_no_throw(other);
            return text(one, " needs ", needed ? typed(*needed) : other, ": give both, or none of them");
        }
        case Code::RequiredError: {
            const CLI::App& command = chosen_command(program);
            if (const Strings names = commands_of(program); &command == &program && !names.empty())
                return text("expected a command, found none; there are ", joined(names));
            for (const CLI::Option* option : command.get_options())
                if (option->get_required() && option->count() == 0)
                    return text("expected ", typed(*option), " (", option->get_description(), "), found nothing");
            return said;
        }
        default: return said;
    }
}

}  // namespace masquerade
