/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc_compat.h - old symbol versions, so that the libraries load into old images
 *
 * A job's image may carry glibc 2.28, the build machine a newer one. glibc 2.34 moved dlsym into
 * libc under a new version; the old version is kept and is bound here by name. What else
 * the job libraries call has not changed since 2.18 (a test reads the symbol table).
 *
 * Source:  glibc NEWS 2.34; sysdeps/unix/sysv/linux/{x86_64,aarch64}: base versions 2.2.5, 2.17.
 */
#ifndef FR_PROBE_LIBC_COMPAT_H
#define FR_PROBE_LIBC_COMPAT_H

#if defined(__x86_64__)
#define FR_OLD_VERSION(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#elif defined(__aarch64__)
#define FR_OLD_VERSION(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#else
#define FR_OLD_VERSION(name) _Static_assert(1, "newest version")
#endif

#endif /* FR_PROBE_LIBC_COMPAT_H */
