"use strict";
// Plots: uPlot draws axes, grid and lines; hooks draw the marks of means and values.

const COLOURS = 7, DASHES = [[], [8, 4], [2, 3]]; // enough combinations for 18 actions

function shade(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function colourOf(action) {
  return shade(`--a${action % COLOURS}`);
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

// The return distribution of every action: its quantile function, or its density.
class DistributionPlot {
  constructor(element, caption) {
    this.element = element;
    this.caption = caption;
    this.range = new Range();
    this.built = "";
  }

  show(pane, taus, density) {
    const kind = `${density} ${pane.names.length} ${this.element.clientWidth}`;
    if (kind !== this.built) this.build(pane, density, kind);
    this.pane = pane;
    pane.names.forEach((_, action) => {
      const best = action === pane.chosen;
      this.plot.series[action + 1].width = best ? 3.5 : 1.4;
      this.plot.series[action + 1].alpha = best ? 1 : 0.75;
    });
    const all = density ? pane.grid : pane.distribution.flat();
    [this.low, this.high] = this.range.update(Math.min(...all), Math.max(...all));
    this.plot.setData(density ? [pane.grid, ...pane.density] : [taus, ...pane.distribution]);
  }

  build(pane, density, kind) {
    this.built = kind;
    if (this.plot) this.plot.destroy();
    this.range = new Range();
    this.caption.innerHTML = density
      ? "<b>density of each action's return</b>: ○ mean, ◆ value under the risk measure"
      : "<b>quantile function of each action's return</b>: ○ mean, ◆ value under the risk measure; shaded: weight of each τ";
    const scales = density
      ? { x: { time: false, range: () => [this.low, this.high] }, y: { range: (u, low, high) => [-0.16 * high, high * 1.08 || 1] } }
      : { x: { time: false, range: () => [0, 1.13] }, y: { range: () => [this.low, this.high] } };
    const axes = density
      ? [axis("discounted return"), axis("density", { size: 30, values: (u, ticks) => ticks.map(() => ""), ticks: { show: false } })]
      : [axis("quantile fraction τ", { values: (u, ticks) => ticks.map(t => t > 1.001 ? "" : t.toFixed(1)) }),
         axis("discounted return", { size: 48 })];
    const wide = this.element.closest(".pane").clientWidth >= 860;
    const height = Math.max(210, Math.min((wide ? 0.54 : 0.3) * innerHeight, 0.6 * this.element.clientWidth));
    this.plot = new uPlot({
      width: this.element.clientWidth, height, scales, axes, legend: { show: false }, cursor: { show: false },
      series: [{}, ...pane.names.map((name, action) => ({ label: name, stroke: colourOf(action), dash: DASHES[Math.floor(action / COLOURS)], points: { show: false } }))],
      hooks: { drawClear: [u => density || this.drawWeights(u)], draw: [u => this.drawMarks(u, density)] },
    }, [[0, 1], ...pane.names.map(() => [0, 0])], this.element);
  }

  // The weight of each quantile fraction under the risk measure, along the bottom.
  drawWeights(u) {
    const weights = this.pane && this.pane.weights;
    if (!weights) return;
    const { ctx, bbox } = u;
    const top = Math.max(...weights), tallest = 0.9 * bbox.height;
    ctx.save();
    ctx.fillStyle = shade("--weight");
    ctx.beginPath();
    const floor = bbox.top + bbox.height;
    ctx.moveTo(u.valToPos(0, "x", true), floor);
    weights.forEach((weight, i) => {
      const y = floor - tallest * Math.min(1, weight / Math.max(top, 3));
      ctx.lineTo(u.valToPos(i / weights.length, "x", true), y);
      ctx.lineTo(u.valToPos((i + 1) / weights.length, "x", true), y);
    });
    ctx.lineTo(u.valToPos(1, "x", true), floor);
    ctx.fill();
    ctx.restore();
  }

  drawMarks(u, density) {
    if (!this.pane) return;
    const { means, values, chosen, names } = this.pane;
    u.ctx.save();
    const order = names.map((_, action) => action).sort((a, b) => (a === chosen) - (b === chosen));
    for (const action of order) {
      const strong = action === chosen, colour = colourOf(action);
      if (density) {
        const y = u.valToPos(0, "y", true) + 8 * devicePixelRatio;
        mark(u.ctx, "mean", u.valToPos(means[action], "x", true), y, colour, strong);
        mark(u.ctx, "value", u.valToPos(values[action], "x", true), y + 13 * devicePixelRatio, colour, strong);
      } else {
        mark(u.ctx, "mean", u.valToPos(1.04, "x", true), u.valToPos(means[action], "y", true), colour, strong);
        mark(u.ctx, "value", u.valToPos(1.095, "x", true), u.valToPos(values[action], "y", true), colour, strong);
      }
    }
    u.ctx.restore();
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
    this.end = Math.max(20, strip.begin + strip.predicted.length);
    this.begin = strip.begin;
    const rewards = strip.rewards.map(reward => reward === 0 ? null : reward);
    this.plot.setData([steps, rewards, strip.predicted, strip.actual]);
  }

  build(kind) {
    this.built = kind;
    if (this.plot) this.plot.destroy();
    const ink = shade("--ink"), quiet = shade("--quiet"), actual = shade("--actual");
    this.plot = new uPlot({
      width: this.element.clientWidth, height: 140, legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, range: () => [this.begin ?? 0, this.end ?? 20] }, y: { range: () => [this.low ?? 0, this.high ?? 1] } },
      axes: [axis("step of the episode"), axis("return", { size: 48 })],
      series: [{}, { stroke: quiet, fill: quiet, paths: uPlot.paths.bars({ size: [0.6, 6], align: 1 }), points: { show: false } },
        { stroke: ink, width: 1.5, points: { show: false } },
        { stroke: actual, width: 2, dash: [5, 4], points: { show: false } }],
    }, [[0], [null], [null], [null]], this.element);
  }
}
