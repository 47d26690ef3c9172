/* The dashboard: asks for the overview every five seconds, while somebody looks, and draws it. */
import { Chart } from "./charts.js";
import { element, fill, length, table, time } from "./dom.js";

const EVERY_MS = 5000;
const OLD_MS = 15000;
const LATE_MS = 5000;
const root = document.getElementById("dashboard");
const find = (name) => root.querySelector(`[data-${name}]`);
const address = (page, id) => page.replace("00000000-0000-0000-0000-000000000000", id);
const jobLink = ({ jobId, jobName }) => (jobName ? element("a", { href: address(root.dataset.job, jobId) }, jobName) : "a job that is gone");
const runLink = (id, text) => element("a", { href: address(root.dataset.run, id) }, ...[text].flat());
const number = (value) => value.toLocaleString("en-GB");
const round = (value) => number(Number.isInteger(value) ? value : Number(value.toPrecision(2)));

const FINISHED = [
  { name: "Completed Normally", key: "completedNormally", kind: "normally" },
  { name: "Completed Abnormally", key: "completedAbnormally", kind: "abnormally" },
  { name: "Cancelled", key: "cancelled", kind: "cancelled" },
];
const charts = [
  new Chart({
    title: "Due and started per minute",
    series: [
      { name: "due", key: "due", kind: "due" },
      { name: "started", key: "started", kind: "started" },
    ],
    unit: round,
    whole: true,
  }),
  new Chart({ title: "Finished per minute", series: FINISHED, stacked: true, unit: round, whole: true }),
  new Chart({
    title: "Lateness of starts",
    series: [
      { name: "p50", key: "latenessP50Seconds", kind: "p50" },
      { name: "p99", key: "latenessP99Seconds", kind: "p99" },
    ],
    unit: length,
  }),
];

const atMost = (count) => (count >= 10000 ? "10,000 or more" : number(count));
/** The facts of the tiles: the hour, and what is wrong now. */
const tileFacts = ({ at, hour, workers, notStarted }) => ({
  ...hour,
  at,
  left: workers.reduce((sum, { present, running: runs, runningOfOtherTeams }) => sum + (present === false ? runs.length + runningOfOtherTeams : 0), 0),
  waitsSince: notStarted.map(({ since }) => since).filter(Boolean).sort()[0],
});
const TILES = [
  ["Due", ({ due }) => number(due)],
  ["Started", ({ started }) => number(started)],
  ["Completed Normally", ({ completedNormally }) => number(completedNormally)],
  ["Completed Abnormally", ({ completedAbnormally }) => number(completedAbnormally), ({ completedAbnormally }) => completedAbnormally > 0],
  ["Cancelled", ({ cancelled }) => number(cancelled)],
  ["Skipped", ({ skipped }) => number(skipped)],
  ["Late by, p50", ({ latenessP50Seconds }) => length(latenessP50Seconds)],
  ["Late by, p99", ({ latenessP99Seconds }) => length(latenessP99Seconds), ({ latenessP99Seconds }) => latenessP99Seconds > 1],
  ["Running now", ({ running }) => number(running)],
  ["Running, worker gone", ({ left }) => number(left), ({ left }) => left > 0],
  ["Due and not started", ({ notStarted }) => atMost(notStarted), ({ waitsSince, at }) => waitsSince && Date.parse(at) - Date.parse(waitsSince) > LATE_MS],
  ["Due and not sent", ({ overdue }) => atMost(overdue), ({ overdue }) => overdue > 0],
];
const tiles = (hour) => {
  const made = TILES.map(([name, value, bad]) => {
    const marked = bad?.(hour);
    return element("div", { class: marked ? "dash-tile dash-bad" : "dash-tile" }, element("dt", {}, name), element("dd", {}, value(hour)));
  });
  const all = document.createDocumentFragment();
  all.append(...made);
  return all;
};

