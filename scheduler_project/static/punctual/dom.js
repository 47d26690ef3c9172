/* Small helpers for pages that are drawn from JSON. All text goes in as text. */

/** An element; `attributes` with undefined values are left out, `children` are nodes or texts. */
export const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};

const SVG = "http://www.w3.org/2000/svg";
export const svg = (name, attributes = {}, ...children) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
};

/** A time that local-times.js shows in the viewer's zone. */
export const time = (iso, precision = "second") => (iso ? element("time", { datetime: iso, "data-precision": precision }, iso) : "–");

/** As the server writes lengths: 71 ms, 1.005 s, 1m30s. */
export const length = (seconds) => {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const parts = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  let left = whole;
  const words = [];
  for (const [unit, name] of parts) {
    if (left >= unit) words.push(`${Math.floor(left / unit)}${name}`);
    left %= unit;
  }
  return words.slice(0, 2).join("");
};

/** A table with a heading for each column; on a phone each cell says what its column is. */
export const table = (label, columns, rows, nothing) => {
  if (!rows.length) return element("p", { class: "dash-nothing" }, nothing);
  const head = element("tr", {}, ...columns.map(([title, , kind]) => element("th", { scope: "col", class: kind }, title)));
  const body = rows.map((row) =>
    element("tr", {}, ...columns.map(([title, cell, kind]) => element("td", { class: kind, "data-label": title }, ...[cell(row)].flat()))),
  );
  const made = element("table", { class: "dash-table" }, element("thead", {}, head), element("tbody", {}, ...body));
  return element("div", { class: "dash-scroll", role: "group", "aria-label": label, tabindex: "0" }, made);
};

/** Replaces what is in `place`, unless it is as it was, or somebody is using it. */
export const fill = (place, facts, make) => {
  const text = JSON.stringify(facts);
  if (place.dataset.shown === text || place.contains(document.activeElement)) return;
  place.replaceChildren(make());
  place.dataset.shown = text;
};
