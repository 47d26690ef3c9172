/* Draws how long a job's runs took: a bar a run, in the colour of its end. Keeps the cells' hints within the page. */
"use strict";
(() => {
  const canvas = document.getElementById("durations");
  const style = getComputedStyle(document.documentElement);
  const token = (name) => style.getPropertyValue(name).trim();

  const length = (seconds) => {
    if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
    if (seconds < 60) return `${seconds.toFixed(1)} s`;
    const whole = Math.round(seconds);
    const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
    return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
  };

  const draw = () => {
    const points = JSON.parse(canvas.dataset.points);
    const colours = points.map((point) => token(`--${point.kind}`));
    return new Chart(canvas, {
      type: "bar",
      data: {
        labels: points.map((point) => globalThis.punctualTimes.written(point.at)),
        datasets: [{ data: points.map((point) => point.seconds), backgroundColor: colours, maxBarThickness: 18 }],
      },
      options: {
        animation: false,
        maintainAspectRatio: false,
        plugins: {
          legend: { display: false },
          tooltip: { callbacks: { label: (item) => `${points[item.dataIndex].state}: ${length(item.parsed.y)}` } },
        },
        scales: {
          x: { display: false },
          y: { beginAtZero: true, grid: { color: token("--line") }, ticks: { color: token("--fg-soft"), callback: length } },
        },
      },
    });
  };

  if (canvas) {
    let chart = draw();
    new MutationObserver(() => {
      chart.destroy();
      chart = draw();
    }).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] }); // light or dark
  }

  const keepWithin = (cell) => {
    const tip = cell.querySelector(".punctual-tip");
    cell.style.setProperty("--tip-shift", "0px");
    const over = tip.getBoundingClientRect().right + 8 - document.documentElement.clientWidth;
    if (over > 0) cell.style.setProperty("--tip-shift", `${-over}px`);
  };
  document.querySelectorAll("a.punctual-cell").forEach((cell) => {
    for (const event of ["mouseenter", "focus"]) cell.addEventListener(event, () => keepWithin(cell));
  });
})();
