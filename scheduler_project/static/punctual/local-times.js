/* Shows every <time datetime="…"> in the viewer's zone, with UTC in its title; one button shows all in UTC.

What a <time> says when the page arrives is UTC, for browsers without scripts. `data-precision` is `minute`,
`second` (the default) or `millisecond`. Elements that are added later are seen, too. */
"use strict";
(() => {
  const KEY = "punctual.times";
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const digits = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const finer = { minute: {}, second: { second: "2-digit" }, millisecond: { second: "2-digit", fractionalSecondDigits: 3 } };
  const formats = new Map();

  const format = (timeZone, precision) => {
    const key = `${timeZone} ${precision}`;
    if (!formats.has(key)) {
      formats.set(key, new Intl.DateTimeFormat("en-GB", { ...digits, ...(finer[precision] || finer.second), timeZone }));
    }
    return formats.get(key);
  };

  /** `2026-11-30 14:05:09`, as the clock of that zone shows it. */
  const written = (at, timeZone, precision) => {
    const part = Object.fromEntries(format(timeZone, precision).formatToParts(at).map(({ type, value }) => [type, value]));
    const second = part.second ? `:${part.second}` : "";
    const fraction = part.fractionalSecond ? `.${part.fractionalSecond}` : "";
    return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}${second}${fraction}`;
  };

  let stored = null;
  try {
    stored = localStorage.getItem(KEY);
  } catch {
    /* storage is off: the choice lasts as long as the page */
  }
  let chosen = stored === "utc" ? "UTC" : zone;

  const show = (element) => {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) return;
    const precision = element.dataset.precision || "second";
    const suffix = chosen === "UTC" ? " UTC" : "";
    const text = written(at, chosen, precision) + suffix;
    if (element.textContent !== text) element.textContent = text;
    element.title = chosen === "UTC" ? `${written(at, zone, precision)} ${zone}` : `${written(at, "UTC", precision)} UTC`;
  };

  const showAll = (root) => {
    if (root.matches?.("time[datetime]")) show(root);
    root.querySelectorAll?.("time[datetime]").forEach(show);
  };

  const label = () =>
    document.querySelectorAll("[data-punctual-zone]").forEach((button) => {
      button.hidden = zone === "UTC";
      button.querySelector("[data-zone-name]").textContent = chosen;
      button.setAttribute("aria-label", `Times are shown in ${chosen}: show them in ${chosen === "UTC" ? zone : "UTC"}`);
    });

  const choose = () => {
    chosen = chosen === "UTC" ? zone : "UTC";
    try {
      localStorage.setItem(KEY, chosen === "UTC" ? "utc" : "local");
    } catch {
      /* as above */
    }
    label();
    showAll(document);
  };

  const begin = () => {
    label();
    showAll(document);
    document.addEventListener("click", (event) => {
      if (event.target.closest("[data-punctual-zone]")) choose();
    });
    new MutationObserver((changes) => {
      for (const change of changes) {
        if (change.type === "attributes") show(change.target);
        else change.addedNodes.forEach(showAll);
      }
    }).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["datetime"] });
  };

  globalThis.punctualTimes = { zone: () => chosen, written: (at, precision) => written(new Date(at), chosen, precision) };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
