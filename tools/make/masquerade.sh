#!/bin/sh
# SPDX-License-Identifier: MIT
# masquerade COMMAND [ARGUMENT ...]: runs one of the programs, which the pages call ./train, ./generate and so on.
# masquerade data is what the pages call `make data`.
programs=$(dirname "$(readlink -f "$0")")/../lib/masquerade
case "${1:-}" in
    '' | -h | --help)
        echo "usage: masquerade COMMAND [ARGUMENT ...], with one of the commands $(ls "$programs" | xargs)"
        echo 'masquerade COMMAND --help explains a command; masquerade data makes the default corpora, in corpus/.'
        exit
        ;;
    data) exec "$programs/../../share/masquerade/default_corpora.sh" "$programs/corpus" ;;
    */*) ;;
    *) if [ -x "$programs/$1" ]; then command=$1 && shift && exec "$programs/$command" "$@"; fi ;;
esac
echo "error: there is no command $1; there are $(ls "$programs" | xargs)" >&2
exit 2
