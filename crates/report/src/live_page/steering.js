// What steer did in the last hour: a row for each setting that it tried.
// The steps up to a moment, as they stood then.
function stepsAt(steering, atMs) {
  const isLater = (ms) => ms !== null && ms > atMs + 999;
  return (steering?.steps ?? []).filter((step) => !isLater(step.at_ms)).map((step) =>
    (isLater(step.ended_ms) ? { ...step, ended_ms: null, after: "-", got: "-", result: "on trial", why: "" } : step));
}

function drawSteps(steps) {
  const n = { class: "n" };
  // What was expected and what came of it come first: behind columns for the time and the values they are out of sight.
  const rows = [...steps].reverse().map((step) => el("tr", {},
    el("th", { scope: "row" }, step.setting, el("small", {},
      el("time", { datetime: new Date(step.at_ms).toISOString() }, clock.format(step.at_ms)), ` ${step.from} → ${step.to}`)),
    el("td", {}, step.result), el("td", n, step.expected), el("td", n, step.got),
    el("td", n, step.before), el("td", n, step.after), el("td", {}, step.holds || "-"), el("td", {}, step.why || "-")));
  const head = [["setting, from → to"], ["result"], ["expected, up to", true], ["got", true],
    ["before", true], ["after", true], ["what held"], ["why"]];
  return rows.length > 0 ? [table(head, rows)] : [none("No setting was tried.")];
}