const running = ({ running: runs, runningOfOtherTeams, present }) => {
  const lost = present === false ? element("strong", { class: "dash-warn" }, " (its worker is gone)") : "";
  const shown = runs.slice(0, 10).map((run) => element("li", {}, runLink(run.executionId, run.jobName), " since ", time(run.startedAt), lost && lost.cloneNode(true)));
  if (runs.length > 10) shown.push(element("li", {}, `and ${runs.length - 10} more`));
  if (runningOfOtherTeams) shown.push(element("li", {}, `${runningOfOtherTeams} of other teams`));
  return shown.length ? element("ul", { class: "dash-list" }, ...shown) : "nothing";
};
const ranges = (shards) => {
  const found = [];
  for (const shard of shards) {
    const last = found.at(-1);
    if (last && last[1] === shard - 1) last[1] = shard;
    else found.push([shard, shard]);
  }
  return found.map(([low, high]) => (low === high ? `${low}` : `${low}–${high}`)).join(", ") || "none";
};
const away = (part) => () => element("p", { class: "dash-away" }, `Not known: ${part} does not answer.`);

const TABLES = {
  nextRuns: ({ nextRuns }) =>
    table("Next runs", [["Due", ({ dueAt, executionId }) => runLink(executionId, time(dueAt)), ""], ["Job", jobLink, ""], ["Owner", ({ owner }) => owner, ""]], nextRuns, "Nothing is planned."),
  failures: ({ failures }) =>
    table(
      "Failures of the last day",
      [
        ["Job", jobLink, ""],
        ["Owner", ({ owner }) => owner, ""],
        ["Reason", ({ reason }) => reason.replaceAll("_", " "), ""],
        ["Failed attempts", ({ attempts }) => number(attempts), "dash-number"],
        ["Runs ended so", ({ runs }) => number(runs), "dash-number"],
        ["Latest", ({ latestExecutionId }) => runLink(latestExecutionId, "Open the run"), ""],
      ],
      failures,
      "Nothing failed.",
    ),
  late: ({ late }) =>
    table(
      "Jobs most often late",
      [
        ["Job", jobLink, ""],
        ["Owner", ({ owner }) => owner, ""],
        ["Late starts", ({ starts }) => number(starts), "dash-number"],
        ["Not started", ({ notStarted }) => number(notStarted), "dash-number"],
        ["Latest by", ({ worstSeconds }) => length(worstSeconds), "dash-number"],
        ["Latest", ({ latestExecutionId }) => runLink(latestExecutionId, "Open the run"), ""],
      ],
      late,
      "Nothing was more than a second late.",
    ),
  workers: ({ workers }) =>
    table(
      "Workers",
      [
        ["Worker", ({ name, present }) => (present === false ? [name, element("strong", { class: "dash-warn" }, " is gone")] : name), ""],
        ["Queues", ({ queues }) => queues?.join(", ") ?? "–", ""],
        ["Busy", ({ running: runs, runningOfOtherTeams, slots }) => `${runs.length + runningOfOtherTeams} of ${slots ?? "?"}`, "dash-number"],
        ["Runs", running, ""],
      ],
      workers,
      "No worker is there: nothing that is due will run.",
    ),
  beats: ({ beats, unownedShards }) => {
    const made = table("Beats", [["Beat", ({ name }) => name, ""], ["Shards", ({ shards }) => `${shards.length}: ${ranges(shards)}`, ""]], beats, "No beat is there: nothing is started.");
    if (!unownedShards.length) return made;
    return element("div", {}, made, element("p", { class: "dash-away" }, `Owned by no beat: shards ${ranges(unownedShards)}. What is due there is not started.`));
  },
  notStarted: ({ notStarted }) =>
    table(
      "Due and not started",
      [
        ["Queue", ({ queue }) => queue, ""],
        ["Runs", ({ runs }) => atMost(runs), "dash-number"],
        ["Since", ({ since }) => (since ? time(since) : "wait for a pool"), ""],
        ["Workers", ({ workers }) => (workers === 0 ? element("strong", { class: "dash-warn" }, "none") : `${workers ?? "–"}`), "dash-number"],
      ],
      notStarted,
      "Nothing that is due waits.",
    ),
  queues: ({ queues, systemQueues }) =>
    element(
      "div",
      {},
      table(
        "Queues of runs",
        [
          ["Queue", ({ queue }) => queue, ""],
          ["Priority", ({ priority }) => priority, ""],
          ["Waiting", ({ waiting }) => number(waiting), "dash-number"],
          ["Workers", ({ workers, waiting }) => (workers === 0 && waiting ? element("strong", { class: "dash-warn" }, "none") : `${workers ?? "–"}`), "dash-number"],
        ],
        queues,
        "There is no queue.",
      ),
      table("Punctual's own queues", [["Own queue", ({ queue }) => queue, ""], ["Waiting", ({ waiting }) => number(waiting), "dash-number"]], systemQueues, ""),
    ),
};
const NEEDS = { beats: "redis", queues: "broker" };
const PARTS = { redis: "Redis", broker: "the broker" };
const FACTS = { beats: ["beats", "unownedShards"], queues: ["queues", "systemQueues"] };

