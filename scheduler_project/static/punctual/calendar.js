/* The calendar: a field for each minute of the coming week, darker where more runs start. */
import { element, table, time } from "./dom.js";

const MINUTE_MS = 60000;
const QUARTER = 15;
const CELL_W = 5;
const CELL_H = 8;
const SHADES = 5;
const HERD = 10; // starts in a minute
const root = document.getElementById("calendar");
const find = (name) => root.querySelector(`[data-${name}]`);
const jobAddress = (id) => root.dataset.job.replace("00000000-0000-0000-0000-000000000000", id);
const plural = (count, word) => `${count.toLocaleString("en-GB")} ${word}${count === 1 ? "" : "s"}`;

let week = null;
/** The viewer's, or UTC, as the button at the top says (local-times.js). */
const zone = () => globalThis.punctualTimes?.zone() ?? "UTC";

/** What the zone's clock shows: {date, weekday, minute of the day}. */
const clockOf = (timeZone) => {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone, year: "numeric", month: "2-digit", day: "2-digit", weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
  });
  return (ms) => {
    const part = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]));
    return { date: `${part.year}-${part.month}-${part.day}`, weekday: part.weekday, minute: Number(part.hour) * 60 + Number(part.minute) };
  };
};
const two = (value) => String(value).padStart(2, "0");
const timeOf = (minute) => `${two(Math.floor(minute / 60))}:${two(minute % 60)}`;

/** The days of the week, each with fields by minute of the day; where the clock goes back, a minute comes twice. */
const daysOf = (since, starts) => {
  const read = clockOf(zone());
  const days = new Map();
  let shown = null;
  starts.forEach((count, offset) => {
    const ms = since + offset * MINUTE_MS;
    // No zone changes its clock but at a quarter of an hour.
    if (shown === null || (ms / MINUTE_MS) % QUARTER === 0) shown = { ...read(ms), from: ms };
    const minute = shown.minute + (ms - shown.from) / MINUTE_MS;
    if (!days.has(shown.date)) days.set(shown.date, { date: shown.date, weekday: shown.weekday, fields: new Map() });
    const { fields } = days.get(shown.date);
    const field = fields.get(minute) ?? { minute, count: 0, at: ms };
    field.count += count;
    fields.set(minute, field);
  });
  return [...days.values()];
};

/** 0: none; 1 to SHADES by the logarithm of the count, so that 2 and 2,000 look different; the last, an alarm, for a herd only. */
const shadeOf = (count, most) => {
  if (!count) return 0;
  const shade = Math.ceil((SHADES * Math.log(count + 1)) / Math.log(most + 1));
  return Math.min(count > HERD ? SHADES : SHADES - 1, Math.max(1, shade));
};
const shades = () => {
  const style = getComputedStyle(root);
  return Array.from({ length: SHADES + 1 }, (_, index) => style.getPropertyValue(`--cal-${index}`).trim());
};

class Day {
  constructor(day, most) {
    Object.assign(this, { day, most, cursor: null });
    this.total = [...day.fields.values()].reduce((sum, { count }) => sum + count, 0);
    this.canvas = element("canvas", {
      width: String(60 * CELL_W * 2), height: String(24 * CELL_H * 2), tabindex: "0", role: "application",
      "aria-label": `${day.weekday} ${day.date}, ${plural(this.total, "start")}: arrow keys move by minute and hour, Enter lists the jobs`,
      "aria-describedby": "cal-help",
    });
    const hours = [0, 6, 12, 18].map((hour) => element("span", {}, two(hour)));
    const title = element("h3", {}, `${day.weekday} ${day.date} `, element("span", { class: "cal-total" }, plural(this.total, "start")));
    this.root = element("div", { class: "cal-day" }, title, element("div", { class: "cal-grid" }, element("div", { class: "cal-hours", "aria-hidden": "true" }, ...hours), this.canvas));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.to(null));
    this.canvas.addEventListener("click", (event) => { this.point(event); this.open(); });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.to(null));
    this.draw();
  }

  draw() {
    const pen = this.canvas.getContext("2d");
    const colours = shades();
    pen.setTransform(2, 0, 0, 2, 0, 0);
    pen.clearRect(0, 0, 60 * CELL_W, 24 * CELL_H);
    for (const { minute, count } of this.day.fields.values()) {
      pen.fillStyle = colours[shadeOf(count, this.most)];
      pen.fillRect((minute % 60) * CELL_W, Math.floor(minute / 60) * CELL_H, CELL_W - 0.5, CELL_H - 1);
    }
    if (this.cursor !== null) {
      pen.strokeStyle = getComputedStyle(root).getPropertyValue("--cal-cursor").trim();
      pen.lineWidth = 2;
      pen.strokeRect((this.cursor % 60) * CELL_W - 0.5, Math.floor(this.cursor / 60) * CELL_H - 0.5, CELL_W + 0.5, CELL_H);
    }
  }

  to(minute) {
    if (this.cursor === minute) return;
    this.cursor = minute;
    this.draw();
    const field = this.day.fields.get(minute);
    const count = field ? plural(field.count, "start") : "past, or beyond the week";
    find("readout").textContent = minute === null ? "\u00a0" : `${this.day.weekday} ${this.day.date} ${timeOf(minute)} ${zone()}: ${count}`;
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * 60);
    const row = Math.floor(((event.clientY - box.top) / box.height) * 24);
    if (column >= 0 && column < 60 && row >= 0 && row < 24) this.to(row * 60 + column);
  }

  key(event) {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.open();
      return;
    }
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -60, ArrowDown: 60 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const first = Math.min(...this.day.fields.keys());
    this.to(this.cursor === null ? first : Math.min(1439, Math.max(0, this.cursor + step)));
  }

  open() {
    const field = this.day.fields.get(this.cursor);
    if (field) list(new Date(field.at).toISOString());
  }
}

