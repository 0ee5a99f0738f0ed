"use strict";

/* The cost model, as in initadvisor/decide/whatif.py: cost_ms, cost_estimate, rank_settings.
   A test holds one against the other. Figures are {mean, low, high}. */

function readMs(size, speed) {
  return 1000 * size / speed;
}

function waitedMs(unpack, conditions) {
  return Math.max(conditions.shadow_ms, conditions.cpu_scale * unpack);
}

function costMs(choice, conditions) {
  return readMs(choice.size_mb.mean, conditions.read_mb_s)
    + waitedMs(choice.unpack_ms.mean, conditions)
    + conditions.cpu_scale * choice.extra_ms;
}

function costEstimate(choice, conditions, speed) {
  const size = choice.size_mb, unpack = choice.unpack_ms;
  const mean = costMs(choice, conditions);
  const read = readMs(size.mean, speed.mean), waited = waitedMs(unpack.mean, conditions);
  const less = Math.hypot(
    read - readMs(size.low, speed.mean),
    read - readMs(size.mean, speed.high),
    waited - waitedMs(unpack.low, conditions));
  const more = Math.hypot(
    readMs(size.high, speed.mean) - read,
    readMs(size.mean, speed.low) - read,
    waitedMs(unpack.high, conditions) - waited);
  return {mean, low: mean - less, high: mean + more};
}

function rankSettings(choices, conditions, speed, rule) {
  const score = (choice) => rule.by_size ? choice.size_mb.mean : costMs(choice, conditions);
  const scores = choices.map(score);
  const best = scores.indexOf(Math.min(...scores));
  const today = choices.findIndex((choice) => choice.setting === rule.today);
  const counts = today < 0 || rule.by_size ? best : today;
  const relative = scores[best]
    + rule.tolerance_fraction * score({...choices[counts], extra_ms: 0});
  const limit = rule.by_size ? relative : Math.max(scores[best] + rule.tolerance_ms, relative);
  return choices.map((choice, number) => ({
    setting: choice.setting,
    cost_ms: costEstimate(choice, conditions, speed),
    best: number === best,
    as_good: scores[number] <= limit,
  }));
}

/* What is compared, and a bar's parts: initadvisor/report/bars.py. */

function comparedSettings(model, boots, countBuilds) {
  return model.choices
    .map((choice, number) => ({...choice, extra_ms: 0, build_cpu_s: model.build_cpu_s[number]}))
    .filter((choice) => !countBuilds || choice.build_cpu_s !== null)
    .map((choice) => countBuilds
      ? {...choice, extra_ms: choice.build_cpu_s * 1000 / boots} : choice);
}

function partsOf(choice, conditions) {
  const unpack = conditions.cpu_scale * choice.unpack_ms.mean;
  const hidden = Math.min(unpack, conditions.shadow_ms);
  return {
    read: readMs(choice.size_mb.mean, conditions.read_mb_s),
    hidden,
    waited: unpack - hidden,
    other: conditions.shadow_ms - hidden,
    build: conditions.cpu_scale * choice.extra_ms,
  };
}

function reachMs(costs) {
  return 1.08 * Math.min(Math.max(...costs), 3 * Math.min(...costs));
}

/* Figures in words: initadvisor/report/figures.py. */

function inMs(value) {
  const size = Math.abs(value);
  const text = size >= 10000 ? `${(size / 1000).toFixed(1)} s` : `${Math.round(size)} ms`;
  return signed(text, value);
}

function signed(text, value) {
  return value < 0 && parseFloat(text) ? `\u2212${text}` : text;
}

function intervalMs(figure) {
  const {low, high} = figure;
  if (Math.max(Math.abs(low), Math.abs(high)) < 10000) {
    return `${inMs(low).slice(0, -3)} to ${inMs(high)}`;
  }
  const inS = (value) => signed((Math.abs(value) / 1000).toFixed(1), value);
  return `${inS(low)} to ${inS(high)} s`;
}

function threeDigits(value) {
  return value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

/* The sliders: each stands at a part, 0 to 1, of its range. */

const SLIDERS = {
  speed: {low: 1, high: 8000, words: (value) => `${threeDigits(value)} MB/s`},
  cpu: {
    low: 0.125, high: 8,
    words: (value) => value === 1 ? "as long as here" : `${threeDigits(value)} \u00d7 as long`,
  },
  overlap: {low: 0, high: 2000, words: inMs},
  boots: {low: 1, high: 1000, words: (value) => `${threeDigits(value)} boots`},
};

function valueAt(range, part) {
  return range.low > 0
    ? range.low * Math.pow(range.high / range.low, part)
    : range.high * part * part;
}

function partAt(range, value) {
  const part = range.low > 0
    ? Math.log(value / range.low) / Math.log(range.high / range.low)
    : Math.sqrt(value / range.high);
  return Math.min(Math.max(part, 0), 1);
}

function svgPart(name, attributes) {
  const found = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [attribute, value] of Object.entries(attributes)) {
    found.setAttribute(attribute, value);
  }
  return found;
}

