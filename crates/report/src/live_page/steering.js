// What steer did in the last hour: a row for each setting that it tried.
// The steps up to a moment, as they stood then.
function stepsAt(steering, atMs) {
  const isLater = (ms) => ms !== null && ms > atMs + 999;
  return (steering?.steps ?? []).filter((step) => !isLater(step.at_ms)).map((step) =>
    (isLater(step.ended_ms) ? { ...step, ended_ms: null, after: "-", got: "-", result: "on trial", why: "" } : step));
}

function drawSteps(steps) {
  const n = { class: "n" };
  const rows = [...steps].reverse().map((step) => el("tr", {},
    el("th", { scope: "row" }, el("time", { datetime: new Date(step.at_ms).toISOString() }, clock.format(step.at_ms))),
    el("td", {}, step.setting), el("td", n, `${step.from} → ${step.to}`), el("td", {}, step.result),
    el("td", n, step.before), el("td", n, step.expected), el("td", n, step.after), el("td", n, step.got),
    el("td", {}, step.holds || "-"), el("td", {}, step.why || "-")));
  const head = [["time"], ["setting"], ["from → to", true], ["result"], ["before", true], ["expected, up to", true], ["after", true],
    ["got", true], ["what held"], ["why"]];
  return rows.length > 0 ? [table(head, rows)] : [none("No setting was tried.")];
}
