#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# deps.sh PACKAGE..., run by `make deps`: installs these Debian packages. If it cannot, it prints how to install them.
# Without arguments, it installs nothing.
set -u

if [ $# = 0 ]; then
    echo "deps: everything needed is here"
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "deps: no apt-get here; please install what Debian calls: $*" >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    root=()
elif sudo -n true 2>/dev/null; then
    root=(sudo -n)
else
    echo "deps: installing needs root; please run:  sudo apt-get install $*" >&2
    exit 1
fi

echo "deps: installing $*"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# With `make -j deps deps-book`, this script runs twice at once; the second apt-get waits for the first.
wait_for_lock=(-o DPkg::Lock::Timeout=600)
install() {
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${wait_for_lock[@]}" install -qq --no-install-recommends \
        "$@" >"$log" 2>&1
}
# The package lists may be missing or old; they are fetched only if the first try fails.
install "$@" || { "${root[@]}" apt-get update -qq && install "$@"; } || {
    cat "$log" >&2
    echo "deps: apt-get could not install $*" >&2
    exit 1
}