class WhatIf {
  constructor(model, published) {
    this.own = model;
    this.published = published;
    this.form = document.getElementById("controls");
    this.why = document.getElementById("why");
    this.form.addEventListener("input", () => {
      this.why.hidden = true;
    });
    this.ownRows = [...document.querySelectorAll(".bars tbody tr")];
    this.ownRows.forEach((row) => this.prepare(row));
    for (const name of Object.keys(SLIDERS)) {
      this.form.elements[name].addEventListener("input", (event) => {
        const value = valueAt(SLIDERS[name], Number(event.target.value));
        this.values[name] = value;
        if (name === "speed") {
          this.speed = {mean: value, low: value, high: value};
        }
        this.draw();
      });
    }
    this.form.elements.count.addEventListener("change", () => this.draw());
    this.form.elements.table.addEventListener("change", (event) => {
      const table = this.published[event.target.value];
      if (table) {
        this.showTable(table);
      } else {
        this.reset();
      }
      this.draw();
    });
    for (const preset of this.form.querySelectorAll("button")) {
      preset.addEventListener("click", () => {
        const value = Number(preset.dataset.speed);
        if (preset.dataset.speed === undefined) {
          this.reset();
        } else {
          this.why.hidden = true;
          this.values.speed = value;
          this.speed = {mean: value, low: value, high: value};
        }
        this.draw();
      });
    }
    this.reset();
    this.draw();
    this.form.hidden = false;
  }

  reset() {
    const model = this.own, overlap = model.overlap_ms;
    this.show(model, this.ownRows);
    this.form.elements.table.value = "";
    this.speed = model.loader_mb_s;
    this.values = {
      speed: model.loader_mb_s.mean,
      cpu: 1,
      overlap: overlap.median === null ? overlap.mean : overlap.median,
      boots: model.boots_per_upgrade,
    };
    this.form.elements.count.checked = model.count_builds;
    this.why.hidden = false;
  }

  show(model, rows) {
    this.model = model;
    this.rows = new Map(rows.map((row) => [row.dataset.setting, row]));
    document.querySelector(".bars tbody").replaceChildren(...rows);
  }

  /* What others measured: nobody knows their builds, and their boots waited for all of it. */
  showTable(table) {
    const unknown = table.choices.map(() => null);
    const rule = {...this.own.rule, today: null, by_size: false};
    const {choices, doubts} = table;
    const model = {...this.own, choices, doubts, build_cpu_s: unknown, rule};
    this.show(model, choices.map((choice) => this.rowOf(choice.setting)));
    this.form.elements.count.checked = false;
    Object.assign(this.values, {cpu: 1, overlap: 0});
  }

  rowOf(setting) {
    const row = document.createElement("tr"), name = document.createElement("th");
    const picture = document.createElement("td"), cost = document.createElement("td");
    const svg = svgPart("svg", {role: "img", height: 28});
    row.dataset.setting = setting;
    row.tabIndex = 0;
    name.scope = "row";
    name.textContent = setting;
    picture.className = "picture";
    cost.className = "cost";
    svg.append(svgPart("title", {}));
    picture.append(svg);
    row.append(name, picture, cost);
    this.prepare(row);
    return row;
  }

  prepare(row) {
    const svg = row.querySelector("svg");
    for (const old of svg.querySelectorAll("rect, line")) {
      old.remove();
    }
    for (const name of ["read", "hidden", "waited", "other", "build"]) {
      svg.append(svgPart("rect", {class: name, y: 4, height: 16}));
    }
    svg.append(svgPart("line", {class: "range", y1: 25, y2: 25}));
    const told = () => {
      document.getElementById("detail").textContent = row.dataset.told;
    };
    row.addEventListener("pointerenter", told);
    row.addEventListener("focusin", told);
  }

