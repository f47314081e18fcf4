// What what-if said would happen: bytes that are left, and over them what is measured once it does happen.
function size(bytes) {
  const unit = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6]].find(([, unit]) => bytes >= unit) ?? ["kB", 1e3];
  return `${threeDigits(bytes / unit[1])} ${unit[0]}`;
}
function lasting(seconds) {
  if (seconds < 99.95) return `${threeDigits(seconds)} s`;
  const whole = Math.round(seconds);
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

// Points of what was left since copies began to be missing; none unless the nodes that were asked about are gone, and
// somebody saw it begin after the answer. A copy that waits has no size yet: it is taken to be as large as predicted.
function measured(outlook, history, nodes) {
  const isGone = (name) => nodes.length > 0 && !nodes.some((node) => node.cells[0] === name && !node.gone);
  if (outlook.lost.length === 0 || !outlook.lost.every(isGone)) return { points: [] };
  const peak = outlook.curve.reduce((most, point) => (point.bytes > most.bytes ? point : most), outlook.curve[0]);
  const perCopy = peak?.copies > 0 ? peak.bytes / peak.copies : 0;
  const figure = (name, at) => history.figures[name]?.[1][at] ?? null;
  const left = history.from_ms.map((_, at) => {
    const [bytes, copies] = [figure("left", at), figure("waiting", at)];
    return bytes === null || copies === null ? null : bytes * 1e3 + copies * perCopy;
  });
  const last = left.findLastIndex((bytes) => bytes > 0);
  let first = last;
  while (first > 0 && left[first - 1] !== 0) first -= 1;
  if (first < 1 || history.from_ms[first] < outlook.at_ms) return { points: [] };
  const since = history.from_ms[first];
  return { since, points: left.slice(first, last + 2).map((bytes, at) => [(history.from_ms[first + at] - since) / 1e3, bytes]) };
}

function drawOutlook(outlook, history, nodes, width) {
  const [answer, ...others] = outlook.answers;
  const { since, points } = measured(outlook, history, nodes);
  const predicted = outlook.curve.map((point) => [point.t_s, point.bytes]);
  const known = [...predicted, ...points].filter(([, bytes]) => bytes !== null);
  const max = niceMax(Math.max(1000, ...known.map(([, bytes]) => bytes)));
  const [least, most] = answer.between_s;
  const ends = Math.max(1, most, ...known.map(([seconds]) => seconds)) * 1.02;
  const height = 150;
  const [left, right, top, bottom] = [64, 6, 10, 26];
  const x = (seconds) => left + (seconds / ends) * (width - left - right);
  const y = (bytes) => top + (1 - bytes / max) * (height - top - bottom);
  const grid = [0, 0.5, 1].map((share) => draw("g", {},
    draw("line", { class: share ? "grid" : "base", x1: left, x2: width - right, y1: y(max * share), y2: y(max * share) }),
    draw("text", { class: "tick", x: left - 8, y: y(max * share) + 4, "text-anchor": "end" }, share ? size(max * share) : "0")));
  const labels = [0.25, 0.5, 0.75].map((share) => draw("text", { class: "tick", x: x(ends * share), y: height - 8, "text-anchor": "middle" },
    lasting(ends * share)));
  const words = `${outlook.asked}: ${answer.words}`;
  const now = points.findLast(([, bytes]) => bytes !== null);
  const hasBytes = known.some(([, bytes]) => bytes > 0);
  const picture = hasBytes && draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `Bytes that are left, predicted: at most ${size(Math.max(0, ...predicted.map(([, bytes]) => bytes)))}, ` +
      `${answer.words}${now ? `; measured ${lasting(now[0])} after it began: ${size(now[1])}` : ""}` },
    draw("rect", { class: "within", x: x(least), y: top, width: Math.max(2, x(most) - x(least)), height: height - top - bottom },
      draw("title", {}, answer.words)),
    ...grid, draw("path", { class: "predicted", d: pathOf(predicted, x, y) }),
    points.length > 0 && draw("path", { class: "total-line", d: pathOf(points, x, y) }), ...labels);
  return [
    el("p", { class: "hint" }, `What narrows what-if said of the cluster as it was on ${day.format(outlook.at_ms)}.`),
    el("p", { class: "says" }, prose(words)),
    ...others.map((other) => el("p", { class: "more" }, prose(`With ${other.variant}: ${other.words}`))),
    picture,
    hasBytes && el("p", { class: "hint legend-line" }, key("predicted", "left as predicted"),
      el("span", {}, `shaded: when it may be ${outlook.until}`),
      points.length > 0 ? key("total-line", `measured since ${clock.format(since)}; copies that wait are taken to be as large as predicted`)
        : outlook.lost.length > 0 && el("span", {}, "What is measured is drawn over it once that happens.")),
  ];
}
