// Figures over the last hour. A point has the least and the most of its time; the most is drawn, so that peaks stay.
function niceMax(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((times) => times * unit).find((nice) => nice >= value * 1.02) ?? value;
}
// Steps between labels of time, in milliseconds.
const STEPS_MS = [10e3, 20e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3];

// A longer pause than this, and than some usual ones, is no interval between two looks: narrows or its machine slept.
const PAUSE_MS = 30e3;
const USUAL_PAUSES = 5;

// Points with nothing between those that a pause parts: what was meanwhile nobody knows.
function parted(points) {
  const pauses = points.slice(1).map(([ms], at) => ms - points[at][0]);
  const usual = [...pauses].sort((a, b) => a - b)[Math.floor(pauses.length / 2)] ?? 0;
  const longest = Math.max(PAUSE_MS, usual * USUAL_PAUSES);
  return points.flatMap((point, at) => (at > 0 && pauses[at - 1] > longest ? [[point[0], null], point] : [point]));
}

function pathOf(points, x, y) {
  let d = "";
  let isOpen = false;
  for (const [at, value] of points) {
    if (value === null) {
      isOpen = false;
      continue;
    }
    d += `${isOpen ? "L" : "M"}${x(at).toFixed(1)},${y(value).toFixed(1)}`;
    isOpen = true;
  }
  return d;
}

// The ground below a line, as far as it is known.
function areaOf(points, x, y) {
  let d = "";
  let known = [];
  for (const point of [...points, [0, null]]) {
    if (point[1] !== null) {
      known.push(point);
      continue;
    }
    if (known.length > 1) d += `${pathOf(known, x, y)}L${x(known.at(-1)[0])},${y(0)}L${x(known[0][0])},${y(0)}Z`;
    known = [];
  }
  return d;
}

// Events that have a mark: recoveries are the line itself.
const marked = (events, span) => events.filter((event) =>
  event.topic !== "recovery" && event.at_ms >= span[0] && event.at_ms <= span[1]);

// What the marks and shades are, where there are any.
function drawMarkKeys(hasMarks, hasTrials) {
  const sign = (kind, shape, words) => el("span", {}, draw("svg", { viewBox: "0 0 34 10", "aria-hidden": "true" },
    draw("path", { class: kind, d: shape })), words);
  return [hasMarks && sign("event-mark", "M17,1 l4,8 h-8 Z", "something happened: point at it, or see Events"),
    hasTrials && sign("trial", "M0,0 h34 v10 h-34 Z", "steer had a setting on trial")].filter(Boolean);
}

