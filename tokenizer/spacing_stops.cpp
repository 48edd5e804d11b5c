// SPDX-License-Identifier: MIT
// Full stop, comma, colon and slash: between sentences, and within numbers, names and addresses.
#include "tokenizer/spacing.h"

namespace masquerade {

using namespace spacing;

namespace {

// Words that follow a full stop as part of a name: wikipedia.org, node.js, index.html
constexpr std::string_view extensions[] = {
    "org",  "com", "net", "edu", "gov",  "io",  "uk",  "jp",  "fm",  "tv",      "js",     "py",  "pl",
    "pm",   "rb",  "sh",  "el",  "h",    "hs",  "cs",  "cpp", "css", "htm",     "html",   "xml", "json",
    "toml", "yml", "ini", "cfg", "conf", "env", "txt", "md",  "pdf", "png",     "svg",    "ttf", "wav",
    "dat",  "gz",  "bz2", "tar", "zip",  "deb", "jar", "exe", "dll", "desktop", "haskell"};

// Words that a full stop and a name follow: www.debian.org, system.web.mobile (these before one more)
constexpr std::string_view hosts[] = {"www", "github", "freedesktop", "sourceforge", "javax",  "microsoft",
                                      "ghc", "boost",  "mono",        "py",          "jquery", "fs"};
constexpr std::string_view namespaces[] = {"system", "org", "com", "qt", "java", "net", "sun"};

// Names with a number: asn.1, ax.25
constexpr std::string_view numbered[] = {"asn", "ax", "posix", "nio"};

// No sentence ends with these: the .net library
constexpr std::string_view never_last[] = {"the", "and", "your", "into", "than"};
// Few do: support for .svg files. And in /etc/fstab; but to/from
constexpr std::string_view seldom_last[] = {"the",  "an",   "and",  "or", "for", "in",      "of",   "from",
                                            "to",   "as",   "with", "by", "on",  "between", "like", "using",
                                            "your", "into", "than", "at", "via", "under"};
constexpr std::string_view before_paths[] = {"the", "in", "at", "for", "into", "via", "under"};

}  // namespace

Spacing::Hold stop_rule(const Spacing::Place& p, Spacing::Written& written) {
    const Spacing::Word &before = p.before, &after = p.after;
    if (before.sign() == ',' && after.sign() == '.') return nothing;        // red, green, ...
    if (one_of(before.sign(), U",([\"*") && after.letters()) return right;  // .html, .css
    if (!before.letters() || !after.letters()) return left;                 // (a list).
    if (is_digit(before.last))
        return is_digit(after.first) || after.is("x") ? both : left;  // 3.14, v1.2, 3.x
    bool name = one_of(after.text, extensions);
    if (one_of(before.text, never_last) || (name && one_of(before.text, seldom_last))) return right;
    if (is_digit(after.first))
        return before.letter() || one_of(before.text, numbered) ? both : left;   // h.264
    if (before.letter() && after.letter()) return both;                          // a.m.
    if (name && p.after2.sign() != ':') return both;                             // node.js
    if (one_of(before.text, hosts) || p.after2.sign() == '/') return both;       // www.x, foo.bar/
    if (one_of(before.text, namespaces) && p.after2.sign() == '.') return both;  // org.eclipse.core
    bool within = written.dotted && written.words > 2 && p.before2.sign() == '.';
    return within && !one_of(before.text, extensions) && !before.letter() ? both : left;  // www.gnu.foo
}

Spacing::Hold comma_rule(const Spacing::Place& p, Spacing::Written& written) {
    const Spacing::Word &before = p.before, &after = p.after;
    auto digits = [](const Spacing::Word& word) { return word.number() ? word.text.size() : 0; };
    if (digits(before) > 0 && digits(before) <= 3 && digits(after) == 3) return both;  // 1,000; may 1, 1955
    // A comma of ASCII beside full-width ones divides a list: 附近有故宫, 天坛
    bool list = is_wide(before.last) && is_wide(after.first);
    if (list && (written.wide_stops || before.first == U'）')) return firm_left;
    return left;
}

Spacing::Hold colon_rule(const Spacing::Place& p, Spacing::Written& written) {
    const Spacing::Word &before = p.before, &after = p.after;
    if (after.sign() == '-' && one_of(p.after2.sign(), U"()")) return right;  // :-)
    if (before.sign() == ':' || after.sign() == ':') return both;             // foo::bar
    if (after.sign() == '/' && p.after2.sign() == '/') return both;           // https://
    if (p.before2.sign() == '<' || written.url) return both;                  // <doi:10, x.org:80
    if (after.sign() == '\\') return both;                                    // c:\temp
    if (is_digit(before.last) && is_digit(after.first)) return both;          // 10:30
    return left;
}

Spacing::Hold slash_rule(const Spacing::Place& p, Spacing::Written& written) {
    const Spacing::Word &before = p.before, &after = p.after;
    if (one_of(before.text, before_paths)) return right;                           // in /etc
    if (one_of(before.text, seldom_last) && p.after2.sign() == '/') return right;  // from /usr/lib
    if (one_of(before.sign(), U",;:")) return right;
    if (before.is("w") && !after.is("o")) return left;                // w/ mayonnaise
    if (written.url && one_of(after.text, seldom_last)) return left;  // x.org/ for more
    return both;                                                      // and/or
}

}  // namespace masquerade
