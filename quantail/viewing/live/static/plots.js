"use strict";
// Plots: uPlot draws axes, grid and lines; hooks draw the marks of means and values.

const COLOURS = 9, DASHES = [[], [8, 4], [2, 3]]; // 18 actions differ in colour or in dashes
const PADDING = [8, 8, 0, 0]; // above, right, below and left of a plot, in pixels
const FRACTIONS = [0, 0.2, 0.4, 0.6, 0.8, 1];
const tauTicks = (u, ticks) => ticks.map(tau => tau.toFixed(1));

function shade(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function colourOf(action) {
  return shade(`--a${action % COLOURS}`);
}

function textWidth(text) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = "bold 12px system-ui";
  return context.measureText(text).width;
}

// A range that widens at once and narrows slowly, so that axes do not jump.
class Range {
  constructor() { this.low = null; }

  update(low, high) {
    const margin = 0.06 * Math.max(high - low, 1e-3);
    low -= margin;
    high += margin;
    const time = performance.now();
    if (this.low === null) {
      [this.low, this.high] = [low, high];
    } else {
      const share = 1 - Math.exp(-(time - this.time) / 1500);
      this.low = low < this.low ? low : this.low + share * (low - this.low);
      this.high = high > this.high ? high : this.high + share * (high - this.high);
    }
    this.time = time;
    return [this.low, this.high];
  }
}

function axis(label, more) {
  return Object.assign({
    label, labelSize: 16, labelGap: 0, labelFont: "12px system-ui", font: "11px system-ui", gap: 4, size: 26,
    stroke: shade("--quiet"), grid: { stroke: shade("--grid"), width: 1 }, ticks: { stroke: shade("--grid"), width: 1 },
  }, more);
}

function mark(context, kind, x, y, colour, strong) {
  const r = (strong ? 6.5 : 4.5) * devicePixelRatio;
  context.beginPath();
  if (kind === "mean") {
    context.arc(x, y, r * 0.8, 0, 2 * Math.PI);
  } else {
    context.moveTo(x, y - r); context.lineTo(x + r, y); context.lineTo(x, y + r); context.lineTo(x - r, y);
    context.closePath();
  }
  context.setLineDash([]); // marks are never dashed, even if the line is
  context.lineWidth = 2 * devicePixelRatio;
  context.strokeStyle = colour;
  context.fillStyle = kind === "mean" ? shade("--ground") : colour;
  context.fill();
  context.stroke();
}

// Show a caption, unless it is there already.
function caption(element, html) {
  if (element.dataset.shown !== html) element.dataset.shown = element.innerHTML = html;
}

const percent = share => `${(100 * share).toPrecision(share < 0.0995 ? 1 : 2)} %`;
const MEAN_AT = 1.04, VALUE_AT = 1.095, MARKS_END = 1.13; // positions on the axis of τ
// The environment may say which actions are allowed.
const isAllowed = (pane, action) => !pane.allowed || pane.allowed[action];
const allowedActions = pane => pane.names.map((_, action) => action).filter(action => isAllowed(pane, action));

const MAX_LABELLED = 7; // with more actions, only the chosen one is named in the plot

// The return distribution of every action: its quantile function, or its density.
class DistributionPlot {
  constructor(element, caption) {
    this.element = element;
    this.caption = caption;
    this.range = new Range();
    this.built = "";
    this.peak = 1; // the highest density
  }

  show(pane, taus, density) {
    const kind = `${density} ${pane.names} ${this.element.clientWidth}`;
    if (kind !== this.built) this.build(pane, density, kind);
    this.pane = pane;
    const count = pane.names.length;
    pane.names.forEach((_, action) => {
      const best = action === pane.chosen;
      const line = this.plot.series[count + action + 1];
      line.width = best ? 3.5 : 1.4;
      line.alpha = best ? 1 : isAllowed(pane, action) ? 0.8 : 0.15;
    });
    const exact = pane.exact || pane.names.map(() => null);
    const all = density ? pane.grid : [pane.distribution, ...exact.filter(Boolean)].flat(2);
    [this.low, this.high] = this.range.update(Math.min(...all), Math.max(...all));
    if (density) this.peak = Math.max(1e-9, ...[pane.density, ...exact.filter(Boolean)].flat(2));
    const x = density ? pane.grid : taus;
    const none = x.map(() => null);
    this.plot.setData([x, ...exact.map(line => line || none), ...(density ? pane.density : pane.distribution)]);
    this.describe(pane, density);
  }

