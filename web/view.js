// SPDX-License-Identifier: Apache-2.0
// view.js - from what the page knows to what it shows. Text goes in by textContent alone: names come from users.
import * as f from '/web/format.js';
import { draw, drawBar } from '/web/plot.js';

const $ = (id) => document.getElementById(id);

function make(name, text, attributes = {}) {
  const e = document.createElement(name);
  if (text !== undefined && text !== null) e.textContent = String(text);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, String(v));
  return e;
}

function stateCell(text) {
  return make('span', text ?? 'unknown', { class: 'state', 'data-tone': f.tone(text ?? '') });
}

/** columns: [head, kind, value of a row]; kind "number" is set right. */
function table(where, columns, rows, none) {
  const head = make('thead');
  const tr = make('tr');
  for (const [title, kind] of columns) tr.append(make('th', title, { scope: 'col', ...(kind === 'number' ? { class: 'number' } : {}) }));
  head.append(tr);
  const body = make('tbody');
  for (const row of rows) {
    const line = make('tr');
    for (const [, kind, value] of columns) {
      const v = value(row);
      const td = make('td', v instanceof Node ? undefined : (v ?? '-'), kind ? { class: kind } : {});
      if (v instanceof Node) td.append(v);
      line.append(td);
    }
    body.append(line);
  }
  if (!rows.length) {
    const line = make('tr');
    line.append(make('td', none, { colspan: columns.length, class: 'soft' }));
    body.append(line);
  }
  where.replaceChildren(head, body);
}

export function picker(s, onPick) {
  const e = $('job-picker');
  const names = [...s.jobs.keys()];
  if (e.dataset.names !== JSON.stringify(names)) {
    e.dataset.names = JSON.stringify(names);
    e.replaceChildren(...names.map((n) => make('option', n, { value: n })));
    e.onchange = () => onPick(e.value);
  }
  if (s.job) e.value = s.job;
  $('empty').hidden = names.length > 0;
  $('job').hidden = names.length === 0;
}

export function job(s) {
  const j = s.jobs.get(s.job);
  if (!j) return;
  $('job-title').textContent = `Job ${j.job}`;
  $('job-note').textContent = j.note ?? '';
  const facts = [
    ['State', stateCell(j.state)],
    ['Step (of total)', `${f.plain(j.step)} / ${f.plain(j.total_steps)}`],
    ['Loss', f.plain(j.loss, 4)],
    ['Step time (median)', f.seconds(j.step_s)],
    ['Its own good step time', f.seconds(j.baseline_step_s)],
    ['Tokens per second', f.si(j.tokens_per_s, '/s')],
    ['MFU', f.ratio(j.mfu_ratio)],
    ['Goodput (of wall time)', f.ratio(j.goodput_ratio)],
    ['Attempt', f.plain(j.attempt)],
    ['Last checkpoint (step)', f.plain(j.checkpoint_step)],
    ['Ranks', `${f.plain(j.ranks)} on ${f.plain(j.nodes)} nodes`],
    ['Mode', j.mode ?? '-'],
  ];
  $('job-facts').replaceChildren(
    ...facts.map(([name, value]) => {
      const box = make('div');
      const dd = make('dd', value instanceof Node ? undefined : value);
      if (value instanceof Node) dd.append(value);
      box.append(make('dt', name), dd);
      return box;
    }),
  );
}

export function plot(s) {
  const steps = s.steps.map((p) => ({ x: Date.parse(p.end_at), y: p.step_s, attempt: p.attempt }));
  const marks = [...s.incidents.values()]
    .filter((i) => i.job === s.job)
    .map((i) => ({
      from: Date.parse(i.onset_at ?? i.named_at),
      to: i.closed_at ? Date.parse(i.closed_at) : Date.now(),
      tone: ['slow', 'job_slow', 'stall', 'structural', 'silent'].includes(i.kind) ? 'slow' : 'fault',
      text: `incident ${i.id}: ${i.kind}${i.node ? ` on ${i.node}` : ''}`,
    }));
  const attempts = (s.detail?.attempts ?? []).slice(1).map((a) => Date.parse(a.started_at)).filter(Number.isFinite);
  draw($('plot'), { steps, marks, attempts, label: (v) => f.seconds(v), time: (ms) => f.clock(new Date(ms).toISOString()) });
}

