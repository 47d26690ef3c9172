/* Shows what the schedule that is being typed will do: POST /admin/jobs/job/preview/, half a second after the last key. */
"use strict";
(() => {
  const PAUSE_MS = 500;
  const SHOWN = 5;
  const script = document.currentScript;
  const field = document.getElementById("id_schedule");
  if (!field) return;

  const panel = document.createElement("div");
  panel.className = "punctual-preview punctual-preview-typed";
  panel.setAttribute("aria-live", "polite");
  field.parentElement.append(panel);

  const line = (text, kind = "") => {
    const made = document.createElement("p");
    made.textContent = text;
    made.className = kind;
    return made;
  };

  const moment = (instant) => {
    const made = document.createElement("time"); // local-times.js fills it
    made.dateTime = instant;
    made.textContent = instant;
    const place = line("");
    place.append(made);
    return place;
  };

  const asGiven = (text) => {
    try {
      return text.startsWith("{") ? JSON.parse(text) : text;
    } catch {
      return null; // not finished: there is nothing to say yet
    }
  };

  const show = (status, answer) => {
    if (status === 200 && !answer.errors) {
      const fires = answer.fires.map(moment);
      const warnings = answer.warnings.map((text) => line(text, "punctual-warning"));
      panel.replaceChildren(line(answer.description), ...warnings, ...fires);
    } else {
      const texts = status === 200 ? Object.values(answer.errors).flat() : [];
      panel.replaceChildren(...texts.map((text) => line(text, "punctual-warning")));
    }
  };

  let asked = 0;
  const ask = async () => {
    const number = ++asked;
    const text = field.value.trim();
    const schedule = asGiven(text);
    if (!text || schedule === null) {
      panel.replaceChildren();
      return;
    }
    const body = { schedule, count: SHOWN };
    if (script.dataset.job) body.job = script.dataset.job;
    try {
      const answer = await fetch(script.dataset.address, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRFToken": field.form.elements.csrfmiddlewaretoken.value },
        body: JSON.stringify(body),
      });
      const found = await answer.json();
      if (number === asked) show(answer.status, found);
    } catch {
      if (number === asked) panel.replaceChildren(); // the server is away; saving will say so
    }
  };

  let timer;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
  });
  // A job that is there, as it is, has its own panel, which knows what it has run; a form with errors may differ.
  const refused = Boolean(field.closest(".errors")); // the form says so itself
  if (!refused && (!script.dataset.job || document.querySelector(".errornote"))) ask();
})();
