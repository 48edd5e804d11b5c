// SPDX-License-Identifier: MIT
// One sign, three uses: a hyphen within a word, a dash between phrases, a minus before an option.
#include "tokenizer/spacing.h"

namespace masquerade {

using namespace spacing;

namespace {

// User-friendly, python-based; these are never the first word after a dash.
constexpr std::string_view compound_ends[] = {
    "based",     "like",  "style", "oriented", "specific", "compatible", "friendly", "related",
    "free",      "level", "aware", "only",     "side",     "wide",       "capable",  "independent",
    "dependent", "serif", "in",    "up",       "to",       "of"};
constexpr std::string_view compound_starts[] = {"meta", "non", "pre", "multi", "co", "cross"};

// I tried - what can ...
constexpr std::string_view clauses[] = {"can",  "could", "what", "how", "why", "where",
                                        "when", "i",     "but",  "is",  "are", "that"};

// The titles of catalogues, such as package descriptions: NAME OF A THING - PART OF IT. These begin a part,
constexpr std::string_view parts[] = {
    "development", "documentation", "shared",       "runtime", "utilities", "libraries",
    "headers",     "header",        "library",      "rust",    "feature",   "devel",
    "docs",        "metapackage",   "transitional", "static",  "binaries",  "examples"};
// these do, too, but are also found in compounds,
constexpr std::string_view late_parts[] = {
    "python", "python3",   "java",    "javascript", "node",    "ghc",     "gir",    "gobject", "qml",
    "html",   "data",      "common",  "core",       "main",    "doc",     "manual", "dev",     "test",
    "debug",  "profiling", "example", "support",    "command", "tools",   "cli",    "gui",     "web",
    "api",    "client",    "server",  "daemon",     "module",  "plugins", "binary", "bindings"};
// and these end the name of a thing.
constexpr std::string_view things[] = {
    "library",   "toolkit",  "platform",  "framework",   "service",    "server",  "system",   "api",
    "support",   "manager",  "package",   "tool",        "protocol",   "client",  "crate",    "engine",
    "game",      "guide",    "parser",    "method",      "suite",      "program", "format",   "language",
    "generator", "module",   "interface", "converter",   "daemon",     "viewer",  "compiler", "editor",
    "runtime",   "analysis", "software",  "processing",  "computing",  "data",    "code",     "database",
    "browser",   "emulator", "codec",     "synthesizer", "programming"};

bool ends_with(std::string_view word, std::string_view end) {
    return word.size() > end.size() && word.substr(word.size() - end.size()) == end;
}

// Between two words of letters.
bool is_dash(const std::string& before, const std::string& after, const Spacing::Written& written) {
    if (one_of(before, compound_starts)) return false;
    if (one_of(after, parts)) return true;
    if (written.hyphened) return false;  // do-it-yourself
    if (written.words == 1 && one_of(after, clauses)) return written.spaces > 0 || before.size() > 1;
    // A title's name has three words or more, and no sentence comes before it.
    if (written.spaces < 2 || written.spaces > 11 || written.stopped) return false;
    if (before.compare(0, 3, "lib") == 0 && before.compare(0, 5, "libra") != 0) return false;  // libfoo-java
    if (one_of(after, late_parts)) return true;
    if (written.words > 1) return false;
    if (one_of(before, things) || ends_with(before, "tion") || ends_with(before, "ment")) return true;
    // A plural is seldom the first part of a compound.
    return before.size() > 3 && before.back() == 's' && !one_of(char32_t(before[before.size() - 2]), U"sui");
}

}  // namespace

Spacing::Hold hyphen_rule(const Spacing::Place& p, Spacing::Written& written) {
    const Spacing::Word &before = p.before, &after = p.after;
    if (one_of(before.first, U"时天") && after.number()) return firm;              // 3小时 - 5小时
    if (before.sign() == '-') return before.hold.right ? both : left;              // --all, a -- b
    if (before.first == 0 || before.hold.right) return right;                      // -v, (-1)
    if (after.sign() == '-' || after.sign() == '>') return nothing;                // a -> b
    if (one_of(after.text, compound_ends)) return both;                            // gtk+-based
    if (after.is("and")) return p.after2.sign() == '-' ? both : left;              // pre- and post-war
    if (one_of(before.sign(), U":;") && one_of(after.sign(), U"()")) return both;  // :-)
    if (before.letters() && (after.is("und") || after.is("oder") || after.is("bis")))
        return left;  // vor- und
    if (after.number()) {
        if (before.sign() == '+') return both;                                  // c++-11
        if (p.before2.number() && one_of(before.first, U"'\"%°")) return both;  // 5%-10%
    }
    if (before.number()) {
        if (after.number()) return both;                                  // 1939-45
        bool name_ended = written.dotted != written.hyphened;             // utf-8 - , v1.2 -
        return name_ended || one_of(after.text, parts) ? nothing : both;  // 64-bit
    }
    if (before.letters()) {
        if (after.letters()) return is_dash(before.text, after.text, written) ? nothing : both;
        return after.first == 0 || after.sign() == ',' ? left : nothing;  // pre-, post-
    }
    return one_of(before.sign(), U",:;") && is_digit(after.first) ? right : nothing;  // from 5, -3
}

}  // namespace masquerade