export function goodput(s) {
  const buckets = (s.detail?.goodput?.buckets ?? []).filter((b) => b.seconds > 0);
  const all = (s.detail?.goodput?.buckets ?? []).map((b) => b.name);
  const colour = (name) => `var(--b${all.indexOf(name)})`;
  drawBar($('buckets'), buckets.map((b) => ({ share: b.ratio ?? 0, colour: colour(b.name), text: `${b.name}: ${f.seconds(b.seconds)}` })));
  table($('goodput'), [
    ['Bucket', '', (b) => {
      const e = make('span');
      const swatch = make('span', '', { class: 'swatch' });
      swatch.style.background = colour(b.name);
      e.append(swatch, make('span', b.name));
      return e;
    }],
    ['Time', 'number', (b) => f.seconds(b.seconds)],
    ['Share of wall time', 'number', (b) => f.ratio(b.ratio)],
    ['What it is', 'text', (b) => b.text],
  ], buckets, 'no account yet');
}

function decisionLine(d) {
  const e = make('p');
  e.append(make('strong', `${d.choice}${d.node ? ` ${d.node}` : ''}`));
  e.append(make('span', `: ${d.reason}`));
  const costs = [];
  if (f.known(d.cost_stay_s)) costs.push(`staying costs ${f.seconds(d.cost_stay_s)}`);
  if (f.known(d.cost_restart_s)) costs.push(`restarting costs ${f.seconds(d.cost_restart_s)}`);
  if (costs.length) e.append(make('span', ` (${costs.join(', ')})`));
  for (const a of d.actions ?? []) e.append(make('span', `; ${a.kind} ${a.target}: ${a.state}`, { class: 'soft' }));
  return e;
}

export function incidents(s) {
  const items = [...s.incidents.values()].filter((i) => i.job === s.job).sort((a, b) => b.id - a.id).slice(0, 50);
  $('incidents').replaceChildren(
    ...items.map((i) => {
      const box = make('article', undefined, { class: 'incident', 'data-open': i.open === true });
      const what = i.subject === 'rank' ? `rank ${i.rank}` : (i.node ?? i.subject);
      const h = make('h3');
      h.append(stateCell(i.kind), make('span', ` ${what}${i.node && i.subject === 'rank' ? ` on ${i.node}` : ''}, cause: ${i.cause}`));
      box.append(h);
      const ago = i.open ? 'open' : `closed ${f.clock(i.closed_at)}`;
      box.append(make('p', `incident ${i.id}, named ${f.clock(i.named_at)} UTC, ${ago}, confidence ${f.ratio(i.confidence)}, witnesses: ${(i.witnesses ?? []).join(', ') || 'none'}`, { class: 'soft' }));
      if (i.evidence?.length) {
        const ul = make('ul');
        for (const line of i.evidence) ul.append(make('li', line));
        box.append(ul);
      }
      const own = [...s.decisions.values()].filter((d) => d.incident === i.id).sort((a, b) => a.id - b.id);
      for (const d of own.length ? own : i.decision ? [i.decision] : []) box.append(decisionLine(d));
      return box;
    }),
  );
  if (!items.length) $('incidents').append(make('p', 'none', { class: 'soft' }));
}

