#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Build the job libraries for aarch64, check their symbols, run the ring and marks under qemu.
#   check_cross.sh SOURCE_DIR BUILD_DIR
# Exits 77 (skipped) without the cross compiler or the emulator.
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v $tool >/dev/null || { echo "skipped: no $tool here"; exit 77; }
done
set -e
cmake -S "$1" -B "$2" -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DFR_JOB_ONLY=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo >"$2.log" 2>&1 ||
    { cat "$2.log"; exit 1; }
cmake --build "$2" -- --no-print-directory
sh "$1/src/probe/test/check_symbols.sh" aarch64-linux-gnu-objdump aarch64-linux-gnu-nm "$2"/lib/*.so
qemu-aarch64 -L /usr/aarch64-linux-gnu "$2/test/probe_cross"