const jobsTable = ({ jobs }) =>
  table(
    "Jobs that start in this minute",
    [
      ["Job", ({ jobId, jobName }) => element("a", { href: jobAddress(jobId) }, jobName), ""],
      ["Owner", ({ owner }) => owner, ""],
      ["Schedule", ({ description }) => description, ""],
      ["Jitter", ({ jitter }) => jitter, ""],
      ["Starts", ({ starts }) => String(starts), "dash-number"],
      ["First", ({ times }) => time(times[0]), ""],
    ],
    jobs,
    "No job starts in this minute.",
  );

const list = async (at) => {
  const section = find("list");
  section.hidden = false;
  find("list-title").replaceChildren("Jobs that start at ", time(at, "minute"));
  find("jobs").replaceChildren("Loading…");
  try {
    const answer = await fetch(`${root.dataset.minute}?at=${encodeURIComponent(at)}`, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(String(answer.status));
    const found = await answer.json();
    const made = [jobsTable(found)];
    if (found.count > found.jobs.length) made.push(element("p", {}, `The first ${found.jobs.length} of ${plural(found.count, "job")}.`));
    if (found.count > 1) {
      made.push(element("p", { class: "dash-help" }, "To spread them, open a job and give it a jitter, such as 10m: it then starts at a time of its own within it, the same each time. Or give it another minute."));
    }
    find("jobs").replaceChildren(...made);
  } catch {
    find("jobs").replaceChildren(element("p", { class: "dash-away" }, "The jobs could not be loaded: try again."));
  }
  section.focus();
};

let drawn = [];
const draw = () => {
  const most = Math.max(HERD, ...week.starts);
  drawn = daysOf(Date.parse(week.since), week.starts).map((day) => new Day(day, most));
  find("days").replaceChildren(...drawn.map((day) => day.root));
  const total = week.starts.reduce((sum, count) => sum + count, 0);
  const broken = week.unreadable ? ` ${plural(week.unreadable, "job")} cannot be read and is not shown.` : "";
  find("status").textContent = `${plural(total, "start")} of ${plural(week.jobs, "job")} in seven days, in ${zone()}.${broken}`;
  const bounds = Array.from({ length: SHADES }, (_, index) => (index + 1 === SHADES ? most : Math.max(1, Math.floor(Math.exp((Math.log(most + 1) * (index + 1)) / SHADES) - 1))));
  const kept = bounds.filter((bound, index) => index + 1 === SHADES || shadeOf(bound, most) !== shadeOf(bounds[index + 1], most));
  find("legend").replaceChildren("Starts in a minute: none ", element("i", { class: "cal-shade cal-shade-0" }), ...kept.flatMap((bound) => [` to ${bound.toLocaleString("en-GB")} `, element("i", { class: `cal-shade cal-shade-${shadeOf(bound, most)}` })]));
};

const busiest = () =>
  table(
    "Busiest minutes",
    [
      ["Minute", ({ minute }) => time(minute, "minute"), ""],
      ["Starts", ({ starts }) => starts.toLocaleString("en-GB"), "dash-number"],
      ["Jobs", ({ minute }) => {
        const button = element("button", { type: "button", class: "dash-button", "aria-label": `List the jobs of ${minute}` }, "List");
        button.addEventListener("click", () => list(minute));
        return button;
      }, ""],
    ],
    week.busiest,
    "Nothing starts in the coming week.",
  );

const load = async () => {
  try {
    const answer = await fetch(root.dataset.source, { headers: { Accept: "application/json" }, credentials: "same-origin" });
    if (!answer.ok) throw new Error(String(answer.status));
    week = await answer.json();
    draw();
    find("busiest").replaceChildren(busiest());
  } catch {
    find("status").textContent = "The calendar could not be loaded: load this page again.";
  }
};

document.addEventListener("click", (event) => {
  if (week && event.target.closest("[data-punctual-zone]")) setTimeout(draw); // after local-times.js has heard it
});
new MutationObserver(() => drawn.forEach((day) => day.draw())).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
load();
