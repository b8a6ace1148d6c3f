// SPDX-License-Identifier: Apache-2.0
// store.js - what the page knows: the newest object of each kind, and how it changes by an event. Pure.

export const STEPS_MOST = 20000;

export function empty() {
  return { status: null, job: null, jobs: new Map(), detail: null, ranks: [], nodes: new Map(), incidents: new Map(), decisions: new Map(), steps: [], cursor: 0 };
}

/** Choose what to show: the asked one when it is there, else one that runs, else the newest. */
export function chooseJob(jobs, asked) {
  if (asked && jobs.has(asked)) return asked;
  const all = [...jobs.values()].sort((a, b) => Date.parse(b.submitted_at) - Date.parse(a.submitted_at));
  const live = all.find((j) => !['done', 'failed', 'cancelled'].includes(j.state));
  return (live ?? all[0])?.job ?? null;
}

/** Take steps in order of their cursor; one that is known already is left out. */
export function addSteps(s, items) {
  for (const i of items)
    if (i.cursor > s.cursor) {
      s.steps.push(i);
      s.cursor = i.cursor;
    }
  if (s.steps.length > STEPS_MOST) s.steps.splice(0, s.steps.length - STEPS_MOST);
}

/** Fold one event of the stream in. Returns the names of what changed. */
export function take(s, event, data) {
  switch (event) {
    case 'status':
      s.status = data;
      for (const j of data.jobs ?? []) s.jobs.set(j.job, j);
      return ['status', 'job'];
    case 'job':
      s.jobs.set(data.job, data);
      return data.job === s.job ? ['job'] : ['picker'];
    case 'step':
      if (data.job !== s.job) return [];
      if (data.cursor > s.cursor + 1) return ['steps-missing'];
      addSteps(s, [data]);
      return ['steps'];
    case 'node':
      s.nodes.set(data.node, data);
      return ['nodes'];
    case 'incident':
      s.incidents.set(data.id, data);
      return ['incidents'];
    case 'decision':
      s.decisions.set(data.id, data);
      return ['incidents'];
    default:
      return [];
  }
}
