// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pieces, scale, thin, ticks, top } from '../plot.js';

test('ticks are round, inside the range, evenly spaced and few', () => {
  let seed = 7;
  const rnd = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  for (let k = 0; k < 500; k++) {
    const lo = (rnd() - 0.5) * 10 ** (rnd() * 8 - 4);
    const hi = lo + 10 ** (rnd() * 8 - 4);
    const t = ticks(lo, hi);
    assert.ok(t.length >= 1 && t.length <= 7, `${lo}..${hi}: ${t}`);
    for (const v of t) assert.ok(v >= lo - 1e-6 * (hi - lo) && v <= hi + 1e-6 * (hi - lo));
  }
  assert.deepEqual(ticks(0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]);
});
test('a range of nothing has one tick and a flat scale', () => {
  assert.deepEqual(ticks(3, 3), [3]);
  assert.equal(scale(3, 3, 0, 100)(3), 0);
});
test('thinning keeps the extremes and the order', () => {
  const p = Array.from({ length: 10000 }, (_, i) => ({ x: i, y: Math.sin(i) }));
  p[4321].y = 99;
  p[77].y = -99;
  const t = thin(p, 500);
  assert.ok(t.length <= 500);
  assert.ok(t.includes(p[4321]) && t.includes(p[77]));
  for (let i = 1; i < t.length; i++) assert.ok(t[i].x > t[i - 1].x);
});
test('missing data is a gap', () => {
  const p = [0, 1, 2, 10, 11].map((x) => ({ x, y: 1 }));
  assert.deepEqual(pieces(p, 3).map((q) => q.length), [3, 2]);
  p[1].attempt = p[2].attempt = 2;
  assert.deepEqual(pieces(p, 3).map((q) => q.length), [1, 2, 2]);
});
test('a lone spike does not press the rest flat', () => {
  assert.ok(top([...Array(200).fill(1), 100]) < 5);
  assert.ok(top([1, 2, 3]) >= 3);
  assert.equal(top([]), 1);
});
