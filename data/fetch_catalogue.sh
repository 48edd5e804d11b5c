#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fetch_catalogue.sh FOLDER: downloads the distribution's package lists, with descriptions in English and German, into
# FOLDER. FOLDER must be new or empty, or contain only such lists. Needs no root: apt uses the machine's sources and
# configuration (proxy, certificates, keys), except for the settings below. Lists of third-party archives are removed
# afterwards. Without network, copies the lists that the machine already has, or dpkg's list. If there are no lists,
# prints one line on standard error and exits with status 3.
set -euo pipefail
shopt -s nullglob extglob
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
# The new lists replace all files of the folder, so the folder must contain nothing but lists.
other=$(find "$1" -mindepth 1 -maxdepth 1 -not -name '*_Packages*' -not -name '*_Translation-*' -not -name '*Release*' \
    -not -name partial -not -name lock -not -name auxfiles -print -quit 2>/dev/null || true)
[ ! "$1" -ef /var/lib/apt/lists ] || other="the lists of this machine"
[ -z "$other" ] || { echo "error: $1 holds $other; name a folder for package lists alone, which are replaced" >&2; exit 2; }
mkdir -p "$1"
lists=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
why=""

# Removes all files except the package lists, descriptions and Release files that Debian or Ubuntu itself published.
only_distribution() {
    local release
    for release in "$lists"/*Release; do
        grep -qE '^Origin: (Debian|Ubuntu|Raspbian)[[:space:]]*$' "$release" || rm -f "${release%_*}"_*
    done
    find "$lists" -mindepth 1 -maxdepth 1 \
        -not -name '*_Packages' -not -name '*_Translation-*' -not -name '*Release' -exec rm -rf {} +
}

# enough FROM: succeeds if the lists contain at least 5,000 descriptions, and prints a line with their number and FROM,
# which says where the lists come from. Lists with fewer descriptions contain only the packages that are installed,
# which is too little text to learn from.
enough() {
    local found
    found=$(find "$lists" -maxdepth 1 -type f -exec grep -hE '^Description(-en)?: ' {} + | wc -l)
    [ "$found" -ge 5000 ] && echo "catalogue: $found descriptions $1"
}

own_configuration() {
    local architecture
    eval "$(apt-config shell architecture APT::Architecture)"
    cat <<END
#clear Acquire::IndexTargets;
#clear Acquire::Languages;
#clear APT::Architectures;
#clear APT::Update;
Acquire::IndexTargets::deb {
    Packages {
        MetaKey "\$(COMPONENT)/binary-\$(ARCHITECTURE)/Packages";
        flatMetaKey "Packages";
        ShortDescription "Packages";
        Description "\$(RELEASE)/\$(COMPONENT) Packages";
        flatDescription "\$(RELEASE) Packages";
        Optional "false";
    };
    Translations {
        MetaKey "\$(COMPONENT)/i18n/Translation-\$(LANGUAGE)";
        flatMetaKey "\$(LANGUAGE)";
        ShortDescription "Translation-\$(LANGUAGE)";
        Description "\$(RELEASE)/\$(COMPONENT) Translation-\$(LANGUAGE)";
        flatDescription "\$(RELEASE) Translation-\$(LANGUAGE)";
    };
};
Acquire::Languages { "en"; "de"; };
Acquire::GzipIndexes "false";
Acquire::Retries "1";
APT::Architectures { "$architecture"; };
APT::Sandbox::User "$(id -un)";
Dir::State::lists "$lists";
Dir::Cache "$work/cache";
END
}

from_network() {
    command -v apt-get >/dev/null || { why="apt is not here"; return 1; }
    own_configuration >"$work/apt.conf"
    mkdir -p "$lists/partial" "$work/cache"
    echo "catalogue: fetching the package lists (about 20 MB)"
    apt-get update -qq -c "$work/apt.conf" >"$work/log" 2>&1 || true  # one list may fail
    only_distribution
    enough "fetched" && return
    why="apt-get update brought none: $(grep -m1 -E '^[EW]:' "$work/log" || echo 'it gave no reason')"
    return 1
}

# Copies the lists that the machine has: apt's lists, in any compression, or else dpkg's list of available packages.
from_machine() {
    local machine=/var/lib/apt/lists file name
    eval "$(apt-config shell machine Dir::State::lists/d 2>/dev/null)"
    rm -rf "${lists:?}"/*
    for file in "$machine"/*Release "$machine"/*_Packages?(.*) "$machine"/*_Translation-*; do
        name=$(basename "$file")
        name=${name%.@(lz4|gz|xz|bz2|zst|lzma)}
        /usr/lib/apt/apt-helper cat-file "$file" >"$lists/$name" 2>/dev/null || true
    done
    only_distribution
    enough "from the lists of this machine" && return
    rm -rf "${lists:?}"/*
    cp /var/lib/dpkg/available "$lists/dpkg_Packages" 2>/dev/null || true
    enough "from dpkg"
}

from_network || from_machine || {
    rm -rf "$lists"
    echo "note: no package catalogue here ($why): the built-in grammar of questions serves" >&2
    exit 3
}