  describe(pane, density) {
    const notes = [];
    if (pane.exact) {
      notes.push(`wide and pale: exact under the learned policy (${pane.target}), ` +
        `for “${pane.names[pane.chosen]}” at a 1-Wasserstein distance of ${pane.distance}`);
    }
    if (pane.crossing) notes.push(`quantiles are sorted, ${percent(pane.crossing)} of neighbours crossed`);
    const what = density ? "density of each action's return" : "return of each action, from the worst outcomes (τ = 0) to the best";
    const more = notes.map(note => `; ${note.replace(/[<&]/g, "")}`).join("");
    caption(this.caption, `<b>${what}</b>: ○ mean, ◆ value under the risk measure${more}`);
  }

  build(pane, density, kind) {
    this.built = kind;
    if (this.plot) this.plot.destroy();
    this.range = new Range();
    const room = 12 + Math.max(...pane.names.map(textWidth)); // for the names at the right
    const end = MARKS_END / (1 - Math.min(0.3, room / (this.element.clientWidth - 60)));
    const scales = density
      ? { x: { time: false, range: () => [this.low, this.high] }, y: { range: () => [-0.16 * this.peak, 1.12 * this.peak] } }
      : { x: { time: false, range: () => [0, end] }, y: { range: () => [this.low, this.high] } };
    const axes = density
      ? [axis("discounted return"), axis("density", { size: 48, values: (u, ticks) => ticks.map(() => ""), ticks: { show: false } })]
      : [axis("quantile fraction τ", { splits: () => FRACTIONS, values: tauTicks }), axis("discounted return", { size: 48 })];
    const wide = this.element.closest(".pane").clientWidth >= 860;
    const height = Math.max(210, Math.min((wide ? 0.48 : 0.3) * innerHeight, 0.6 * this.element.clientWidth));
    const series = (action, more) => ({ label: pane.names[action], stroke: colourOf(action), points: { show: false }, ...more });
    const actions = pane.names.map((_, action) => action);
    this.plot = new uPlot({
      width: this.element.clientWidth, height, padding: PADDING, scales, axes, legend: { show: false }, cursor: { show: false },
      series: [{}, ...actions.map(action => series(action, { width: 9, alpha: 0.28 })),
        ...actions.map(action => series(action, { dash: DASHES[Math.floor(action / COLOURS) % DASHES.length] }))],
      hooks: { draw: [u => this.drawMarks(u, density)] },
    }, [[0, 1], ...actions.map(() => [null, null]), ...actions.map(() => [0, 0])], this.element);
    this.end = end;
  }

  // The actions that are named in the plot.
  labels(pane) {
    const allowed = allowedActions(pane);
    return allowed.length > MAX_LABELLED ? [pane.chosen] : allowed;
  }

  drawMarks(u, density) {
    if (!this.pane) return;
    const { means, values, chosen } = this.pane;
    u.ctx.save();
    const order = allowedActions(this.pane).sort((a, b) => (a === chosen) - (b === chosen));
    for (const action of order) {
      const strong = action === chosen, colour = colourOf(action);
      if (density) {
        const y = u.valToPos(0, "y", true) + 8 * devicePixelRatio;
        mark(u.ctx, "mean", u.valToPos(means[action], "x", true), y, colour, strong);
        mark(u.ctx, "value", u.valToPos(values[action], "x", true), y + 13 * devicePixelRatio, colour, strong);
      } else {
        mark(u.ctx, "mean", u.valToPos(MEAN_AT, "x", true), u.valToPos(means[action], "y", true), colour, strong);
        mark(u.ctx, "value", u.valToPos(VALUE_AT, "x", true), u.valToPos(values[action], "y", true), colour, strong);
      }
    }
    if (!density) this.drawNames(u);
    u.ctx.restore();
  }

