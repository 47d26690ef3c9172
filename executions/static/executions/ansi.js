/* Terminal output as DOM: colours and styles of ANSI (SGR), other control sequences left out, a lone CR begins the
line anew. Text goes in by textContent alone. One renderer for one stream: a sequence may come in two parts. */
"use strict";
globalThis.punctualAnsi = (() => {
  const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
  const STEPS = [0, 95, 135, 175, 215, 255];
  const PART = /\x1b(?:\[([0-9;:?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])|\r\n|\r|\n|\t|[\x00-\x08\x0b-\x1f\x7f]/g;
  const OPEN = /\x1b(?:\[[0-9;:? -/]*|\][^\x07\x1b]{0,2000}|)$/;

  const colour = (numbers) => {
    const kind = numbers.shift();
    if (kind === 2) return `rgb(${numbers.splice(0, 3).map((n) => Math.min(255, n || 0)).join(" ")})`;
    if (kind !== 5) return null;
    const n = numbers.shift() ?? 0;
    if (n < 16) return { name: NAMES[n % 8], bright: n > 7 };
    if (n > 231) return `rgb(${Array(3).fill(8 + 10 * (Math.min(n, 255) - 232)).join(" ")})`;
    const cube = n - 16;
    return `rgb(${[Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((step) => STEPS[step]).join(" ")})`;
  };

  const change = (style, text) => {
    const numbers = text.split(/[;:]/).map((part) => Number(part) || 0);
    while (numbers.length) {
      const n = numbers.shift();
      if (n === 0) for (const key of Object.keys(style)) delete style[key];
      else if (n === 1) style.bold = true;
      else if (n === 2) style.dim = true;
      else if (n === 3) style.italic = true;
      else if (n === 4) style.underline = true;
      else if (n === 7) style.inverse = true;
      else if (n === 9) style.strike = true;
      else if (n === 22) style.bold = style.dim = false;
      else if (n === 23) style.italic = false;
      else if (n === 24) style.underline = false;
      else if (n === 27) style.inverse = false;
      else if (n === 29) style.strike = false;
      else if (n === 39) delete style.fore;
      else if (n === 49) delete style.back;
      else if (n === 38) style.fore = colour(numbers);
      else if (n === 48) style.back = colour(numbers);
      else if (n >= 30 && n <= 37) style.fore = { name: NAMES[n - 30] };
      else if (n >= 40 && n <= 47) style.back = { name: NAMES[n - 40] };
      else if (n >= 90 && n <= 97) style.fore = { name: NAMES[n - 90], bright: true };
      else if (n >= 100 && n <= 107) style.back = { name: NAMES[n - 100], bright: true };
    }
  };

  const paint = (span, style) => {
    for (const name of ["bold", "dim", "italic", "underline", "strike"]) {
      if (style[name]) span.classList.add(`ansi-${name}`);
    }
    const [fore, back] = style.inverse ? [style.back, style.fore] : [style.fore, style.back];
    if (style.inverse && !fore) span.classList.add("ansi-inverse");
    for (const [kind, value] of [["fore", fore], ["back", back]]) {
      if (!value) continue;
      if (value.name) span.classList.add(`ansi-${kind}-${value.bright ? "bright-" : ""}${value.name}`);
      else span.style[kind === "fore" ? "color" : "backgroundColor"] = value;
    }
  };

  /** Appends lines, as elements, to `target`, and keeps the newest `most` of them. */
  return class {
    constructor(target, most) {
      this.target = target;
      this.most = most;
      this.style = {};
      this.rest = "";
      this.line = null;
      this.dropped = 0;
    }

    write(text) {
      let all = this.rest + text;
      const open = OPEN.exec(all) || (all.endsWith("\r") ? { index: all.length - 1 } : null);
      this.rest = open ? all.slice(open.index) : "";
      if (open) all = all.slice(0, open.index);
      let from = 0;
      for (const found of all.matchAll(PART)) {
        this.put(all.slice(from, found.index));
        from = found.index + found[0].length;
        if (found[2] === "m") change(this.style, found[1]);
        else if (found[0] === "\n" || found[0] === "\r\n") this.end();
        else if (found[0] === "\r") this.line?.replaceChildren();
        else if (found[0] === "\t") this.put("\t");
      }
      this.put(all.slice(from));
      this.trim();
    }

    put(text) {
      if (!text) return;
      this.begin();
      const plain = !Object.values(this.style).some(Boolean);
      const node = plain ? document.createTextNode(text) : document.createElement("span");
      if (!plain) {
        node.textContent = text;
        paint(node, this.style);
      }
      this.line.append(node);
    }

    begin() {
      if (this.line) return;
      this.line = document.createElement("div");
      this.target.append(this.line);
    }

    end() {
      this.begin();
      if (!this.line.hasChildNodes()) this.line.append("\u200b"); // an empty line has its height
      this.line = null;
    }

    /** A line of the page's own between the output's. */
    say(text) {
      if (this.line) this.end();
      const line = document.createElement("div");
      line.className = "punctual-said";
      line.textContent = text;
      this.target.append(line);
    }

    trim() {
      while (this.target.childElementCount > this.most) {
        this.target.firstElementChild.remove();
        this.dropped += 1;
      }
    }
  };
})();
