// Recoveries, nodes, copies that wait, events.
function table(head, rows) {
  return el("table", {}, el("thead", {}, el("tr", {}, ...head.map(([words, isNumber]) => el("th", { scope: "col", class: isNumber && "n" }, words)))),
    el("tbody", {}, ...rows));
}

function progress(done) {
  if (done === null) return "-";
  return el("span", { class: "progress" },
    draw("svg", { viewBox: "0 0 84 8", "aria-hidden": "true" },
      draw("rect", { class: "track", width: 84, height: 8, rx: 2 }),
      draw("rect", { class: "full", width: (84 * done).toFixed(1), height: 8, rx: 2 })),
    // Nothing is whole before its last byte.
    percent(done < 1 ? Math.min(done, 0.99) : 1));
}

function drawRecoveries(frame) {
  if (frame.recoveries.length === 0) return [none("Nothing recovers.")];
  const n = { class: "n" };
  const rows = frame.recoveries.map((one) => el("tr", { class: one.ended && "over" },
    // The path stands below the name: in a column of its own it is out of sight, and copies of a shard look alike.
    el("th", { scope: "row" }, prose(one.name), el("small", {}, prose(one.path.replace(" > ", " → ")))),
    el("td", n, progress(one.done)), el("td", n, one.now), el("td", n, one.eta), el("td", {}, one.stage),
    el("td", n, one.amount), el("td", n, one.since)));
  const head = [["shard, from → to"], ["done", true], ["now", true], ["to go", true], ["stage"], ["bytes", true], ["since change", true]];
  return [table(head, rows), more(frame.recoveries_more)];
}

const NODES_MAX = 16;
function drawNodes(frame, isWanted) {
  const wanted = frame.nodes.filter((node) => isWanted(node.cells[0]));
  const rates = (name) => (Object.hasOwn(frame.node_rates, name) ? frame.node_rates[name] : [0, 0]);
  const moved = (node) => rates(node.cells[0]).reduce((out, into) => out + into);
  const weight = (node) => moved(node) + (node.gone ? Infinity : 0);
  const sorted = [...wanted].sort((a, b) => weight(b) - weight(a) || 0);
  // Those that move most, by name: a row that jumps with every look is read by nobody.
  const calm = sorted.slice(0, NODES_MAX).sort((a, b) => Boolean(b.gone) - Boolean(a.gone) || byName(a.cells[0], b.cells[0]));
  // A column of which no node tells anything is not there.
  const isTold = (at) => at === 0 || frame.nodes.some((node) => /[^-/ ]/.test(node.cells[at]));
  const told = (cells) => cells.filter((_, at) => isTold(at));
  const rows = calm.map((node) => el("tr", { class: node.gone && "gone" },
    el("th", { scope: "row" }, prose(node.cells[0])), ...told(node.cells).slice(1).map((cell) => el("td", { class: "n" }, cell))));
  if (rows.length === 0) return [none(frame.nodes.length ? "No node has such a name." : "No node was asked yet.")];
  const head = [["node"], ["cpu", true], ["disk r/w MB/s (busy)", true], ["net rx/tx MB/s", true], ["paused at once", true],
    ["recoveries out / in", true], ["heap", true]];
  return [table(told(head), rows), more(sorted.length - rows.length, " node; part of its name finds it", " nodes; part of a name finds them")];
}

const lines = (all, hidden) => [el("ul", { class: "plain" }, ...all.map((line) => el("li", {}, prose(line)))), more(hidden)];

const EVENTS_SHOWN = 60;
function drawEvents(events) {
  if (events.length === 0) return [none("Nothing happened since narrows looks.")];
  const items = events.slice(-EVENTS_SHOWN).reverse().map((event) => el("li", {},
    el("time", { datetime: new Date(event.at_ms).toISOString() }, clock.format(event.at_ms)),
    el("span", { class: "topic" }, event.topic), prose(event.sentence)));
  return [el("ul", { class: "plain", tabindex: "0", "aria-label": "Events, the latest first" }, ...items)];
}
