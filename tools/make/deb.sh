#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# deb.sh ROOT VERSION MARCH PROGRAM, run by `make deb`: packs the files below ROOT into a Debian package beside ROOT, and
# prints its name. The package depends on the packages whose libraries PROGRAM loads.
set -euo pipefail
root=$1 version=$2 march=$3 program=$4
strip --strip-debug "$root"/usr/lib/*.a "$root"/usr/lib/masquerade/*
install -D -m 644 LICENSE "$root/usr/share/doc/masquerade/copyright"

depends=$(ldd "$program" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | while read -r library; do
    # dpkg may know a library by a path from before /lib and /usr/lib became one.
    dpkg-query -S "$library" 2> /dev/null || dpkg-query -S "$(realpath "$library")" 2> /dev/null ||
        dpkg-query -S "${library#/usr}" || exit 1
done | cut -d : -f 1 | sort -u | paste -sd ,)
[ "$march" != native ] || march='the CPU of the machine that built it'
architecture=$(dpkg --print-architecture)
mkdir -p "$root/DEBIAN"
# Only a run of several processes loads OpenMPI.
suggests=
[ ! -e "$root/usr/lib/libmasquerade_mpi.so" ] || suggests=$'\nSuggests: openmpi-bin'
cat > "$root/DEBIAN/control" << END
Package: masquerade
Version: $version
Architecture: $architecture
Maintainer: ${DEBFULLNAME:-Masquerade} <${DEBEMAIL:-masquerade@localhost}>
Depends: ${depends//,/, }$suggests
Section: science
Priority: optional
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
Description: Transformers whose attention masks decide what they are
 The programs train, generate, evaluate, tokenize, inspect and corpus, as
 commands of masquerade, and the library with its headers. Compiled for $march.
END
package=$(dirname "$root")/masquerade_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" > /dev/null
package=$(realpath "$package")  # apt-get reads a path that begins with /
echo "built $package; to install it, run: apt-get install $package"
