/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pickle.h - read a pickle of plain values without executing anything
 *
 * A pickle is a program for a small stack machine that can import modules and call functions.
 * Dumps of PyTorch use the opcodes that build dicts, lists, tuples, texts and numbers; those, with
 * the ones that Python's own writer uses for the same, are read here. Every other opcode ends the
 * reading with its offset, and nothing is ever looked up, called or built.
 *
 * Range:   protocols 2 to 5; whole numbers of 64 bits; the memo has at most as many places as the
 *          input has bytes.
 * Threads: none.
 * Source:  Lib/pickletools.py of CPython 3.13 (opcodes and their arguments);
 *          torch/csrc/jit/serialization/pickler.cpp of PyTorch (what the recorder writes).
 */
#ifndef FR_SCAN_PICKLE_H
#define FR_SCAN_PICKLE_H

#include "scan/value.h"

/* 0 with the value on top, or -EINVAL (damaged or cut), -EPERM (an opcode that is not read),
 * -EPROTO (protocol), -EFBIG (too many values), each with the offset in err. Texts point into p. */
int fr_pickle_parse(const uint8_t *p, size_t n, struct fr_values *a, struct fr_value **ret,
                    struct fr_err *err);

#endif /* FR_SCAN_PICKLE_H */