  // The names of the actions beside their values, moved apart where they would overlap.
  drawNames(u) {
    const { values, chosen, names } = this.pane, { ctx, bbox } = u, gap = 14 * devicePixelRatio;
    const places = this.labels(this.pane)
      .map(action => ({ action, y: u.valToPos(values[action], "y", true) }))
      .sort((a, b) => a.y - b.y);
    places.forEach((one, i) => { if (i) one.y = Math.max(one.y, places[i - 1].y + gap); });
    const beyond = places.length ? places.at(-1).y - (bbox.top + bbox.height - gap / 2) : 0;
    if (beyond > 0) {
      places.at(-1).y -= beyond;
      for (let i = places.length - 2; i >= 0; i--) places[i].y = Math.min(places[i].y, places[i + 1].y - gap);
    }
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const { action, y } of places) {
      ctx.font = `${action === chosen ? "bold " : ""}${12 * devicePixelRatio}px system-ui`;
      ctx.fillStyle = colourOf(action);
      ctx.fillText(names[action], u.valToPos(MARKS_END, "x", true), y);
    }
  }
}

// The weight of each quantile fraction under the risk measure, in a strip of its own.
class WeightPlot {
  constructor(element, caption) {
    this.element = element;
    this.caption = caption;
    this.built = "";
  }

  show(pane) {
    const { weights } = pane;
    this.element.hidden = !weights;
    if (!weights) {
      caption(this.caption, `<b>weight of each τ</b>: ${pane.measure.replace(/[<&]/g, "")} does not weigh quantile fractions`);
      return;
    }
    caption(this.caption, "<b>weight of each τ under the risk measure</b>: 1 for all is the mean");
    const kind = `${this.element.clientWidth} ${this.end}`;
    this.top = Math.max(2, 1.1 * Math.max(...weights));
    if (kind !== this.built) this.build(kind);
    this.plot.setData([[...weights.map((_, i) => i / weights.length), 1], [...weights, weights.at(-1)]]);
  }

  build(kind) {
    this.built = kind;
    if (this.plot) this.plot.destroy();
    this.plot = new uPlot({
      width: this.element.clientWidth, height: 84, padding: PADDING, legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, range: () => [0, this.end] }, y: { range: () => [0, this.top] } },
      axes: [axis(undefined, { labelSize: 0, size: 24, splits: () => FRACTIONS, values: tauTicks }),
        axis("weight", { size: 48, splits: () => [0, Math.max(1, Math.round(this.top / 1.1))] })],
      series: [{}, { stroke: shade("--quiet"), width: 1, fill: shade("--weight"), paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }],
    }, [[0, 1], [0, 0]], this.element);
  }
}

// The episode so far: rewards, predicted returns, and actual returns once they are known.
class StripPlot {
  constructor(element, caption) {
    this.element = element;
    this.built = "";
    this.range = new Range();
    caption.innerHTML = "<b>this episode</b>: <b class='predicted'>— predicted return</b>, " +
      "<b class='actual'>╌ actual return</b> (known later), <b class='reward'>▮ reward</b>";
  }

  show(strip) {
    const kind = `${this.element.clientWidth}`;
    if (kind !== this.built) this.build(kind);
    const steps = strip.predicted.map((_, i) => strip.begin + i);
    const all = [...strip.predicted, ...strip.rewards, ...strip.actual.filter(v => v !== null), 0];
    [this.low, this.high] = this.range.update(Math.min(...all), Math.max(...all));
    this.end = Math.max(10, strip.begin + strip.predicted.length);
    this.begin = strip.begin;
    const rewards = strip.rewards.map(reward => reward === 0 ? null : reward);
    this.plot.setData([steps, rewards, strip.predicted, strip.actual]);
  }

  build(kind) {
    this.built = kind;
    if (this.plot) this.plot.destroy();
    const ink = shade("--ink"), quiet = shade("--quiet"), actual = shade("--actual");
    this.plot = new uPlot({
      width: this.element.clientWidth, height: 140, padding: PADDING, legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, range: () => [this.begin ?? 0, this.end ?? 20] }, y: { range: () => [this.low ?? 0, this.high ?? 1] } },
      axes: [axis("step of the episode"), axis("return", { size: 48 })],
      series: [{}, { stroke: quiet, fill: quiet, paths: uPlot.paths.bars({ size: [0.6, 6], align: 1 }), points: { show: false } },
        { stroke: ink, width: 1.5, points: { show: false } },
        { stroke: actual, width: 2, dash: [5, 4], points: { show: false } }],
    }, [[0], [null], [null], [null]], this.element);
  }
}
