# SPDX-License-Identifier: MIT
# Sourced by tests/book.sh --self-test. Makes one change at a time in a copy of the pages. The checks must report each
# change with page and line. If a check needs programs or gdb, and these are missing, a message says that it is left
# out.
passed=0 failed=0

# planted CHECK NAME PAGE SED QUOTED: after `sed SED PAGE`, CHECK must print PAGE:LINE of the first changed line, and
# QUOTED
planted() {
    local check=$1 name=$2 page=$3 line found
    rm -rf "$lists/pages" && mkdir "$lists/pages" && cp -r README.md docs "$lists/pages"
    sed -i -E "$4" "$lists/pages/$page"
    line=$(diff "$page" "$lists/pages/$page" | sed -nE '1s/^([0-9]+)[^0-9].*/\1/p' || true)
    found=$(cd "$lists/pages" && $check "$page" || true)
    if [ -n "$line" ] && grep -F "$page:$line: " <<< "$found" | grep -qF -- "$5"; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    printf '%s\n  expected: %s:%s: ... %s\n  found:    %s\n' "$name" "$page" "${line:-(nothing changed)}" "$5" "$found"
}
quoted() { planted quotations "$@"; }

quoted 'a name'                   docs/ops/layernorm.md 's/`layernorm_row_grad`:/`layernorm_row_gradient`:/' 'layernorm_row_gradient'
quoted 'a name of another file'   docs/ops/gelu.md 's/\| `gelu_forward`/| `rotary_forward`/' 'not in engine/ops/points.cpp'
quoted 'a path'                   docs/ops/layernorm.md 's|`engine/math/row.h`|`engine/math/rows.h`|' 'no such file'
quoted 'a setting'                README.md 's/train latent=gaussian/train latents=gaussian/' 'no setting is called latents'
quoted 'an option'                README.md 's/kappa=150 --minutes/kappa=150 --minute/' 'has not the option --minute'
quoted 'an option of compare.py'  docs/results/decoding.md 's/--sources 1,16 --peer/--source 1,16 --peer/' 'has not the option --source'
quoted 'an option between words'  docs/decoding.md 's/^`--scores` prints/`--score-all` prints/' 'has the option --score-all'
quoted 'a target of make'         docs/debugging.md 's/^make debug$/make debugging/' 'no target debugging'
quoted 'a program'                docs/prior.md 's|^\./generate RUN --count|./generator RUN --count|' './generator'
quoted 'test cases'               docs/finding-errors.md "s/ONLY='\*layernorm/ONLY='*layernrom/" 'no test case'
quoted 'a page'                   docs/debugging.md 's|\(ops/layernorm.md\)|(ops/layer_norm.md)|' 'no file docs/ops/layer_norm.md'
quoted 'an anchor'                docs/labs/01-free-functions.md 's|README.md#the-ops|README.md#ops|' 'makes #ops'
quoted 'a line of code'           docs/ops/layernorm.md 's/w\[i\] - mean_g - /w[i] + mean_g - /' 'no file of the code has this line'
quoted 'what own code calls'      docs/add-an-op.md 's/    return run_op\(t, /    return run_an_op(t, /' 'run_an_op'
quoted 'code that is changed'     docs/labs/02-break-a-backward.md 's/`- h_mu \* e\[i\]`/`- h_nu * e[i]`/' 'not in engine/math/row.h'
quoted 'the file of a report'     docs/add-a-mask.md 's/mask_test.cpp:[0-9]+/mask.h:1/' 'no check stands in'
quoted 'a file that nothing makes' docs/results/univae-default.md 's|^\./evaluate ten|./evaluate eleven|' 'nothing on this page makes eleven'
quoted 'something left out'       docs/results/univae-default.md 's|^\./evaluate ten .*|./evaluate ten --importance ...|' 'cannot be pasted'
printf 'quoted_by_nobody\t*\tnobody\n' >> "$lists/foreign"
if (whole=1 quotations $pages) | grep -q 'quoted_by_nobody'; then passed=$((passed + 1)); else failed=$((failed + 1)); echo 'an entry of foreign.txt that no page quotes is not found'; fi

# derived NAME FILE SED FAULT: after `sed SED FILE`, derivations.py must print FAULT
derived() {
    local found
    rm -rf "$lists/tree" && mkdir "$lists/tree" && cp -r --parents docs/ops engine/ops/ops.h tests/book tools/make/tex.py "$lists/tree"
    sed -i "$3" "$lists/tree/$2"
    found=$(python3 -B "$lists/tree/tests/book/derivations.py" || true)
    if grep -qF -- "$4" <<< "$found"; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    printf '%s\n  expected: %s\n  found:    %s\n' "$1" "$4" "$(grep -v '^ ' <<< "$found")"
}
if command -v python3 > /dev/null; then
    derived 'a wrong sign'         tests/book/derivations.py 's/dy \* (1 - y) \* (1 + y)/dy * (1 - y) * (1 - y)/' 'tanh.md: tanh: dx: complex step'
    derived 'NaN'                  tests/book/derivations.py 's/dw=sum(dy \* x)/dw=sum(dy * x * math.nan)/' 'scale_columns.md: scale_columns: dw: complex step nan'
    derived 'a formula of a page'  docs/ops/tanh.md 's/dx = dy .*(1 - y)(1 + y)/dx = dy (1 - y)^2/' 'tanh.md: `dx = dy (1 - y) (1 + y)`'
    derived 'a sign in a block'    docs/ops/layernorm.md 's/^dx_j = r \\, (g_j - /dx_j = r \\, (g_j + /' 'layernorm.md: `dx_j = r (g_j - mean(g) - n_j mean(g n))`'
    derived 'an index in TeX'      docs/ops/embedding.md 's/E^T dy, \\qquad dw_v/E^T dy, \\qquad dw_n/' 'embedding.md: `dw = E^T dy, dw_v'
    derived 'a fraction turned over' docs/ops/dropout.md 's/\\frac{k_i}{1 - ρ}/\\frac{1 - ρ}{k_i}/' 'dropout.md: `dx_i = dy_i k_i / (1 - ρ)`'
    derived 'an op without a derivation' engine/ops/ops.h 's/^OP(tanh_backward/OP(sinh_backward/' 'engine/ops/ops.h: sinh'
