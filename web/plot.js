// SPDX-License-Identifier: Apache-2.0
// plot.js - a time plot as SVG: scales, ticks, gaps, marks. The arithmetic is pure and tested; only draw() touches the page.

const SVG = 'http://www.w3.org/2000/svg';

/** Round ticks that cover lo..hi: steps of 1, 2 or 5 times a power of ten. @returns {number[]} */
export function ticks(lo, hi, most = 5) {
  if (!(hi > lo) || !Number.isFinite(lo) || !Number.isFinite(hi)) return [lo];
  const raw = (hi - lo) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw * (1 - 1e-9));
  const out = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + step * 1e-9; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

/** A linear map of [a, b] onto [c, d]. */
export function scale(a, b, c, d) {
  const k = b > a ? (d - c) / (b - a) : 0;
  return (v) => c + (v - a) * k;
}

/**
 * At most n points for drawing: the smallest and the largest of each bin stay, so that no spike is lost.
 * @param {{x: number, y: number}[]} points in order of x
 */
export function thin(points, n) {
  if (points.length <= n || n < 2) return points;
  const bins = Math.floor(n / 2);
  const out = [];
  for (let b = 0; b < bins; b++) {
    const from = Math.floor((b * points.length) / bins);
    const to = Math.floor(((b + 1) * points.length) / bins);
    let lo = from;
    let hi = from;
    for (let i = from; i < to; i++) {
      if (points[i].y < points[lo].y) lo = i;
      if (points[i].y > points[hi].y) hi = i;
    }
    out.push(points[Math.min(lo, hi)]);
    if (lo !== hi) out.push(points[Math.max(lo, hi)]);
  }
  return out;
}

/** Pieces of a line, cut where more than `gap` lies between two points or a new attempt begins: missing data is a gap. */
export function pieces(points, gap) {
  const out = [];
  for (const p of points) {
    const last = out[out.length - 1];
    if (!last || p.x - last[last.length - 1].x > gap || p.attempt !== last[0].attempt) out.push([p]);
    else last.push(p);
  }
  return out;
}

/** Upper end of the axis: the largest value, but a lone spike may not press the rest flat. */
export function top(values) {
  const v = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!v.length) return 1;
  const most = v[v.length - 1];
  const usual = v[Math.floor(0.98 * (v.length - 1))];
  return (most > 4 * usual ? 2 * usual : most) * 1.1 || 1;
}

function add(parent, name, attributes, text) {
  const e = document.createElementNS(SVG, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, String(v));
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
}

/**
 * Draw into `where`. steps: {x: ms, y: seconds}[] in order; marks: {from, to, tone, text}[] and attempts: ms[] of starts.
 */
export function draw(where, { steps, marks, attempts, label, time }) {
  const W = 960;
  const H = 240;
  const left = 64;
  const bottom = 24;
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', `0 0 ${W} ${H}`);
  if (steps.length > 1) {
    const x0 = steps[0].x;
    const x1 = steps[steps.length - 1].x;
    const y1 = top(steps.map((p) => p.y));
    const x = scale(x0, x1, left, W - 8);
    const y = scale(0, y1, H - bottom, 8);
    for (const t of ticks(0, y1)) {
      add(svg, 'line', { class: 'grid', x1: left, x2: W - 8, y1: y(t), y2: y(t) });
      add(svg, 'text', { x: left - 6, y: y(t) + 4, 'text-anchor': 'end' }, label(t));
    }
    for (let i = 0; i <= 4; i++) {
      const t = x0 + ((x1 - x0) * i) / 4;
      add(svg, 'text', { x: x(t), y: H - 6, 'text-anchor': i === 0 ? 'start' : i === 4 ? 'end' : 'middle' }, time(t));
    }
    for (const m of marks) {
      const a = x(Math.max(m.from, x0));
      const b = x(Math.min(m.to, x1));
      const r = add(svg, 'rect', { class: m.tone, x: a, y: 8, width: Math.max(2, b - a), height: H - bottom - 8 });
      add(r, 'title', {}, m.text);
    }
    for (const t of attempts) if (t > x0) add(svg, 'line', { class: 'attempt', x1: x(t), x2: x(t), y1: 8, y2: H - bottom });
    const sorted = steps.map((p) => p.y).sort((a, b) => a - b);
    const gap = 1000 * Math.max(2, 6 * sorted[Math.floor(sorted.length / 2)]);
    for (const piece of pieces(thin(steps, 2 * W), gap))
      add(svg, 'polyline', { class: 'line', points: piece.map((p) => `${x(p.x).toFixed(1)},${Math.max(8, y(p.y)).toFixed(1)}`).join(' ') });
  } else {
    add(svg, 'text', { x: W / 2, y: H / 2, 'text-anchor': 'middle' }, 'no steps yet');
  }
  where.replaceChildren(svg);
}

/** A bar of shares: {share: 0..1, colour, text}[]. */
export function drawBar(where, parts) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 1000 28');
  svg.setAttribute('preserveAspectRatio', 'none');
  let at = 0;
  for (const p of parts) {
    const r = add(svg, 'rect', { x: 1000 * at, y: 0, width: 1000 * p.share, height: 28 });
    r.style.fill = p.colour;
    add(r, 'title', {}, p.text);
    at += p.share;
  }
  where.replaceChildren(svg);
}