// The sum of all recoveries, with marks where something happened, a shade while steer tried a setting, and a line at the
// moment that is shown.
function drawTotal(history, events, steps, span, shownMs, width) {
  const height = 190;
  const [left, right, top, bottom] = [44, 6, 10, 40];
  const most = history.figures.total?.[1] ?? [];
  const max = niceMax(Math.max(1000, ...most.filter((value) => value !== null)));
  const x = (ms) => left + ((ms - span[0]) / (span[1] - span[0])) * (width - left - right);
  const y = (value) => top + (1 - value / max) * (height - top - bottom);
  const times = history.from_ms;
  const upper = parted(times.map((ms, at) => [ms, most[at] ?? null]));
  const grid = [0, 0.5, 1].map((share) => draw("g", {},
    draw("line", { class: share ? "grid" : "base", x1: left, x2: width - right, y1: y(max * share), y2: y(max * share) }),
    draw("text", { class: "tick", x: left - 8, y: y(max * share) + 4, "text-anchor": "end" },
      share ? `${threeDigits((max * share) / 1e3).replace(/\.0+$/, "")}` : "0")));
  const step = STEPS_MS.find((ms) => (span[1] - span[0]) / ms <= width / 90) ?? 1800e3;
  const offset = new Date(span[0]).getTimezoneOffset() * 60e3;
  const labels = [];
  for (let ms = Math.ceil((span[0] - offset) / step) * step + offset; ms <= span[1]; ms += step) {
    if (x(ms) < left + 12 || x(ms) > width - 26) continue;
    labels.push(draw("text", { class: "tick", x: x(ms), y: height - bottom + 18, "text-anchor": "middle" },
      (step < 60e3 ? clock : minute).format(ms)));
  }
  const happened = marked(events, span).map((event) => draw("path", { class: "event-mark",
    d: `M${x(event.at_ms).toFixed(1)},${height - 16} l4,8 h-8 Z` }, draw("title", {}, `${clock.format(event.at_ms)} ${event.sentence}`)));
  const trials = steps.filter((step) => (step.ended_ms ?? span[1]) >= span[0]).map((step) => {
    const [from, to] = [step.at_ms, step.ended_ms ?? span[1]].map((ms) => x(Math.min(span[1], Math.max(span[0], ms))));
    return draw("rect", { class: "trial", x: from, y: top, width: Math.max(2, to - from), height: height - top - bottom },
      draw("title", {}, `${step.setting} ${step.from} → ${step.to}: ${step.result}`));
  });
  const cursor = shownMs !== null && draw("line", { class: "cursor", x1: x(shownMs), x2: x(shownMs), y1: top, y2: height - bottom });
  const now = most.at(-1) ?? null;
  const peak = Math.max(0, ...most.filter((value) => value !== null));
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `Recovered bytes a second of the whole cluster; highest ${rate(peak * 1e3)}, now ${now === null ? "not known" : rate(now * 1e3)}` },
    ...trials, ...grid,
    draw("path", { class: "total-band", d: areaOf(upper, x, y) }), draw("path", { class: "total-line", d: pathOf(upper, x, y) }),
    ...labels, ...happened, cursor);
}

// A small chart for each node that recoveries go to or read from and whose name is wanted: those with the highest peaks,
// by name.
function drawMultiples(history, span, shown, isWanted) {
  const peaks = new Map();
  const peakOf = ([, most]) => Math.max(0, ...most.filter((value) => value !== null));
  for (const [name, figure] of Object.entries(history.figures)) {
    if (!name.includes(" ")) continue;
    const node = name.slice(name.indexOf(" ") + 1);
    if (!isWanted(node)) continue;
    peaks.set(node, Math.max(peaks.get(node) ?? 0, peakOf(figure)));
  }
  const sorted = [...peaks].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const max = niceMax(Math.max(1000, sorted[0]?.[1] ?? 0));
  const [width, height] = [240, 64];
  const total = history.figures.total?.[1] ?? [];
  const x = (ms) => ((ms - span[0]) / (span[1] - span[0])) * width;
  const y = (value) => 2 + (1 - value / max) * (height - 4);
  const line = (name, kind) => {
    const figure = history.figures[name];
    if (!figure) return null;
    // A node that is not named moved nothing, unless nobody told anything: then it is not known.
    const points = history.from_ms.map((ms, at) => [ms, (total[at] ?? null) === null ? null : figure[1][at] ?? 0]);
    return draw("path", { class: kind, d: pathOf(parted(points), x, y) });
  };
  const calm = sorted.slice(0, 12).sort(([a], [b]) => byName(a, b));
  const charts = calm.map(([node, peak]) => {
    const [out, into] = Object.hasOwn(shown.node_rates, node) ? shown.node_rates[node] : [0, 0];
    const words = [into > 0 && `in ${rate(into)}`, out > 0 && `out ${rate(out)}`].filter(Boolean).join(", ") || "idle";
    return el("figure", { "data-key": node },
      el("figcaption", {}, el("b", {}, node), el("span", {}, words)),
      draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", preserveAspectRatio: "none",
        "aria-label": `${node}: ${words}; highest of the last hour ${rate(peak * 1e3)}` },
        draw("line", { class: "base", x1: 0, x2: width, y1: y(0), y2: y(0) }),
        line(`in ${node}`, "into"), line(`out ${node}`, "outof")));
  });
  return { charts, hidden: sorted.length - charts.length, max };
}
