// SPDX-License-Identifier: MIT
// Quotes, brackets and all other signs.
#include "tokenizer/spacing.h"

namespace masquerade {

using namespace spacing;

namespace {

// it's, we'll, o'clock, mmap'ed
constexpr std::string_view contracted[] = {"s",  "t",  "d",  "m",  "n",   "ll",    "re",
                                           "ve", "am", "ed", "er", "ing", "clock", "lantern"};
// d'accord, o'brien, qur'an
constexpr std::string_view elided[] = {"o", "d",  "l",  "j",  "m",   "n",   "c",      "y",
                                       "g", "ma", "ne", "qu", "qur", "guv", "aujourd"};
// 'em, 'tis
constexpr std::string_view clipped[] = {"em", "til", "tis", "twas", "cause", "bout"};

// (de)serialise
constexpr std::string_view prefixes[] = {"de", "re", "un",  "in",  "x",   "h",     "n",
                                         "la", "sm", "sub", "non", "pre", "multi", "meta"};

Spacing::Hold open_or_close(bool& open) {
    open = !open;
    return open ? right : left;
}

// Closes where such a quote is open.
bool close(bool& open) {
    bool was_open = open;
    open = false;
    return was_open;
}

// "__main__", but "__" within a name is a rare thing.
Spacing::Hold underscore(const Spacing::Place& p, bool& dunder) {
    if (p.before.sign() == '_') return dunder ? both : left;
    if (p.after.sign() == '_') return open_or_close(dunder);
    return both;  // snake_case
}

Spacing::Hold backtick(const Spacing::Place& p, bool& open) {
    if (p.before.sign() == '`') return open ? both : left;  // ```
    return open_or_close(open);
}

Spacing::Hold plus(const Spacing::Word& before, const Spacing::Word& after) {
    if (before.sign() == '+') return after.number() ? both : left;                // c++11
    if (after.sign() == '+') return left;                                         // c++
    if (before.number() && after.number()) return nothing;                        // 2 + 2
    if (before.number() && after.letters() && is_digit(after.last)) return both;  // 6.1+deb12
    return before.letters() ? left : right;                                       // gtk+ 3, (+44
}

Spacing::Hold equals(const Spacing::Word& before, const Spacing::Word& after) {
    if (one_of(before.sign(), U"=<>!+*:")) return left;    // a += b
    return one_of(after.sign(), U"=>~") ? nothing : both;  // a == b, but key=value
}

Spacing::Hold less(const Spacing::Word& before, const Spacing::Word& after) {
    if (before.sign() == '<') return both;                                  // 1<<2
    return is_digit(after.first) || after.sign() == '=' ? nothing : right;  // p < 0.05, <b>
}

Spacing::Hold greater(const Spacing::Word& before, const Spacing::Word& after) {
    if (one_of(before.sign(), U"-=>")) return left;  // ->
    return is_digit(after.first) || after.sign() == '=' ? nothing : left;
}

Spacing::Hold ampersand(const Spacing::Word& before, const Spacing::Word& after) {
    if (after.is("amp") || after.is("lt") || after.is("gt")) return before.letter() ? both : right;  // &amp;
    if (before.sign() == '&') return left;                                                           // a && b
    return before.letters() && after.letter() ? both : nothing;                                      // r&b
}

}  // namespace

// Double quotes, the German ones, and single ones that open.
Spacing::Hold quote_rule(const Spacing::Place& p, Spacing::Written& written) {
    switch (p.sign.first) {
        case '"':
            if (p.before.is("o") && p.after.is("clock")) return both;  // a slip that is often seen
            return open_or_close(written.straight);
        case U'„': written.low = true; return right;
        case U'‚': written.single_low = true; return right;
        case U'“': return close(written.low) ? left : right;
        case U'‘':
            if (close(written.single_low)) return left;
            written.curly = true;
            return right;
    }
    return left;
}

// ' and ’: apostrophes and quotes.
Spacing::Hold single_quote_rule(const Spacing::Place& p, Spacing::Written& written) {
    const Spacing::Word &before = p.before, &after = p.after;
    bool between = before.letters() && after.letters();
    bool elision = one_of(before.text, elided) && !written.single;
    if (between && (elision || one_of(after.text, contracted))) return both;
    if (one_of(after.text, clipped)) return right;
    if (p.sign.first == U'’') {
        if (close(written.curly)) return left;
        return between && before.last != 's' ? both : left;  // the students’ room
    }
    if (close(written.backtick) || close(written.single)) return left;  // `eager'
    bool plural = before.letters() && before.text.size() > 1 && before.last == 's' && p.after2.sign() != '\'';
    if (plural || after.first == 0) return left;
    if (before.letters() && !after.letters()) {
        bool opens = one_of(after.sign(), U"-#/_<$*@") && p.after2.letters();  // the option '-o'
        if (!opens) return left;                                               // 5'
    }
    if (after.number() && after.text.size() == 2) return right;  // the summer of '69
    written.single = true;
    return right;
}

Spacing::Hold bracket_rule(const Spacing::Place& p, Spacing::Written&) {
    const Spacing::Word &before = p.before, &after = p.after;
    bool one_inside = p.after2.sign() == ')';
    switch (p.sign.first) {
        case '(':
            if (!before.letters()) return right;
            if (after.sign() == ')') return both;  // main()
            if (!one_inside) return right;
            if (after.is("s") || after.is("es") || after.is("r") || after.is("tm")) return both;  // file(s)
            return is_digit(after.first) && after.text.size() == 1 ? both : right;                // printf(3)
        case '[': return right;
        case '{': return before.letters() && after.sign() == '}' ? both : right;
        case ')':
            return p.before2.sign() == '(' && after.letters() && one_of(before.text, prefixes) ? both : left;
    }
    return left;
}

Spacing::Hold symbol_rule(const Spacing::Place& p, Spacing::Written& written) {
    const Spacing::Word &before = p.before, &after = p.after;
    switch (p.sign.first) {
        case '!':
        case '?':
        case U'…':
        case U'‰': return left;
        case ';': return before.is("amp") && p.before2.hold.left ? both : left;  // q&amp;a
        case '^':
        case U'·':
        case U'‐':
        case U'‑': return both;
        case U'¿':
        case U'¡': return right;
        case U'–':
        case U'—': return is_digit(before.last) && is_digit(after.first) ? both : nothing;  // 1939–45
        case '_': return underscore(p, written.dunder);
        case '`': return backtick(p, written.backtick);
        case '+': return plus(before, after);
        case '=': return equals(before, after);
        case '<': return less(before, after);
        case '>': return greater(before, after);
        case '&': return ampersand(before, after);
        case '*': return before.sign() == '*' ? left : before.letter() && after.letter() ? both : nothing;
        case '|': return before.sign() == '|' ? left : nothing;
        case '~':
            return before.sign() == '~' ? nothing : before.sign() == '/' || after.letters() ? right : left;
        case '\\': return written.backslash ? both : right;  // a\b
        case '@': {
            bool address =
                before.letters() && after.letters() && (p.after2.sign() == '.' || p.after2.is("dot"));
            return address ? both : right;  // me@home.org, @home
        }
        case '#':
            if (before.is("pkcs")) return both;                                          // pkcs#11
            return before.is("c") || before.is("f") || before.is("gtk") ? left : right;  // c#, #1
        case '$': return before.number() && !after.number() ? nothing : right;           // $5, 5 $
        case '%':
            return before.letters() && !is_digit(before.last) && after.letters() ? right : left;  // 5%, %s
    }
    return nothing;
}

}  // namespace masquerade