  draw() {
    const values = this.values, count = this.form.elements.count.checked;
    for (const [name, range] of Object.entries(SLIDERS)) {
      const slider = this.form.elements[name], words = range.words(values[name]);
      slider.value = partAt(range, values[name]);
      slider.setAttribute("aria-valuetext", words);
      document.getElementById(`${name}-value`).textContent = words;
    }
    this.form.elements.boots.disabled = !count;
    this.form.elements.count.disabled = this.model !== this.own;
    const conditions = {
      read_mb_s: values.speed, cpu_scale: values.cpu, shadow_ms: values.overlap,
    };
    const compared = comparedSettings(this.model, values.boots, count);
    const known = compared.length ? compared : comparedSettings(this.model, values.boots, false);
    const ranks = rankSettings(known, conditions, this.speed, this.model.rule);
    const reach = reachMs(ranks.map((rank) => rank.cost_ms.mean));
    for (const [setting, row] of this.rows) {
      const at = known.findIndex((choice) => choice.setting === setting);
      row.classList.toggle("unfit", at < 0);
      row.classList.toggle("best", at >= 0 && ranks[at].best);
      if (at < 0) {
        row.querySelector(".cost").textContent = "build not known";
        row.dataset.told = `${setting}: what its build takes is not known`;
      } else {
        this.drawRow(row, known[at], ranks[at], partsOf(known[at], conditions), reach);
      }
    }
    this.say(ranks);
  }

  drawRow(row, choice, rank, parts, reach) {
    const svg = row.querySelector("svg");
    const percent = (ms) => `${(100 * Math.min(Math.max(ms, 0), reach) / reach).toFixed(2)}%`;
    let start = 0;
    for (const [name, length] of Object.entries(parts)) {
      const rect = svg.querySelector(`.${name}`), end = Math.min(start + length, reach);
      rect.setAttribute("x", percent(start));
      rect.setAttribute("width", percent(Math.max(end - start, 0)));
      start += length;
    }
    const range = svg.querySelector("line");
    range.setAttribute("x1", percent(rank.cost_ms.low));
    range.setAttribute("x2", percent(rank.cost_ms.high));
    const build = parts.build ? `, its share of the build ${inMs(parts.build)}` : "";
    const told = `reading ${inMs(parts.read)}, unpacking ${inMs(parts.hidden + parts.waited)}, `
      + `of which ${inMs(parts.hidden)} hidden${build}`;
    svg.setAttribute("aria-label", told);
    svg.querySelector("title").textContent = told;
    row.dataset.told = `${choice.setting}: ${told}. `
      + `Size: ${choice.size_mb.source}. Unpacking: ${choice.unpack_ms.source}. `
      + `Loader: ${this.speed.source || "as chosen here"}.`;
    const interval = document.createElement("span");
    interval.className = "interval";
    interval.textContent = intervalMs(rank.cost_ms);
    row.querySelector(".cost").replaceChildren(`${inMs(rank.cost_ms.mean)} `, interval);
  }

  say(ranks) {
    const best = ranks.find((rank) => rank.best);
    const others = ranks.filter((rank) => rank.as_good && !rank.best);
    const today = ranks.find((rank) => rank.setting === this.model.rule.today);
    const name = document.createElement("strong");
    name.id = "winner";
    name.textContent = best.setting;
    const words = [this.model.rule.by_size ? " is the smallest; it costs a boot "
      : " costs a boot least: ", `${inMs(best.cost_ms.mean)}.`];
    if (today && today !== best) {
      const more = today.cost_ms.mean - best.cost_ms.mean;
      words.push(` Today's ${today.setting} costs ${Math.round(more) === 0 ? "as much"
        : `${inMs(Math.abs(more))} ${more < 0 ? "less" : "more"}`}.`);
    }
    document.getElementById("now").textContent = best.setting + words.join("");
    if (others.length) {
      words.push(` As good, by the tolerance: ${others.map((rank) => rank.setting).join(", ")}.`);
    }
    if (this.model.doubts && this.model.doubts.length) {
      words.push(` Its figures do not add up: ${this.model.doubts.join("; ")}.`);
    }
    document.getElementById("sentence").replaceChildren(name, words.join(""));
  }
}

/* The time line of one boot: zoomed and moved by buttons, wheel with Ctrl, and dragging. */

const LAST_TICK = 0.86;

function ticksBetween(low, high) {
  const rough = (high - low) / 6, power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((factor) => power * factor).find((one) => one >= rough);
  const last = low + LAST_TICK * (high - low), found = [];
  for (let number = Math.ceil(low / step); step * number <= last; number += 1) {
    found.push(step * number);
  }
  return found;
}