export function ranks(s) {
  table($('ranks'), [
    ['Rank', 'number', (r) => r.rank],
    ['Node', '', (r) => r.node],
    ['Process', '', (r) => stateCell(r.state)],
    ['Phase', '', (r) => r.phase],
    ['Step', 'number', (r) => f.plain(r.step)],
    ['Inside of', '', (r) => (r.now ? `${r.now.op}${r.now.group ? ` ${r.now.group}` : ''} for ${f.seconds(r.now.since_s)}` : '-')],
    ['Own time a step', 'number', (r) => f.seconds(r.self_s)],
    ['Against peers', 'number', (r) => f.times(r.peers_ratio)],
    ['Late', 'number', (r) => f.seconds(r.late_s)],
    ['Waits a step', 'number', (r) => f.seconds(r.wait_s)],
    ['CPU (of a core)', 'number', (r) => f.ratio(r.cpu_ratio)],
    ['Memory', 'number', (r) => f.bytes(r.rss_bytes)],
    ['Grid', '', (r) => Object.entries(r.grid ?? {}).map(([k, v]) => `${k}${v}`).join(' ') || '-'],
  ], s.ranks, 'no rank is heard of');
}

export function groups(s) {
  table($('groups'), [
    ['Group', '', (g) => g.name || g.members_hash],
    ['Members', 'number', (g) => f.plain(g.size)],
    ['Collective', '', (g) => g.op],
    ['Bus bandwidth', 'number', (g) => f.si(g.busbw_bytes_per_s, 'B/s')],
    ['Transfer', 'number', (g) => f.seconds(g.transfer_s)],
    ['Wait for the last', 'number', (g) => f.seconds(g.wait_s)],
    ['Most often last (rank)', 'number', (g) => f.plain(g.last_rank)],
  ], s.detail?.groups ?? [], 'no collective was joined yet');
}

export function nodes(s) {
  const items = [...s.nodes.values()].sort((a, b) => a.node.localeCompare(b.node, 'en', { numeric: true }));
  table($('nodes'), [
    ['Node', '', (n) => n.node],
    ['State', '', (n) => stateCell(n.state)],
    ['Job', '', (n) => n.job],
    ['Ranks', '', (n) => (n.ranks ?? []).join(' ') || '-'],
    ['Heard', 'number', (n) => (f.known(n.last_heard_s) ? `${f.seconds(n.last_heard_s)} ago` : '-')],
    ['CPU pressure', 'number', (n) => f.ratio(n.pressure?.cpu_some_ratio)],
    ['Agent CPU', 'number', (n) => f.ratio(n.agent?.cpu_ratio)],
    ['Why', 'text', (n) => n.reason],
  ], items, 'no node is known');
}

export function attempts(s) {
  table($('attempts'), [
    ['Attempt', 'number', (a) => a.attempt],
    ['Nodes', '', (a) => (a.nodes ?? []).join(' ')],
    ['Started (UTC)', '', (a) => f.clock(a.started_at)],
    ['First step (UTC)', '', (a) => f.clock(a.first_step_at)],
    ['Ended (UTC)', '', (a) => f.clock(a.ended_at)],
    ['Steps', '', (a) => (f.known(a.first_step) ? `${a.first_step} to ${a.last_step}` : '-')],
    ['Exit', '', (a) => (f.known(a.exit_signal) ? `signal ${a.exit_signal}` : f.plain(a.exit_code))],
    ['Why it ended', 'text', (a) => a.end_reason],
  ], s.detail?.attempts ?? [], 'none yet');
}

export function controller(s) {
  const c = s.status?.controller;
  if (!c) return;
  $('controller').textContent = `controller ${c.version}, mode ${c.mode}, up ${f.seconds(c.uptime_s)}, CPU ${f.seconds(c.cpu_s)}, memory ${f.bytes(c.rss_bytes)}` + (c.ledger_ok ? '' : `; the ledger cannot be written: ${c.ledger_error}`);
}

/** state: live, lost; age: seconds since something was heard. */
export function connection(state, age) {
  const e = $('connection');
  e.dataset.state = state;
  e.textContent = state === 'live' ? 'live' : `connection lost, this picture is ${f.seconds(Math.round(age))} old`;
  document.querySelector('main').classList.toggle('stale', state !== 'live');
}
