# SPDX-License-Identifier: MIT
# Links of the pages lead somewhere.  awk -v lists=FOLDER -f links.awk PAGE ...   FOLDER/paths: every file and folder.
# An anchor is a heading as GitHub writes it: small letters, no punctuation, a hyphen for a space.

function anchor_of(heading) {
    sub(/^#+ +/, "", heading)
    gsub(/\[|\]\([^)]*\)/, "", heading)
    heading = tolower(heading)
    gsub(/[`.,:;?!()'"*\/=+<>&]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
}
# a/b/../c is a/c
function resolved(path) {
    while (sub(/(^|\/)\.\//, "/", path) || sub(/[^\/]+\/\.\.(\/|$)/, "", path)) sub(/^\//, "", path)
    sub(/\/$/, "", path)
    return path
}
function anchors_of(page,    row, inside) {
    if (page in read) return
    read[page]
    while ((getline row < page) > 0) {
        if (row ~ /^```/) inside = !inside
        else if (!inside && row ~ /^#/) anchors[page, anchor_of(row)]
    }
    close(page)
}
BEGIN { while ((getline row < (lists "/paths")) > 0) paths[row] }
FNR == 1 { inside = 0; folder = FILENAME; if (!sub(/\/[^\/]*$/, "/", folder)) folder = "" }
/^ *```/ { inside = !inside; next }
inside { next }
{
    rest = $0
    gsub(/`[^`]*`/, "x", rest)
    while (match(rest, /\]\([^() ]+\)/)) {
        target = substr(rest, RSTART + 2, RLENGTH - 3)
        rest = substr(rest, RSTART + RLENGTH)
        if (target ~ /^[a-z]+:/) continue
        file = anchor = target
        sub(/#.*/, "", file)
        if (!sub(/^[^#]*#/, "", anchor)) anchor = ""
        file = file == "" ? FILENAME : resolved(folder file)
        if (!(file in paths)) print FILENAME ":" FNR ": `" target "`: no file " file
        else if (anchor != "") {
            anchors_of(file)
            if (!((file, anchor) in anchors)) print FILENAME ":" FNR ": `" target "`: no heading of " file " makes #" anchor
        }
    }
}
