"use strict";
// The page: controls ask, the server answers with all that is on the screen.

const by = id => document.getElementById(id);
let socket, hello, now, panes = [], shown = [];

function ask(message) {
  if (message.do && message.do !== "runs") tell("");
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function tell(text) {
  by("message").textContent = text;
  by("message").hidden = !text;
}

function connect() {
  socket = new WebSocket(`ws://${location.host}/live`);
  socket.onopen = () => tell("");
  socket.onclose = () => { if (by("message").hidden) tell("The connection is lost. If the server has ended, start it again; then load this page again."); };
  socket.onmessage = event => {
    const message = JSON.parse(event.data);
    if (message.error) { tell(message.error); return; }
    if (message.hello) { greet(message.hello); return; }
    now = message;
    requestAnimationFrame(() => {
      show(message);
      ask({ seen: message.sent });
    });
  };
}

function greet(content) {
  hello = content;
  document.title = `${hello.env} · Quantail`;
  by("env").textContent = hello.env;
  by("speed").max = hello.speeds.length - 1;
}

function show(message) {
  rated();
  by("play").textContent = message.playing ? "pause" : "play";
  by("speed").value = hello.speeds.indexOf(message.speed);
  if (document.activeElement !== by("seed")) by("seed").value = message.seed;
  by("quantiles").setAttribute("aria-pressed", !message.density);
  by("density").setAttribute("aria-pressed", message.density);
  by("compare").setAttribute("aria-pressed", message.panes.length === 2);
  while (panes.length > message.panes.length) panes.pop().root.remove();
  if (panes.length < message.panes.length) {
    while (panes.length < message.panes.length) panes.push(new Pane(panes.length));
  }
  by("panes").className = panes.length === 2 ? "two" : "";
  message.panes.forEach((pane, index) => panes[index].show(pane, message.density));
}

// Pictures a second, over the last two seconds.
function rated() {
  const time = performance.now();
  shown.push(time);
  while (shown[0] < time - 2000) shown.shift();
  const rate = shown.length > 1 ? 1000 * (shown.length - 1) / (time - shown[0]) : 0;
  document.body.dataset.rate = rate.toFixed(1);
  by("rate").textContent = now.playing ? `${now.speed}/s, now ${rate.toFixed(0)}` : `${now.speed}/s, paused`;
}

function option(value, text) {
  const made = document.createElement("option");
  made.value = value;
  made.textContent = text;
  return made;
}

// With the digits by which these numbers differ, two at least.
function shortly(value, among) {
  const apart = Math.max(...among) - Math.min(...among), size = apart || Math.abs(value) || 1;
  return value.toFixed(Math.min(8, Math.max(2, 1 - Math.floor(Math.log10(size)))));
}

class Pane {
  constructor(index) {
    this.index = index;
    this.root = by("pane").content.firstElementChild.cloneNode(true);
    by("panes").append(this.root);
    const part = name => this.root.querySelector(name);
    this.part = part;
    this.law = new LawPlot(part(".law .plot"), part(".law figcaption"));
    this.strip = new StripPlot(part(".strip .plot"), part(".strip figcaption"));
    part(".run").append(...hello.runs.map((run, number) => option(number, run.name)));
    part(".run-choice").hidden = hello.runs.length < 2;
    part(".measure").append(...hello.measures.map(measure => option(measure.name, measure.name)));
    part(".controls").onsubmit = event => event.preventDefault();
    part(".checkpoint").onfocus = () => ask({ do: "runs" });
    part(".run").onchange = () => ask({ do: "agent", pane: index, run: Number(part(".run").value), checkpoint: null });
    part(".checkpoint").onchange = () => ask({ do: "agent", pane: index, run: this.now.run, checkpoint: part(".checkpoint").value });
    part(".measure").onchange = () => {
      const name = part(".measure").value, knob = this.knob(name);
      ask({ do: "risk", pane: index, name, eta: knob ? knob.start : null });
    };
    part(".eta").oninput = () => this.turn(Number(part(".eta").value));
  }

  knob(name) { return hello.measures.find(measure => measure.name === name).knob; }

  turn(eta) { ask({ do: "risk", pane: this.index, name: this.now.measure, eta }); }

  // From the keyboard: a twentieth of the way.
  nudge(way) {
    const measure = this.now.measure === "neutral" ? "cvar" : this.now.measure, knob = this.knob(measure);
    const steps = Math.max(1, Math.round((knob.most - knob.least) / knob.step / 20));
    const from = this.now.measure === "neutral" ? knob.most : this.now.eta;
    const eta = Math.min(knob.most, Math.max(knob.least, from + way * steps * knob.step));
    ask({ do: "risk", pane: this.index, name: measure, eta: Number(eta.toFixed(6)) });
  }

  show(pane, density) {
    this.now = pane;
    const { root, part } = this;
    root.dataset.chosen = pane.names[pane.chosen];
    root.dataset.risk = pane.risk;
    this.showControls(pane);
    if (pane.picture) part(".picture").src = pane.picture;
    part(".picture").hidden = !pane.picture;
    part(".no-picture").hidden = Boolean(pane.picture);
    const end = pane.over ? `, ${pane.over}` : "";
    part(".game .where").textContent = `step ${pane.steps}, score ${pane.score}${end}`;
    part(".game .legend").textContent = hello.legend;
    this.showActions(pane);
    this.law.show(pane, hello.taus, density);
    this.strip.show(pane.strip);
  }

  showControls(pane) {
    const { part } = this, run = hello.runs[pane.run], knob = this.knob(pane.measure);
    part(".run").value = pane.run;
    const listed = run.checkpoints.map(one => one.name).join();
    if (part(".checkpoint").dataset.listed !== listed) {
      part(".checkpoint").dataset.listed = listed;
      part(".checkpoint").replaceChildren(...run.checkpoints.map(one => option(one.name, one.label)));
    }
    part(".checkpoint").value = pane.checkpoint;
    if (part(".checkpoint").selectedIndex < 0) { // not kept any more
      part(".checkpoint").prepend(option(pane.checkpoint, `${Number(pane.checkpoint).toLocaleString("en")} steps, no longer kept`));
      part(".checkpoint").value = pane.checkpoint;
    }
    part(".measure").value = pane.measure;
    part(".measure").title = hello.measures.find(measure => measure.name === pane.measure).summary;
    const slider = part(".eta");
    slider.hidden = !knob;
    if (knob) {
      [slider.min, slider.max, slider.step] = [knob.least, knob.most, knob.step];
      if (!slider.matches(":active")) slider.value = pane.eta;
    }
    part(".left").textContent = knob ? knob.left : "";
    part(".right").textContent = knob ? knob.right : "";
    part(".eta-shown").textContent = run.mean_only && pane.risk !== "neutral"
      ? `${pane.risk} (${run.agent} knows the mean alone)` : pane.risk;
  }

  showActions(pane) {
    const list = this.part(".actions"), many = pane.names.length > 9;
    if (list.childElementCount !== pane.names.length + 1) {
      list.className = many ? "actions many" : "actions";
      const row = (cells, className) => {
        const made = document.createElement("li");
        made.className = className;
        made.append(...cells.map(([name, text]) => Object.assign(document.createElement("span"), { className: name, textContent: text })));
        return made;
      };
      list.replaceChildren(row([["", ""], ["", "action"], ["number", "○ mean"], ["number", "◆ value"]], "head"),
        ...pane.names.map((name, action) => {
          const made = row([["swatch", ""], ["", name], ["number mean", ""], ["number beta", ""]], "");
          made.style.setProperty("--colour", `var(--a${action % COLOURS})`);
          return made;
        }));
    }
    pane.names.forEach((_, action) => {
      const row = list.children[action + 1];
      row.classList.toggle("chosen", action === pane.chosen);
      row.setAttribute("aria-current", action === pane.chosen);
      row.querySelector(".mean").textContent = shortly(pane.means[action], pane.means);
      row.querySelector(".beta").textContent = shortly(pane.values[action], pane.values);
    });
  }

  remake() { this.law.made = this.strip.made = ""; }
}

by("play").onclick = () => ask({ do: "play", on: !now.playing });
by("step").onclick = () => ask({ do: "step" });
by("restart").onclick = by("seed").onchange = () => {
  ask({ do: "restart", seed: by("seed").value === "" ? now.seed : Number(by("seed").value) });
};
by("speed").oninput = () => ask({ do: "speed", speed: hello.speeds[by("speed").value] });
by("quantiles").onclick = () => ask({ do: "view", density: false });
by("density").onclick = () => ask({ do: "view", density: true });
by("compare").onclick = () => ask({ do: "compare", on: now.panes.length === 1 });
by("help").onclick = () => {
  by("keys").hidden = !by("keys").hidden;
  by("help").setAttribute("aria-expanded", !by("keys").hidden);
};

function faster(way) {
  const index = Math.min(hello.speeds.length - 1, Math.max(0, hello.speeds.indexOf(now.speed) + way));
  ask({ do: "speed", speed: hello.speeds[index] });
}

const KEYS = {
  " ": () => by("play").click(),
  ArrowRight: () => by("step").click(),
  r: () => by("restart").click(),
  n: () => ask({ do: "restart", seed: now.seed + 1 }),
  "-": () => faster(-1),
  "+": () => faster(1),
  "=": () => faster(1),
  d: () => ask({ do: "view", density: !now.density }),
  c: () => by("compare").click(),
  "[": () => panes[0].nudge(-1),
  "]": () => panes[0].nudge(1),
  "0": () => ask({ do: "risk", pane: 0, name: "neutral", eta: null }),
  "?": () => by("help").click(),
};

addEventListener("keydown", event => {
  const inside = event.target.matches("input, select, button");
  const own = event.target.matches("input[type=number], select") || (event.target.matches("input[type=range]") && event.key.startsWith("Arrow"));
  if (!now || own || event.ctrlKey || event.metaKey || event.altKey || (inside && event.key === " " && event.target.matches("button"))) return;
  const act = KEYS[event.key] || KEYS[event.key.toLowerCase()];
  if (act) { event.preventDefault(); act(); }
});

function redraw() {
  panes.forEach(pane => pane.remake());
  if (now) now.panes.forEach((pane, index) => panes[index] && panes[index].show(pane, now.density));
}
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
connect();
