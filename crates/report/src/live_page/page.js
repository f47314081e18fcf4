// Clusters as they were sent, which of them is shown, and which moment of it: null is now.
const HOUR_MS = 3600e3;
const SPAN_MIN_MS = 120e3;
// So many points are more than whoever sends them keeps: it has them in fewer.
const POINTS_MAX = 1300;
const state = { clusters: [], shown: 0, past: null, isAway: false, heardMs: 0 };
let source = null;

const cluster = () => state.clusters[state.shown];
const frameShown = () => (state.past ? state.past.frame : cluster()?.frame);

function spanOf(history) {
  const end = history.from_ms.at(-1) ?? Date.now();
  const begin = Math.max(history.from_ms[0] ?? end, end - HOUR_MS);
  return [Math.min(begin, end - SPAN_MIN_MS), end];
}

function takeFigures(history, frame) {
  const { rate_bytes_per_s: total, left_bytes: left, waiting } = frame.totals;
  const figures = {};
  if (!frame.trouble && total !== null) figures.total = total / 1e3;
  if (!frame.trouble && left !== null) figures.left = left / 1e3;
  if (!frame.trouble && waiting !== null) figures.waiting = waiting;
  for (const [name, [out, into]] of Object.entries(frame.trouble ? {} : frame.node_rates)) {
    if (out > 0) figures[`out ${name}`] = out / 1e3;
    if (into > 0) figures[`in ${name}`] = into / 1e3;
  }
  history.from_ms.push(frame.at_ms);
  const points = history.from_ms.length;
  for (const name of new Set([...Object.keys(history.figures), ...Object.keys(figures)])) {
    const ends = (history.figures[name] ??= [[], []]);
    for (const end of ends) {
      while (end.length < points - 1) end.push(null);
      end.push(name in figures ? Math.round(figures[name]) : null);
    }
  }
  while (history.from_ms[0] < frame.at_ms - HOUR_MS) {
    history.from_ms.shift();
    for (const ends of Object.values(history.figures)) ends.forEach((end) => end.shift());
  }
}

function paintTabs() {
  const tabs = state.clusters.map((one, at) => el("button", { type: "button", role: "tab", id: `tab-${at}`, "aria-controls": "view",
    "aria-selected": String(at === state.shown), tabindex: at === state.shown ? "0" : "-1",
    "aria-label": `${one.name}, ${one.frame?.health ?? "unknown"}` },
    el("span", { class: `mark ${one.frame?.health ?? "unknown"}`, "aria-hidden": "true" }), el("span", {}, one.name)));
  byId("tabs").hidden = tabs.length < 2;
  show(byId("tabs"), ...tabs);
}

function paintStanding(frame) {
  const trouble = state.isAway
    ? `narrows has not been heard since ${clock.format(state.heardMs)}; what is shown is as old. Trying again.`
    : frame?.trouble;
  byId("away").hidden = !trouble;
  if (byId("away").textContent !== (trouble ?? "")) byId("away").textContent = trouble ?? "";
  document.body.classList.toggle("stale", Boolean(trouble));
  const pulse = state.isAway ? "not connected" : state.past ? "history"
    : `${frame?.trouble ? "no answer" : "live"}, ${clock.format(state.heardMs)}`;
  byId("pulse").textContent = pulse;
  byId("past").hidden = !state.past;
  if (state.past) byId("past-text").textContent = `As it was at ${clock.format(state.past.frame.at_ms)}.`;
}

function paintTime(history, span) {
  const slider = byId("time");
  slider.min = Math.floor(span[0] / 1000) * 1000;
  slider.max = Math.ceil(span[1] / 1000) * 1000;
  if (!state.past && document.activeElement !== slider) slider.value = slider.max;
  if (!state.past && Number(slider.value) > span[1] - 2000) slider.value = slider.max;
  const moment = state.past ? clock.format(state.past.frame.at_ms) : "now";
  slider.setAttribute("aria-valuetext", moment);
}

const widthOf = (id) => Math.max(280, Math.floor(byId(id).clientWidth));

