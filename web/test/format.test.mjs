// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as f from '../format.js';

test('what is not known is a dash, never a number', () => {
  for (const fn of [f.seconds, f.ratio, f.plain, f.times, f.bytes, f.clock])
    for (const v of [undefined, null, NaN, Infinity, '7']) assert.equal(fn(v), '-');
  assert.equal(f.si(null, 'B/s'), '-');
});
test('durations have three digits and a unit', () => {
  assert.equal(f.seconds(0), '0 s');
  assert.equal(f.seconds(0.000812), '812 us');
  assert.equal(f.seconds(0.0425), '42.5 ms');
  assert.equal(f.seconds(1.42), '1.42 s');
  assert.equal(f.seconds(200), '3 min 20 s');
  assert.equal(f.seconds(7500), '2 h 5 min');
});
test('no duration rounds up to 60 seconds or 1000 of a unit', () => {
  for (let v = 1e-6; v < 1e5; v *= 1.0007) {
    const t = f.seconds(v);
    assert.doesNotMatch(t, /(^| )60 s$|^1000 (us|ms)$|(^| )60 min/, `${v} became ${t}`);
  }
});
test('sizes are binary, bandwidths decimal', () => {
  assert.equal(f.bytes(1024), '1.00 KiB');
  assert.equal(f.bytes(512), '512 B');
  assert.equal(f.si(1.2e9, 'B/s'), '1.20 GB/s');
});
test('every state of a node or a job has a tone, others are unknown', () => {
  assert.equal(f.tone('healthy'), 'ok');
  assert.equal(f.tone('drained'), 'fault');
  assert.equal(f.tone('<b>'), 'unknown');
});
