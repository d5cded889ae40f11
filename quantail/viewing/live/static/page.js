"use strict";
// The page: controls send commands, and the server answers with everything that is shown.

const byId = id => document.getElementById(id);
let socket, hello, now, panes = [], frameTimes = [];

function send(message) {
  if (message.do && message.do !== "runs") showMessage("");
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function showMessage(text) {
  byId("message").textContent = text;
  byId("message").hidden = !text;
}

function connect() {
  socket = new WebSocket(`ws://${location.host}/live`);
  socket.onopen = () => showMessage("");
  socket.onclose = () => { if (byId("message").hidden) showMessage("The connection is lost. If the server has stopped, start it again; then reload this page."); };
  socket.onmessage = event => {
    const message = JSON.parse(event.data);
    if (message.error) {
      showMessage(message.error);
      panes.forEach(pane => pane.asked = null);
      return;
    }
    if (message.hello) { initialise(message.hello); return; }
    const offer = hello.offer;
    requestAnimationFrame(() => {
      if (offer === hello.offer) {
        now = message;
        show(message);
      }
      send({ seen: message.sent });
    });
  };
}

function initialise(content) {
  if (hello && hello.offer !== content.offer) while (panes.length) panes.pop().root.remove();
  hello = content;
  document.title = `${hello.env} · Quantail`;
  byId("env").textContent = hello.env;
  byId("speed").max = hello.speeds.length - 1;
  byId("note").textContent = hello.note;
  byId("note").hidden = !hello.note;
  byId("offers").hidden = hello.offers.length < 2;
  byId("offers").replaceChildren(...hello.offers.map((title, offer) => {
    const button = document.createElement("button");
    button.textContent = title;
    button.setAttribute("aria-pressed", offer === hello.offer);
    button.onclick = () => send({ do: "show", offer });
    return button;
  }));
}

function show(message) {
  updateRate();
  byId("play").textContent = message.playing ? "pause" : "play";
  byId("speed").value = hello.speeds.indexOf(message.speed);
  if (document.activeElement !== byId("seed")) byId("seed").value = message.seed;
  byId("quantiles").setAttribute("aria-pressed", !message.density);
  byId("density").setAttribute("aria-pressed", message.density);
  byId("compare").setAttribute("aria-pressed", message.panes.length === 2);
  while (panes.length > message.panes.length) panes.pop().root.remove();
  if (panes.length < message.panes.length) {
    while (panes.length < message.panes.length) panes.push(new Pane(panes.length));
  }
  byId("panes").className = panes.length === 2 ? "two" : "";
  message.panes.forEach((pane, index) => panes[index].show(pane, message.density));
}

// Updates per second, over the last two seconds.
function updateRate() {
  const time = performance.now();
  frameTimes.push(time);
  while (frameTimes[0] < time - 2000) frameTimes.shift();
  const rate = frameTimes.length > 1 ? 1000 * (frameTimes.length - 1) / (time - frameTimes[0]) : 0;
  document.body.dataset.rate = rate.toFixed(1);
  byId("rate").textContent = now.playing ? `${now.speed}/s, actual ${rate.toFixed(0)}` : `${now.speed}/s, paused`;
}

function option(value, text) {
  const element = document.createElement("option");
  element.value = value;
  element.textContent = text;
  return element;
}

// Format a number with enough digits to distinguish it from the others, and at least two.
function format(value, all) {
  const range = Math.max(...all) - Math.min(...all), size = range || Math.abs(value) || 1;
  return value.toFixed(Math.min(8, Math.max(2, 1 - Math.floor(Math.log10(size)))));
}

class Pane {
  constructor(index) {
    this.index = index;
    this.root = byId("pane").content.firstElementChild.cloneNode(true);
    byId("panes").append(this.root);
    const part = name => this.root.querySelector(name);
    this.part = part;
    this.distribution = new DistributionPlot(part(".distribution .plot"), part(".distribution figcaption"));
    this.weights = new WeightPlot(part(".weights .plot"), part(".weights figcaption"));
    this.strip = new StripPlot(part(".strip .plot"), part(".strip figcaption"));
    part(".run").append(...hello.runs.map((run, number) => option(number, run.name)));
    part(".run-choice").hidden = hello.runs.length < 2;
    part(".measure").append(...hello.measures.map(measure => option(measure.name, measure.name)));
    part(".controls").onsubmit = event => event.preventDefault();
    part(".checkpoint").onfocus = () => send({ do: "runs" });
    part(".run").onchange = () => {
      this.asked = null;
      send({ do: "agent", pane: index, run: Number(part(".run").value), checkpoint: null });
    };
    part(".checkpoint").onchange = () => {
      this.asked = null;
      send({ do: "agent", pane: index, run: this.now.run, checkpoint: part(".checkpoint").value });
    };
    part(".earlier").onclick = () => this.moveCheckpoint(-1);
    part(".later").onclick = () => this.moveCheckpoint(1);
    part(".progress").oninput = () => this.setCheckpoint(Number(part(".progress").value));
    part(".measure").onchange = () => {
      const name = part(".measure").value, range = this.range(name);
      send({ do: "risk", pane: index, name, eta: range ? range.start : null });
    };
    part(".eta").oninput = () => this.setRisk(Number(part(".eta").value));
  }

  range(name) { return hello.measures.find(measure => measure.name === name).slider; }

  // Names of the checkpoints, oldest first.
  checkpoints() { return hello.runs[this.now.run].checkpoints.map(one => one.name).reverse(); }

  setCheckpoint(index) {
    this.asked = this.checkpoints()[index]; // which the server has not loaded yet
    send({ do: "agent", pane: this.index, run: this.now.run, checkpoint: this.asked });
  }

  moveCheckpoint(change) {
    const index = this.checkpoints().indexOf(this.asked || this.now.checkpoint) + change;
    if (index >= 0 && index < this.checkpoints().length) this.setCheckpoint(index);
  }

  setRisk(eta) { send({ do: "risk", pane: this.index, name: this.now.measure, eta }); }

  // Keyboard control: move η by a twentieth of its range.
  nudge(direction) {
    const measure = this.now.measure === "neutral" ? "cvar" : this.now.measure, range = this.range(measure);
    const steps = Math.max(1, Math.round((range.most - range.least) / range.step / 20));
    const from = this.now.measure === "neutral" ? range.most : this.now.eta;
    const eta = Math.min(range.most, Math.max(range.least, from + direction * steps * range.step));
    send({ do: "risk", pane: this.index, name: measure, eta: Number(eta.toFixed(6)) });
  }

  show(pane, density) {
    this.now = pane;
    if (pane.checkpoint === this.asked) this.asked = null;
    const { root, part } = this;
    root.dataset.chosen = pane.names[pane.chosen];
    root.dataset.risk = pane.risk;
    this.showControls(pane);
    if (pane.picture) part(".picture").src = pane.picture;
    part(".picture").hidden = !pane.picture;
    part(".no-picture").hidden = Boolean(pane.picture);
    const end = pane.over ? `, ${pane.over}` : "";
    part(".game .status").textContent = `step ${pane.steps}, score ${pane.score}${end}`;
    part(".game .legend").textContent = hello.legend;
    this.showActions(pane);
    this.distribution.show(pane, hello.taus, density);
    this.weights.end = density ? MARKS_END : this.distribution.end;
    this.weights.show(pane);
    this.strip.show(pane.strip);
  }

  showControls(pane) {
    const { part } = this, run = hello.runs[pane.run], range = this.range(pane.measure);
    part(".run").value = pane.run;
    const listed = run.checkpoints.map(one => one.name).join();
    if (part(".checkpoint").dataset.listed !== listed) {
      part(".checkpoint").dataset.listed = listed;
      part(".checkpoint").replaceChildren(...run.checkpoints.map(one => option(one.name, one.label)));
    }
    part(".checkpoint").value = pane.checkpoint;
    if (part(".checkpoint").selectedIndex < 0) { // it no longer exists
      part(".checkpoint").prepend(option(pane.checkpoint, `${Number(pane.checkpoint).toLocaleString("en")} steps, no longer on disk`));
      part(".checkpoint").value = pane.checkpoint;
    }
    const names = this.checkpoints(), index = names.indexOf(pane.checkpoint);
    part(".training").hidden = names.length < 2 && index >= 0;
    part(".progress").max = names.length - 1;
    if (!part(".progress").matches(":active")) part(".progress").value = index;
    part(".earlier").disabled = index <= 0;
    part(".later").disabled = index === names.length - 1;
    part(".measure").value = pane.measure;
    part(".measure").title = hello.measures.find(measure => measure.name === pane.measure).summary;
    const slider = part(".eta");
    slider.hidden = !range;
    if (range) {
      [slider.min, slider.max, slider.step] = [range.least, range.most, range.step];
      if (!slider.matches(":active")) slider.value = pane.eta;
    }
    part(".left").textContent = range ? range.left : "";
    part(".right").textContent = range ? range.right : "";
    part(".eta-shown").textContent = run.mean_only && pane.risk !== "neutral"
      ? `${pane.risk} (${run.agent} learns only the mean)` : pane.risk;
  }

  showActions(pane) {
    const list = this.part(".actions"), many = pane.names.length > 9;
    if (list.childElementCount !== pane.names.length + 1) {
      list.className = many ? "actions many" : "actions";
      const row = (cells, className) => {
        const element = document.createElement("li");
        element.className = className;
        element.append(...cells.map(([name, text]) => Object.assign(document.createElement("span"), { className: name, textContent: text })));
        return element;
      };
      list.replaceChildren(row([["", ""], ["", "action"], ["number", "○ mean"], ["number", "◆ value"]], "head"),
        ...pane.names.map((name, action) => {
          const element = row([[`swatch dash${Math.floor(action / COLOURS) % DASHES.length}`, ""], ["", name], ["number mean", ""], ["number beta", ""]], "");
          element.style.setProperty("--colour", `var(--a${action % COLOURS})`);
          return element;
        }));
    }
    pane.names.forEach((_, action) => {
      const row = list.children[action + 1];
      row.classList.toggle("chosen", action === pane.chosen);
      row.setAttribute("aria-current", action === pane.chosen);
      row.classList.toggle("forbidden", !isAllowed(pane, action));
      row.title = isAllowed(pane, action) ? "" : "the environment does not allow this action here";
      row.querySelector(".mean").textContent = format(pane.means[action], pane.means);
      row.querySelector(".beta").textContent = format(pane.values[action], pane.values);
    });
  }

  invalidate() { this.distribution.built = this.weights.built = this.strip.built = ""; }
}

byId("play").onclick = () => send({ do: "play", on: !now.playing });
byId("step").onclick = () => send({ do: "step" });
byId("restart").onclick = byId("seed").onchange = () => {
  send({ do: "restart", seed: byId("seed").value === "" ? now.seed : Number(byId("seed").value) });
};
byId("speed").oninput = () => send({ do: "speed", speed: hello.speeds[byId("speed").value] });
byId("quantiles").onclick = () => send({ do: "view", density: false });
byId("density").onclick = () => send({ do: "view", density: true });
byId("compare").onclick = () => send({ do: "compare", on: now.panes.length === 1 });
byId("help").onclick = () => {
  byId("keys").hidden = !byId("keys").hidden;
  byId("help").setAttribute("aria-expanded", !byId("keys").hidden);
};

function changeSpeed(change) {
  const index = Math.min(hello.speeds.length - 1, Math.max(0, hello.speeds.indexOf(now.speed) + change));
  send({ do: "speed", speed: hello.speeds[index] });
}

const KEYS = {
  " ": () => byId("play").click(),
  ArrowRight: () => byId("step").click(),
  r: () => byId("restart").click(),
  n: () => send({ do: "next" }),
  "-": () => changeSpeed(-1),
  "+": () => changeSpeed(1),
  "=": () => changeSpeed(1),
  d: () => send({ do: "view", density: !now.density }),
  c: () => byId("compare").click(),
  "[": () => panes[0].nudge(-1),
  "]": () => panes[0].nudge(1),
  "0": () => send({ do: "risk", pane: 0, name: "neutral", eta: null }),
  ",": () => panes.forEach(pane => pane.moveCheckpoint(-1)),
  ".": () => panes.forEach(pane => pane.moveCheckpoint(1)),
  "?": () => byId("help").click(),
};

addEventListener("keydown", event => {
  const inside = event.target.matches("input, select, button");
  const own = event.target.matches("input[type=number], select") || (event.target.matches("input[type=range]") && event.key.startsWith("Arrow"));
  if (!now || own || event.ctrlKey || event.metaKey || event.altKey || (inside && event.key === " " && event.target.matches("button"))) return;
  const act = KEYS[event.key] || KEYS[event.key.toLowerCase()];
  if (act) { event.preventDefault(); act(); }
});

function redraw() {
  panes.forEach(pane => pane.invalidate());
  if (now) now.panes.forEach((pane, index) => panes[index] && panes[index].show(pane, now.density));
}
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
connect();
