// SPDX-License-Identifier: Apache-2.0
// main.js - one event stream for what changes, a few documents for the rest; the address says which job is shown.
import { addSteps, chooseJob, empty, take } from '/web/store.js';
import * as view from '/web/view.js';

const EVENTS = ['status', 'job', 'step', 'incident', 'decision', 'node'];
const state = empty();
let heard = 0; // ms, when something was heard last
let dirty = new Set();

async function get(path) {
  const r = await fetch(path, { signal: AbortSignal.timeout(5000) });
  if (!r.ok) throw new Error(`${path}: ${r.status}`);
  heard = performance.now();
  return r.json();
}

function asked() {
  return new URLSearchParams(location.hash.slice(1)).get('job');
}

const path = (tail) => `/api/v1/jobs/${encodeURIComponent(state.job)}${tail}`;

async function loadSteps() {
  for (;;) {
    const d = await get(path(`/steps?since=${state.cursor}&limit=5000`));
    addSteps(state, d.items);
    if (d.items.length < 5000) break;
  }
  dirty.add('steps');
}

async function loadDetail() {
  if (!state.job) return;
  const [detail, ranks, nodes] = await Promise.all([get(path('')), get(path('/ranks')), get('/api/v1/nodes')]);
  state.detail = detail;
  state.ranks = ranks.items;
  for (const n of nodes.items) state.nodes.set(n.node, n);
  ['detail', 'ranks', 'nodes'].forEach((k) => dirty.add(k));
}

async function show(name) {
  if (name !== state.job) {
    state.job = name;
    state.steps = [];
    state.cursor = 0;
    state.detail = null;
    state.ranks = [];
  }
  if (!name) return;
  await Promise.all([loadSteps(), loadDetail()]);
  EVENTS.forEach((e) => dirty.add(e));
  dirty.add('incidents');
}

async function loadAll() {
  const [status, incidents, decisions] = await Promise.all([get('/api/v1/status'), get('/api/v1/incidents'), get('/api/v1/decisions')]);
  take(state, 'status', status);
  for (const i of incidents.items) state.incidents.set(i.id, i);
  for (const d of decisions.items) state.decisions.set(d.id, d);
  await show(chooseJob(state.jobs, asked()));
}

function pick(name) {
  location.hash = new URLSearchParams({ job: name }).toString();
}

function render() {
  if (!dirty.size) return;
  const d = dirty;
  dirty = new Set();
  const any = (...names) => names.some((n) => d.has(n));
  view.picker(state, pick);
  if (any('status')) view.controller(state);
  if (any('job', 'status')) view.job(state);
  if (any('steps', 'step', 'incidents', 'detail')) view.plot(state);
  if (any('detail')) {
    view.goodput(state);
    view.groups(state);
    view.attempts(state);
  }
  if (any('incidents', 'detail')) view.incidents(state);
  if (any('ranks')) view.ranks(state);
  if (any('nodes')) view.nodes(state);
}

const quiet = (promise) => promise.catch(() => {}); // a lost connection is shown by its age

function follow() {
  const stream = new EventSource('/api/v1/events');
  stream.onopen = () => {
    heard = performance.now();
    quiet(loadAll()); // what changed while nobody listened
  };
  for (const name of EVENTS)
    stream.addEventListener(name, (e) => {
      heard = performance.now();
      for (const k of take(state, name, JSON.parse(e.data))) {
        if (k === 'steps-missing') quiet(loadSteps());
        else dirty.add(k);
      }
      if (!state.job && state.jobs.size) quiet(show(chooseJob(state.jobs, asked())));
    });
}

addEventListener('hashchange', () => quiet(show(chooseJob(state.jobs, asked()))));
setInterval(() => {
  const age = (performance.now() - heard) / 1000;
  view.connection(age < 3.5 ? 'live' : 'lost', age);
  if (!document.hidden) render();
}, 250);
setInterval(() => {
  if (!document.hidden) quiet(loadDetail());
}, 1000);
follow();