else
    echo 'book: no python3: derivations are not planted'
fi
formula() { python3 -B "$root/tools/make/tex.py" "$@"; }
planted formula 'a brace'           docs/ops/tanh.md 's/\\tfrac\{1\}\{2\}\) \//\\tfrac{1}{2) \//' 'the braces do not match'
planted formula 'a name of TeX'     docs/ops/tanh.md 's/y = \\tanh x/y = \\tahn x/' 'does not know \tahn'
planted formula 'what GitHub reads as Markdown' docs/ops/layernorm.md 's/\$n_i\$/$\\mathrm{n}_i$/' 'an underscore behind a bracket'
planted formula 'a formula that is not TeX' docs/ops/tanh.md 's/^The backward needs only y\./Σ_i y_i is `Σ_i y_i`./' 'write it in TeX'
planted slides 'a slide without a heading' docs/slides/01-functions.md 's/^## A formula is written once/A formula is written once/' 'does not begin with a heading'
planted slides 'a slide of too many words' docs/slides/01-functions.md 's/^## (A formula is) .*/## \1 \1 \1 \1 \1 \1 \1 \1 \1 \1 \1 \1/' 'words; at most 60'
if [ -x inspect ]; then
    by_hand() { INSPECT=$root/inspect python3 -B "$root/tests/book/examples.py" "$@"; }
    planted by_hand 'a number of an example' docs/ops/layernorm.md 's/^(dx +)0.5 /\10.6 /' 'the engine prints'
    planted by_hand 'an argument of an example' docs/ops/layernorm.md 's/^(\$ .\/inspect op layernorm) x=/\1 z=/' 'x is missing'
else
    echo 'book: no ./inspect here (make): examples are not planted'
fi
own_op() { python3 "$root/tests/book/own_op.py"; }
planted own_op 'code that does not compile' docs/add-an-op.md 's/\{x, w\}, eps\);/{x, v}, eps);/' 'was not declared'

typed() { "$root/tests/book/typed.sh" "$@" 2>&1; }
if [ -x build/release/corpus ] && [ -x train ]; then
    planted typed 'the value of a setting' docs/encoder-decoder.md 's/objective=mass --data text.txt   /objective=mess --data text.txt   /' 'ends with status'
else
    echo 'book: no programs here (make): commands are not planted'
fi
transcripts() { "$root/tests/book/transcripts.sh" "$@"; }
lab=docs/labs/01-free-functions.md
WALKS=build/walks
[ -x $WALKS/inspect ] || WALKS=build/debug
export WALKS
if command -v gdb > /dev/null && [ -x $WALKS/inspect ]; then
    planted transcripts 'a number'      $lab 's/\$1 = \{[-0-9.e]+,/$1 = {0.5,/' 'the page shows'
    planted transcripts 'a gdb command' $lab 's/tbreak layernorm_row_grad/tbreak layernorm_row_gradient/' 'tbreak layernorm_row_gradient'
    planted transcripts 'a line of code in gdb' $lab 's/return \{dy, x, w, m, r, mean_g/return {dy, x, w, mean_g/' 'the page shows'
else
    echo 'book: no gdb, or no programs for it (make walks): walks are not planted'
fi

# crashed FAULT CHECK ...: where python3 fails at once, and where gdb prints nothing, the check must print FAULT
crashed() {
    local fault=$1 found
    found=$(export PATH=$lists/broken:$PATH; "${@:2}" 2> /dev/null || true)
    if grep -qF -- "$fault" <<< "$found"; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    printf 'a check that ends with an error\n  expected: %s\n  found:    %s\n' "$fault" "$found"
}
mkdir "$lists/broken"
printf '#!/bin/sh\nexit 1\n' > "$lists/broken/python3"
printf '#!/bin/sh\n' > "$lists/broken/gdb"  # it ends with 0 after an exception of a script
chmod +x "$lists"/broken/*
crashed 'tools/make/tex.py: ends with an error' formulas README.md
crashed 'tools/make/slides.py: ends with an error' slides docs/slides/01-functions.md
crashed 'tests/book/derivations.py: it does not come to its end' derivations
[ ! -x inspect ] || crashed 'tests/book/examples.py: it does not come to its end' examples docs/ops/tanh.md
crashed 'tests/book/typed.sh: ends with an error' faults_of tests/book/typed.sh env root="$lists" "$root/tests/book/typed.sh" README.md
[ ! -d build ] || crashed "tests/book/replay.py: ends with an error" transcripts $lab
echo "book, planted: $passed found, $failed missed"
[ $failed = 0 ]
