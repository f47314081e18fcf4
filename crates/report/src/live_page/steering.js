// What steer did in the last hour: each of its runs, with a row for each setting that it tried.
const isLater = (ms, atMs) => ms !== null && ms > atMs + 999;

// The runs up to a moment, as they stood then.
function runsAt(steering, atMs) {
  const before = (steps) => steps.filter((step) => !isLater(step.at_ms, atMs)).map((step) =>
    (isLater(step.ended_ms, atMs) ? { ...step, ended_ms: null, after: "-", got: "-", result: "on trial", why: "" } : step));
  return (steering?.runs ?? []).filter((run) => !isLater(run.at_ms, atMs)).map((run) =>
    ({ ...run, steps: before(run.steps), end: run.end && !isLater(run.end.at_ms, atMs) ? run.end : null }));
}

// A name that may be broken after its dots and lines, and is copied as it is.
const breakable = (name) => name.split(/(?<=[._])/).flatMap((part, at) => (at > 0 ? [el("wbr", {}), part] : [part]));

function drawRun(run, isLast) {
  const time = (ms) => el("time", { datetime: new Date(ms).toISOString() }, clock.format(ms));
  const n = { class: "n" };
  // What came of it comes first: behind other columns it is out of sight.
  const rows = [...run.steps].reverse().map((step) => el("tr", {},
    el("th", { scope: "row" }, breakable(step.setting), el("small", {}, time(step.at_ms), ` ${step.from} → ${step.to}`)),
    el("td", n, step.got, el("small", {}, `of up to ${step.expected}`)),
    el("td", n, step.after, el("small", {}, `before ${step.before}`)),
    el("td", { class: "reason" }, step.result,
      el("small", {}, prose([step.holds && `${step.holds} held`, step.why].filter(Boolean).join("; "))))));
  const head = [["setting, from → to"], ["brought", true], ["rate after", true], ["result"]];
  // One that was killed told no end, and the next one has begun since.
  const untold = isLast ? ", goes on" : ", ended untold";
  return el("article", { class: "run", "data-key": String(run.at_ms) },
    el("h3", {}, run.allowed ? "Begun at " : "From ", time(run.at_ms), run.end ? [", ended at ", time(run.end.at_ms)] : untold),
    run.allowed && el("p", { class: "more" }, prose(`Allowed: ${run.allowed}.`)),
    rows.length > 0 ? table(head, rows) : none("No setting was tried."),
    run.end && el("p", { class: "more" }, prose(`Ended: ${run.end.why}.`)));
}

const drawRuns = (runs) => runs.map((run, at) => drawRun(run, at === runs.length - 1)).reverse();