class TimeLine {
  constructor(stages) {
    this.stages = stages;
    this.place = document.getElementById("time-line");
    this.axis = this.place.querySelector(".axis");
    this.low = Math.min(...stages.map((stage) => stage.from_ms));
    this.high = Math.max(...stages.map((stage) => stage.to_ms));
    this.all();
    const bar = document.getElementById("zoom");
    const moves = {
      in: () => this.zoom(0.5, 0.5), out: () => this.zoom(2, 0.5),
      earlier: () => this.move(-0.25), later: () => this.move(0.25),
      unpacking: () => this.unpacking(), all: () => this.all(),
    };
    for (const button of bar.querySelectorAll("button")) {
      button.addEventListener("click", () => {
        moves[button.dataset.zoom]();
        this.draw();
      });
    }
    this.place.addEventListener("wheel", (event) => {
      if (event.ctrlKey) {
        event.preventDefault();
        const box = this.place.getBoundingClientRect();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
        this.draw();
      }
    }, {passive: false});
    this.place.addEventListener("pointermove", (event) => {
      if (event.buttons === 1) {
        this.move(-event.movementX / this.place.clientWidth);
        this.draw();
      }
    });
    window.addEventListener("resize", () => this.draw());
    this.draw();
    bar.hidden = false;
  }

  all() {
    [this.from, this.to] = [this.low, this.high];
  }

  unpacking() {
    const stage = this.stages.find((one) => one.name === "unpacking");
    if (stage) {
      const beside = 0.25 * (stage.to_ms - stage.from_ms);
      [this.from, this.to] = [stage.from_ms - beside, stage.to_ms + beside];
    }
  }

  zoom(factor, part) {
    const length = Math.max((this.to - this.from) * factor, 1);
    const at = this.from + (this.to - this.from) * part;
    this.from = at - length * part;
    this.to = this.from + length;
    this.move(0);
  }

  move(part) {
    const length = Math.min(this.to - this.from, this.high - this.low);
    this.from = Math.min(Math.max(this.from + part * length, this.low), this.high - length);
    this.to = this.from + length;
  }

  draw() {
    const length = this.to - this.from;
    const percent = (ms) => `${(100 * ms / length).toFixed(3)}%`;
    const room = this.place.clientWidth;
    for (const shown of this.place.querySelectorAll("[data-stage]")) {
      const stage = this.stages[Number(shown.dataset.stage)];
      const took = stage.to_ms - stage.from_ms;
      shown.setAttribute("x", percent(stage.from_ms - this.from));
      shown.setAttribute("width", percent(took));
      const before = took ? Math.min(Math.max((this.from - stage.from_ms) / took, 0), 1) : 0;
      const name = shown.querySelector("text");
      if (shown.parentNode.classList.contains("step")) {
        const [start, end] = [stage.from_ms, stage.to_ms].map((ms) => room * (ms - this.from) / length);
        const wide = name.getComputedTextLength() + 6;
        const within = end + wide > room && start < wide;
        const at = within ? Math.max(start, 0) + 6 : end + wide <= room ? end + 6 : start - wide;
        name.classList.toggle("within", within);
        name.setAttribute("x", (at - start).toFixed(1));
        name.setAttribute("dx", 0);
        name.setAttribute("text-anchor", "start");
        name.setAttribute("visibility", end < 0 || start > room ? "hidden" : "visible");
        continue;
      }
      name.setAttribute("x", `${(100 * before).toFixed(2)}%`);
      const left = room * (Math.min(stage.to_ms, this.to) - Math.max(stage.from_ms, this.from)) / length;
      const fits = [stage.name, stage.name.split(",")[0]].some((words) => {
        name.textContent = words;
        return name.getComputedTextLength() + 10 <= left;
      });
      name.setAttribute("visibility", fits ? "visible" : "hidden");
    }
    this.axis.replaceChildren(...ticksBetween(this.from, this.to).map((value) => {
      const mark = svgPart("text", {x: percent(value - this.from), y: 14});
      mark.textContent = inMs(value);
      return mark;
    }));
  }
}

/* In the picture of the image no name or size is cut off. */

function hideCutWords() {
  for (const area of document.querySelectorAll(".treemap > svg")) {
    let fits = true;
    for (const words of area.querySelectorAll("text")) {
      fits = fits && words.getComputedTextLength() + 10 <= area.width.baseVal.value
        && Number(words.getAttribute("y")) + 4 <= area.height.baseVal.value;
      words.setAttribute("visibility", fits ? "visible" : "hidden");
    }
  }
}

const DATA = JSON.parse(document.getElementById("data").textContent);
const WHAT_IF = DATA.model && document.getElementById("controls")
  ? new WhatIf(DATA.model, DATA.published) : null;
const TIME_LINE = DATA.one_boot ? new TimeLine(DATA.one_boot.stages) : null;
window.addEventListener("resize", hideCutWords);
hideCutWords();