function paint() {
  paintTabs();
  const frame = frameShown();
  paintStanding(frame);
  if (!frame) return;
  const { history, events, steering, outlook } = cluster();
  document.title = `${frame.health}: ${frame.headline}`;
  byId("title").textContent = frame.title;
  byId("health").className = `health ${frame.health}`;
  show(byId("health"), el("span", { class: `mark ${frame.health}`, "aria-hidden": "true" }), frame.health);
  show(byId("headline"), ...prose(frame.headline));
  show(byId("totals"), ...drawTotals(frame.totals));
  const isOver = frame.held.length > 0 && frame.held.every((one) => one.over);
  show(byId("held-title"), isOver ? "What held" : "What holds");
  show(byId("held"), ...drawHeld(frame));
  show(byId("flow"), ...(frame.flows.length ? drawFlow(frame.flows, frame.flows_more, frame.held, widthOf("flow"))
    : [none("Nothing goes from node to node.")]));
  const span = spanOf(history);
  const soFar = state.past ? events.filter((event) => event.at_ms <= state.past.frame.at_ms + 999) : events;
  const runs = runsAt(steering, state.past?.frame.at_ms ?? Infinity);
  const steps = runs.flatMap((run) => run.steps);
  show(byId("chart"), drawTotal(history, events, steps, span, state.past?.frame.at_ms ?? null, widthOf("chart")));
  paintTime(history, span);
  const part = byId("filter").value.trim().toLowerCase();
  const isWanted = (node) => node.toLowerCase().includes(part);
  const small = drawMultiples(history, span, frame, isWanted);
  byId("legend").hidden = small.charts.length === 0;
  const keys = drawMarkKeys(marked(events, span).length > 0, steps.length > 0);
  byId("marks").hidden = keys.length === 0;
  show(byId("marks"), ...keys);
  show(byId("legend"), key("into", "into the node"), key("outof", "out of it"),
    el("span", {}, `each chart up to ${rate(small.max * 1e3)}`),
    small.hidden > 0 && el("span", {}, small.hidden === 1 ? "1 more node is not drawn: part of its name finds it"
      : `${small.hidden} more nodes are not drawn: part of a name finds them`));
  show(byId("small"), ...small.charts);
  byId("steering-part").hidden = !steering;
  show(byId("steering"), ...drawRuns(runs));
  byId("outlook-part").hidden = !outlook;
  show(byId("outlook"), ...(outlook ? drawOutlook(outlook, history, cluster().frame.nodes, widthOf("outlook")) : []));
  show(byId("recoveries"), ...drawRecoveries(frame));
  show(byId("waiting"), ...(frame.waiting.length ? lines(frame.waiting, frame.waiting_more) : [none("No copy waits for a node.")]));
  byId("followers-part").hidden = frame.followers.length === 0;
  show(byId("followers"), ...lines(frame.followers, 0));
  show(byId("events"), ...drawEvents(soFar));
  byId("nodes-title").textContent = part ? `Nodes whose name has “${part}”` : "Nodes";
  show(byId("nodes"), ...drawNodes(frame, isWanted));
  byId("gaps-part").hidden = frame.gaps.length === 0;
  show(byId("gaps"), ...lines(frame.gaps, 0));
  byId("about").textContent = `${frame.about}.`;
  byId("zone").textContent = `Times are those of ${zone}.`;
}

// Whoever went elsewhere meanwhile does not want the answer any more.
let asked = 0;
async function goTo(ms) {
  const own = ++asked;
  try {
    const answer = await fetch(`${location.origin}/at?cluster=${state.shown}&ms=${Math.round(ms)}`);
    const frame = answer.ok ? await answer.json() : null;
    if (frame === null || own !== asked) return;
    state.past = { frame };
  } catch {
    return;
  }
  paint();
}
function goLive() {
  asked += 1;
  state.past = null;
  byId("time").value = byId("time").max;
  paint();
}
function choose(at) {
  asked += 1;
  state.shown = (at + state.clusters.length) % state.clusters.length;
  state.past = null;
  window.history.replaceState(null, "", `#${state.shown + 1}`);
  paint();
}

function heard() {
  state.isAway = false;
  state.heardMs = Date.now();
}

function connect() {
  source?.close();
  source = new EventSource(`${location.origin}/events`);
  source.addEventListener("all", (event) => {
    heard();
    state.clusters = JSON.parse(event.data);
    if (state.shown >= state.clusters.length) state.shown = 0;
    paint();
  });
  source.addEventListener("look", (event) => {
    heard();
    const look = JSON.parse(event.data);
    const one = state.clusters[look.cluster];
    if (!one) return;
    // Nodes come where they were asked for again.
    look.frame.nodes ??= one.frame.nodes;
    one.frame = look.frame;
    // What steer and what-if left comes where it is new.
    if ("steering" in look) Object.assign(one, { steering: look.steering, outlook: look.outlook });
    one.events = one.events.concat(look.events).slice(-400);
    takeFigures(one.history, look.frame);
    if (one.history.from_ms.length > POINTS_MAX) return connect();
    paint();
  });
  source.addEventListener("error", () => {
    if (!state.isAway && state.heardMs > 0) {
      state.isAway = true;
      paint();
    }
    state.isAway = true;
    // What was refused the browser does not try again by itself.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  });
}

let waits = 0;
byId("time").addEventListener("input", (event) => {
  const ms = Number(event.target.value);
  clearTimeout(waits);
  waits = setTimeout(() => (ms >= Number(event.target.max) - 1000 ? goLive() : goTo(ms)), 80);
});
byId("live").addEventListener("click", goLive);
byId("filter").addEventListener("input", paint);
byId("tabs").addEventListener("click", (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) choose(Number(tab.id.slice(4)));
});
byId("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  choose(state.shown + step);
  byId(`tab-${state.shown}`).focus();
});
byId("chart").addEventListener("click", (event) => {
  const picture = byId("chart").querySelector("svg");
  const one = cluster();
  if (!picture || !one) return;
  const box = picture.getBoundingClientRect();
  const share = ((event.clientX - box.left) / box.width * widthOf("chart") - 44) / (widthOf("chart") - 50);
  const [begin, end] = spanOf(one.history);
  byId("time").value = begin + share * (end - begin);
  goTo(begin + Math.min(1, Math.max(0, share)) * (end - begin));
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.past) goLive();
});
new ResizeObserver(() => paint()).observe(byId("view"));
state.shown = Math.max(0, Number(location.hash.slice(1)) - 1 || 0);
connect();
