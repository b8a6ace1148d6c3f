// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addSteps, chooseJob, empty, take } from '../store.js';

test('a running job is shown before a newer one that has ended', () => {
  const jobs = new Map([
    ['a', { job: 'a', state: 'running', submitted_at: '2026-01-01T00:00:00Z' }],
    ['b', { job: 'b', state: 'done', submitted_at: '2026-01-02T00:00:00Z' }],
  ]);
  assert.equal(chooseJob(jobs, null), 'a');
  assert.equal(chooseJob(jobs, 'b'), 'b');
  assert.equal(chooseJob(jobs, 'gone'), 'a');
  assert.equal(chooseJob(new Map(), 'x'), null);
});
test('a step that was told twice is counted once, and a missing one is noticed', () => {
  const s = empty();
  s.job = 'j1';
  assert.deepEqual(take(s, 'step', { job: 'j1', cursor: 1 }), ['steps']);
  take(s, 'step', { job: 'j1', cursor: 1 });
  assert.equal(s.steps.length, 1);
  assert.deepEqual(take(s, 'step', { job: 'j1', cursor: 4 }), ['steps-missing']);
  addSteps(s, [{ cursor: 1 }, { cursor: 2 }, { cursor: 3 }, { cursor: 4 }]);
  assert.deepEqual(s.steps.map((p) => p.cursor), [1, 2, 3, 4]);
});
test('events of other jobs and unknown events change nothing that is shown', () => {
  const s = empty();
  s.job = 'j1';
  assert.deepEqual(take(s, 'step', { job: 'j2', cursor: 1 }), []);
  assert.deepEqual(take(s, 'later', {}), []);
});