let paused = false;
let shownAt = 0;
let timer = 0;
let trouble = "";

const say = () => {
  const status = find("status");
  const old = shownAt && Date.now() - shownAt > OLD_MS;
  root.classList.toggle("dash-old", Boolean(old || trouble));
  const parts = [];
  if (trouble) parts.push(trouble);
  if (shownAt) parts.push(old || trouble ? "What you see is old, from " : "As of ", time(new Date(shownAt).toISOString()));
  if (paused) parts.push(" (paused)");
  const key = `${trouble} ${old} ${paused} ${shownAt}`;
  if (status.dataset.said !== key) {
    status.dataset.said = key;
    status.setAttribute("aria-live", old || trouble ? "polite" : "off"); // not every five seconds
    status.replaceChildren(...(parts.length ? parts : ["Loading…"]));
  }
};

const DEAD = "punctual.dead";
/** Messages that nobody could read or apply: for who may look at them. */
const drawDead = (queues) => {
  const count = (root.dataset.deadLetters && queues?.find(({ queue }) => queue === DEAD)?.waiting) || 0;
  const place = find("dead");
  place.hidden = !count;
  fill(place, count, () => {
    const line = document.createDocumentFragment();
    const told = count === 1 ? "1 dead letter: a message that nobody could read or apply. " : `${number(count)} dead letters: messages that nobody could read or apply. `;
    line.append(told, element("a", { href: root.dataset.deadLetters }, "Look at them"));
    return line;
  });
};

const draw = (overview) => {
  find("away").hidden = !overview.away.length;
  find("away").textContent = `${overview.away.map((part) => (part === "redis" ? "Redis" : "The broker")).join(" and ")} ${overview.away.length > 1 ? "do" : "does"} not answer: what it knows is missing here.`;
  const stopped = find("obstacles");
  stopped.hidden = !overview.obstacles.length;
  fill(stopped, overview.obstacles, () => element("ul", { class: "dash-list" }, ...overview.obstacles.map((said) => element("li", {}, said))));
  drawDead(overview.systemQueues);
  const facts = tileFacts(overview);
  fill(find("tiles"), facts, () => tiles(facts));
  charts.forEach((chart) => chart.show(overview.minutes));
  for (const [name, make] of Object.entries(TABLES)) {
    const place = root.querySelector(`[data-table="${name}"]`);
    const facts = (FACTS[name] ?? [name]).map((key) => overview[key]);
    const missing = NEEDS[name] && overview[name] === null;
    fill(place, facts, missing ? away(PARTS[NEEDS[name]]) : () => make(overview));
  }
};

const refresh = async () => {
  clearTimeout(timer);
  if (paused || document.hidden) return;
  try {
    const answer = await fetch(root.dataset.source, { headers: { Accept: "application/json" }, credentials: "same-origin", signal: AbortSignal.timeout(10000) });
    if (answer.status === 401 || answer.status === 403) throw new Error("You are signed out: load this page again. ");
    if (!answer.ok) throw new Error(`The server answers ${answer.status}; it is asked again. `);
    draw(await answer.json());
    shownAt = Date.now();
    trouble = "";
  } catch (error) {
    trouble = error instanceof Error && error.message.endsWith(" ") ? error.message : "The server does not answer; it is asked again. ";
  }
  say();
  timer = setTimeout(refresh, EVERY_MS);
};

find("charts").append(...charts.map((chart) => chart.root));
find("pause").addEventListener("click", (event) => {
  paused = !paused;
  event.currentTarget.setAttribute("aria-pressed", String(paused));
  event.currentTarget.textContent = paused ? "Go on" : "Pause";
  say();
  refresh();
});
document.addEventListener("visibilitychange", refresh);
setInterval(say, 1000);
refresh();
