/* The page of a run: its state and history refresh by themselves, its output follows live.

#run-live      what the server draws anew at data-address; replaced only where it has changed
#run-log       the output, by server-sent events from data-address (REST), with what it says in ANSI colours */
"use strict";
(() => {
  const PERIOD_MS = 3000;
  const TAIL_LINES = 2000;
  const MOST_LINES = 10000;

  const keepState = (live, announce) => {
    let shown = live.innerHTML;
    const ended = () => live.querySelector("[data-state]")?.dataset.ended === "true";
    const settle = () => {
      const now = live.querySelector("[data-state]");
      if (!now) return;
      document.querySelectorAll("[data-while]").forEach((element) => {
        element.hidden = ![now.dataset.movable === "true" ? "movable" : "", now.dataset.ended === "true" ? "ended" : "live"].includes(element.dataset.while);
      });
    };
    const refresh = async () => {
      if (document.hidden) return;
      try {
        const answer = await fetch(live.dataset.address, { headers: { Accept: "text/html" } });
        if (!answer.ok || answer.redirected) return;
        const text = await answer.text();
        if (text === shown) return;
        const before = live.querySelector("[data-state]")?.dataset.state;
        const found = new DOMParser().parseFromString(text, "text/html");
        const focused = live.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
        live.replaceChildren(...found.body.childNodes);
        shown = text;
        if (focused) live.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
        settle();
        const after = live.querySelector("[data-state]")?.dataset.state;
        if (after && after !== before) announce.textContent = `The run is ${after} now.`;
      } catch {
        /* the server is away: asked again */
      }
    };
    const tick = async () => {
      await refresh();
      setTimeout(tick, ended() ? 10 * PERIOD_MS : PERIOD_MS);
    };
    document.addEventListener("visibilitychange", refresh);
    setTimeout(tick, PERIOD_MS);
  };

  const followLog = (panel) => {
    const box = panel.querySelector("[data-box]");
    const status = panel.querySelector("[data-log-status]");
    const pause = panel.querySelector("[data-pause]");
    const choice = panel.querySelector("select");
    const download = panel.querySelector("[data-download]");
    let source = null;
    let renderer = null;
    let following = true;

    const toEnd = () => {
      if (following) box.scrollTop = box.scrollHeight;
    };
    const setFollowing = (value) => {
      following = value;
      pause.setAttribute("aria-pressed", String(!value));
      pause.textContent = value ? "Pause scrolling" : "Scroll on";
      toEnd();
    };
    const clear = () => {
      box.replaceChildren();
      renderer = new globalThis.punctualAnsi(box, MOST_LINES);
    };
    const hasAttempt = (number) => {
      if (![...choice.options].some((option) => option.value === String(number))) {
        choice.add(new Option(`Attempt ${number}`, number));
      }
      choice.closest("label").hidden = choice.options.length < 2;
    };
    const shows = (number) => {
      hasAttempt(number);
      choice.value = String(number);
      download.href = `${panel.dataset.address}?attempt=${number}`;
      download.hidden = false;
    };

    const open = (attempt) => {
      source?.close();
      const query = new URLSearchParams({ follow: "true", tail: TAIL_LINES });
      if (attempt) query.set("attempt", attempt);
      let begun = false;
      const begin = (number) => {
        if (!begun) clear();
        begun = true;
        shows(number);
      };
      source = new EventSource(`${panel.dataset.address}?${query}`);
      source.onopen = () => { status.textContent = "Live"; };
      source.onmessage = (event) => {
        const body = JSON.parse(event.data);
        begin(body.attempt);
        renderer.write(body.text);
        toEnd();
      };
      source.addEventListener("note", (event) => {
        const body = JSON.parse(event.data);
        begin(body.attempt);
        renderer.say(body.text.trimEnd());
        toEnd();
      });
      source.addEventListener("gap", (event) => {
        const body = JSON.parse(event.data);
        begin(body.attempt);
        renderer.say(`[${(body.to - body.from).toLocaleString("en")} bytes are left out here]`);
      });
      source.addEventListener("attempt", (event) => {
        const body = JSON.parse(event.data);
        clear();
        begun = true;
        shows(body.attempt);
      });
      source.addEventListener("end", () => {
        source.close();
        panel.dataset.ended = "true";
        status.textContent = "Complete";
        if (!begun && !box.textContent.trim()) box.textContent = "It has written nothing.";
      });
      source.addEventListener("refused", (event) => {
        source.close();
        status.textContent = JSON.parse(event.data).detail;
      });
      source.onerror = () => {
        status.textContent = source.readyState === EventSource.CLOSED ? panel.dataset.idle : "Reconnecting…";
        if (source.readyState === EventSource.CLOSED && panel.dataset.ended !== "true") setTimeout(() => open(attempt), 5000);
      };
    };

    const showOne = async (attempt) => {
      source?.close();
      status.textContent = "Loading…";
      try {
        const answer = await fetch(`${panel.dataset.address}?attempt=${attempt}&tail=${TAIL_LINES}`, { headers: { Accept: "text/plain" } });
        clear();
        if (answer.ok) renderer.write(await answer.text());
        else renderer.say("This attempt's output cannot be read now.");
        status.textContent = `The last ${TAIL_LINES} lines at most`;
        shows(attempt);
        toEnd();
      } catch {
        status.textContent = "The server is away; choose the attempt again.";
      }
    };

    pause.hidden = false;
    pause.addEventListener("click", () => setFollowing(!following));
    box.addEventListener("scroll", () => {
      const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 30;
      if (following !== atEnd) setFollowing(atEnd);
    });
    choice.addEventListener("change", () => {
      const newest = choice.value === choice.options[choice.options.length - 1].value;
      if (newest && panel.dataset.ended !== "true") open(choice.value);
      else showOne(choice.value);
    });
    setFollowing(true);
    if (panel.dataset.ended !== "true") open(null);
    else if (choice.options.length) showOne(choice.value);
    else status.textContent = panel.dataset.idle;
  };

  const begin = () => {
    const live = document.getElementById("run-live");
    const panel = document.getElementById("run-log");
    if (live) keepState(live, document.getElementById("run-said"));
    if (panel) followLog(panel);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
