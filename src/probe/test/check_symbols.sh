#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The job libraries are loaded into other people's images: no symbol above GLIBC_2.28, no library
# but libc, and all that is exported has a name of MPI's or ours.
#   check_symbols.sh OBJDUMP NM LIBRARY...
objdump=$1 nm=$2
shift 2
bad=0
for lib in "$@"; do
    newest=$("$objdump" -T "$lib" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
    if [ "$(printf '%s\nGLIBC_2.28\n' "$newest" | sort -V | tail -n 1)" != GLIBC_2.28 ]; then
        echo "$lib: needs $newest"
        bad=1
    fi
    needed=$("$objdump" -p "$lib" | awk '$1 == "NEEDED" { print $2 }' |
             grep -v -e '^libc\.so\.6$' -e '^ld-linux')
    if [ -n "$needed" ]; then
        echo "$lib: needs $needed"
        bad=1
    fi
    strange=$("$nm" -D --defined-only "$lib" | awk '{ print $3 }' |
              grep -v -i -E '^(fullrank_|ncclprofiler_v[4-7]$|mpix?_|ompix?_[a-z_]+_f$)')
    if [ -n "$strange" ]; then
        echo "$lib: exports $strange"
        bad=1
    fi
    echo "$lib: newest symbol version $newest"
done
exit $bad
