#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Proves that the README's two commands work where nothing is installed, and that the Debian package does what the first of
# them does. Each command runs on a clone of HEAD, in a fresh Debian of its own that has only git, g++ and make. Needs root,
# debootstrap, 2 GB of disk, and a Debian mirror.
#     TRAIN_ARGS='--minutes 5' tests/clean_machine.sh          (default: --minutes 1)
# Other environment variables: SUITE (default: bookworm), MIRROR (default: the mirror of this machine if it runs
# Debian), TMPDIR.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "clean_machine: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "needs root, to build and enter another system's folder"
command -v debootstrap >/dev/null || fail "debootstrap is not here; please run: apt-get install debootstrap"
git rev-parse -q --verify HEAD >/dev/null || fail "there is no commit to clone"
git diff --quiet HEAD || echo "clean_machine: note: uncommitted changes are not tested"

suite=${SUITE:-bookworm}
if [ -z "${MIRROR:-}" ] && grep -qs '^ID=debian' /etc/os-release; then
    MIRROR=$(sed -nE 's/^URIs: *([^ ]+).*/\1/p; s/^deb +(\[[^]]*\] +)?([^ ]+).*/\2/p' \
        /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1 || true)
fi

room=$(mktemp -d)
leave() {
    for root in "$room"/*/; do umount "$root/proc" 2>/dev/null || true; done
    rm -rf --one-file-system "$room"
}
trap leave EXIT
trap 'echo "clean_machine: line $LINENO failed" >&2' ERR

# inside ROOT COMMAND: runs the command in the system at ROOT. The command gets only the proxy variables of this
# machine's environment.
inside() {
    local network
    mapfile -t network < <(env | grep -iE '^(https?|ftp|no|all)_proxy=' || true)
    chroot "$1" env -i "${network[@]}" HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c "$2"
}

echo "clean_machine: building a fresh $suite"
debootstrap --variant=minbase "$suite" "$room/base" ${MIRROR:+"$MIRROR"} >"$room/log" 2>&1 ||
    { tail "$room/log" >&2; exit 1; }
# Copies the settings with which this machine fetches packages: proxies, timeouts, certificates, host names.
{ grep -ls Acquire /etc/apt/apt.conf /etc/apt/apt.conf.d/* || true; } |
    xargs -r cp -t "$room/base/etc/apt/apt.conf.d"
mkdir -p "$room/base/etc/ssl/certs"
cp -rLf /etc/ssl/certs/. "$room/base/etc/ssl/certs" 2>/dev/null || true  # dangling links are not needed
cp -L /etc/hosts /etc/resolv.conf "$room/base/etc"
inside "$room/base" 'apt-get update -qq && apt-get install -qq --no-install-recommends git g++ make' >"$room/log" 2>&1 ||
    { tail "$room/log" >&2; exit 1; }

# on_clean_machine COMMAND: runs the command in a clone of HEAD, in a copy of the fresh system.
on_clean_machine() {
    local root="$room/machine" start=$SECONDS
    cp -a "$room/base" "$root"
    git clone -q . "$root/root/masquerade"
    mount -t proc proc "$root/proc" 2>/dev/null || echo "clean_machine: note: no /proc inside"
    echo "clean_machine: $1"
    inside "$root" "cd /root/masquerade && $1" || fail "failed: $1"
    echo "clean_machine: done in $((SECONDS - start)) s: $1"
    umount "$root/proc" 2>/dev/null || true
    find "$root/root/masquerade" -maxdepth 3 -name '*.deb' -exec cp -t "$room/base/root" {} +
    rm -rf --one-file-system "$root"
}
on_clean_machine "make deps data && make && ./train ${TRAIN_ARGS:---minutes 1}"
on_clean_machine "make deps test"
on_clean_machine "make deps deb"
on_clean_machine "cd /root && apt-get install -qq ./masquerade_*.deb && masquerade data && masquerade train ${TRAIN_ARGS:---minutes 1}"
echo "clean_machine: both commands work, and so does the package"
