// SPDX-License-Identifier: Apache-2.0
// format.js - numbers for people, as the command line writes them; "-" for what is not known. Pure.

/** @param {unknown} v @returns {v is number} */
export function known(v) {
  return typeof v === 'number' && Number.isFinite(v);
}

/** 812 us, 1.42 s, 3 min 20 s, 2 h 5 min. @param {unknown} s seconds */
export function seconds(s) {
  if (!known(s)) return '-';
  const a = Math.abs(s);
  if (a === 0) return '0 s';
  if (a < 0.9995e-3) return `${round3(s * 1e6)} us`;
  if (a < 0.9995) return `${round3(s * 1e3)} ms`;
  if (a < 59.995) return `${round3(s)} s`;
  const t = Math.round(s);
  if (t < 3600) return `${Math.floor(t / 60)} min ${t % 60} s`;
  const m = Math.round(s / 60);
  if (m < 48 * 60) return `${Math.floor(m / 60)} h ${m % 60} min`;
  return `${Math.floor(m / 1440)} d ${Math.floor((m % 1440) / 60)} h`;
}

/** Three significant digits, no exponent. @param {number} v */
function round3(v) {
  const a = Math.abs(v);
  return v.toFixed(a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2);
}

/** @param {unknown} r 0..1 */
export function ratio(r) {
  return known(r) ? `${(100 * r).toFixed(1)} %` : '-';
}

/** @param {unknown} v @param {number} [digits] */
export function plain(v, digits = 0) {
  return known(v) ? v.toFixed(digits) : '-';
}

/** A value that is a multiple of another: 1.83 x. @param {unknown} v */
export function times(v) {
  return known(v) ? `${v.toFixed(2)} x` : '-';
}

/** 2.9 TiB. @param {unknown} v bytes */
export function bytes(v) {
  if (!known(v)) return '-';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let i = 0;
  while (Math.abs(v) >= 1024 && i < units.length - 1) {
    v /= 1024;
    i++;
  }
  return `${i === 0 ? v.toFixed(0) : round3(v)} ${units[i]}`;
}

/** 1.2 GB/s: decimal, as bandwidths are given. @param {unknown} v @param {string} unit */
export function si(v, unit) {
  if (!known(v)) return '-';
  const prefixes = ['', 'k', 'M', 'G', 'T', 'P'];
  let i = 0;
  while (Math.abs(v) >= 1000 && i < prefixes.length - 1) {
    v /= 1000;
    i++;
  }
  return `${i === 0 && Number.isInteger(v) ? v.toFixed(0) : round3(v)} ${prefixes[i]}${unit}`;
}

/** 12:00:01 of an RFC 3339 time, UTC. @param {unknown} t */
export function clock(t) {
  const ms = typeof t === 'string' && /^\d{4}-\d\d-/.test(t) ? Date.parse(t) : NaN;
  return Number.isFinite(ms) ? new Date(ms).toISOString().slice(11, 19) : '-';
}

/** Tone of a state word: ok, warn, fault, idle or unknown. @param {string} state */
export function tone(state) {
  const TONES = {
    ok: ['running', 'healthy', 'done'],
    warn: ['suspect', 'draining', 'probation', 'disk', 'stopping', 'starting', 'slow', 'job_slow', 'stall'],
    fault: ['stuck', 'failed', 'dead', 'hang', 'mismatch', 'gone', 'zombie', 'stopped', 'drained', 'down'],
    idle: ['queued', 'verifying', 'cancelled'],
  };
  for (const [name, states] of Object.entries(TONES)) if (states.includes(state)) return name;
  return 'unknown';
}
