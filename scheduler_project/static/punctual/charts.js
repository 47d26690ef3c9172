/* Charts of the last minutes as SVG: bars on each other, or lines; read with the pointer or the arrow keys. */
import { element, svg, table, time } from "./dom.js";

const WIDTH = 600; // before it is shown; then as wide as its place, so that text keeps its size
const HEIGHT = 160;
const LEFT = 52;
const BOTTOM = 18;
const TOP = 8;

/** A round number that is not below `most`. */
const ceiling = (most) => {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= most);
};

/** `series`: [{name, key, kind}], `kind` names the colour; `stacked`: bars, else lines; `unit`: how a value is written. */
export class Chart {
  constructor({ title, series, stacked = false, unit = String, whole = false }) {
    Object.assign(this, { title, series, stacked, unit, whole });
    this.at = -1;
    this.width = WIDTH;
    this.drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: 0, class: "dash-svg" });
    this.readout = element("p", { class: "dash-readout", "aria-live": "polite" }, "\u00a0");
    const legend = series.map(({ name, kind }) => element("li", { class: `dash-key dash-${kind}` }, name));
    this.numbers = element("details", { class: "dash-numbers" }, element("summary", {}, "As a table"));
    this.numbers.addEventListener("toggle", () => this.list());
    this.root = element(
      "figure",
      { class: "dash-chart" },
      element("figcaption", {}, element("h2", {}, title), element("ul", { class: "dash-legend" }, ...legend)),
      this.drawing,
      this.readout,
      this.numbers,
    );
    this.drawing.addEventListener("pointermove", (event) => this.point(event));
    this.drawing.addEventListener("pointerleave", () => this.read(-1));
    this.drawing.addEventListener("keydown", (event) => this.move(event));
    new ResizeObserver(() => this.resize()).observe(this.drawing);
  }

  resize() {
    const width = Math.round(this.drawing.getBoundingClientRect().width);
    if (!width || width === this.width) return;
    this.width = width;
    this.drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    if (this.minutes) this.show(this.minutes);
  }

  show(minutes) {
    this.minutes = minutes;
    const tops = minutes.map((minute) => {
      const values = this.series.map(({ key }) => minute[key] ?? 0);
      return this.stacked ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values);
    });
    this.most = ceiling(Math.max(...tops));
    if (this.whole) this.most = Math.max(1, Math.ceil(this.most));
    this.step = (this.width - LEFT) / minutes.length;
    this.cursor = svg("rect", { class: "dash-cursor", x: -9, y: TOP, width: this.step, height: HEIGHT - TOP - BOTTOM });
    this.drawing.replaceChildren(...this.grid(), this.cursor, ...(this.stacked ? this.bars() : this.lines()));
    this.drawing.setAttribute("aria-label", this.summary());
    this.read(this.at, false);
    this.list();
  }

  x(index) {
    return LEFT + index * this.step;
  }

  y(value) {
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / this.most);
  }

  grid() {
    const values = [0, this.most / 2, this.most];
    const lines = values.flatMap((value) => [
      svg("line", { class: "dash-grid", x1: LEFT, x2: this.width, y1: this.y(value), y2: this.y(value) }),
      svg("text", { class: "dash-axis", x: LEFT - 5, y: this.y(value) + 4, "text-anchor": "end" }, this.unit(value)),
    ]);
    const marks = this.minutes.flatMap(({ minute }, index) => {
      const ago = this.minutes.length - 1 - index;
      if (ago % 15) return [];
      const anchor = ago === 0 ? "end" : "middle";
      const x = ago === 0 ? this.width : this.x(index) + this.step / 2;
      return svg("text", { class: "dash-axis", x, y: HEIGHT - 4, "text-anchor": anchor }, this.clock(minute));
    });
    return [...lines, ...marks];
  }

  clock(iso) {
    return globalThis.punctualTimes ? globalThis.punctualTimes.written(iso, "minute").slice(11, 16) : iso.slice(11, 16);
  }

  bars() {
    return this.minutes.flatMap((minute, index) => {
      let below = 0;
      return this.series.flatMap(({ key, kind }) => {
        const value = minute[key] ?? 0;
        if (!value) return [];
        const y = this.y(below + value);
        const height = this.y(below) - y;
        below += value;
        return svg("rect", { class: `dash-bar dash-${kind}`, x: this.x(index) + 0.5, y, width: Math.max(1, this.step - 1), height });
      });
    });
  }

  lines() {
    return this.series.map(({ key, kind }) => {
      let pen = "M";
      const path = this.minutes
        .map((minute, index) => {
          const value = minute[key];
          if (value === null || value === undefined) {
            pen = "M";
            return "";
          }
          // A flat piece for each minute, so that one alone is seen, too.
          const y = this.y(value).toFixed(1);
          const piece = `${pen}${this.x(index).toFixed(1)} ${y}H${this.x(index + 1).toFixed(1)}`;
          pen = "L";
          return piece;
        })
        .join("");
      return svg("path", { class: `dash-line dash-${kind}`, d: path || "M0 0" });
    });
  }

  summary() {
    const last = this.minutes.at(-2) ?? this.minutes.at(-1);
    return `${this.title}: ${this.words(last)} in the last whole minute. Arrow keys read the minutes.`;
  }

  words(minute) {
    return this.series.map(({ name, key }) => `${name} ${minute[key] === null ? "–" : this.unit(minute[key])}`).join(", ");
  }

  point(event) {
    const box = this.drawing.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.width - LEFT;
    const index = Math.floor(x / this.step);
    this.read(index >= 0 && index < this.minutes.length ? index : -1);
  }

  move(event) {
    const last = this.minutes.length - 1;
    const from = this.at < 0 ? last : this.at;
    const target = { ArrowLeft: from - 1, ArrowRight: this.at < 0 ? last : from + 1, Home: 0, End: last, Escape: -1 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.read(Math.min(last, target));
  }

  read(index, say = true) {
    this.at = index < 0 ? -1 : index;
    if (!this.minutes) return;
    this.cursor.setAttribute("x", this.at < 0 ? -99 : this.x(this.at));
    const text = this.at < 0 ? "\u00a0" : `${this.clock(this.minutes[this.at].minute)}: ${this.words(this.minutes[this.at])}`;
    if (say || this.at < 0) this.readout.textContent = text;
  }

  list() {
    if (!this.numbers.open || !this.minutes) return;
    const columns = [
      ["Minute", ({ minute }) => time(minute, "minute"), ""],
      ...this.series.map(({ name, key }) => [name, (minute) => (minute[key] === null ? "–" : this.unit(minute[key])), "dash-number"]),
    ];
    const shown = table(this.title, columns, [...this.minutes].reverse(), "Nothing.");
    this.numbers.replaceChildren(this.numbers.firstElementChild, shown);
  }
}
