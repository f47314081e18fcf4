// What holds, as sentences; what they rest on is folded away.
const ALSO_MAX = 4;

function pairs(list) {
  const told = (words) => (typeof words === "string" ? prose(words) : words);
  return el("dl", {}, ...list.filter(([, words]) => words).flatMap(([name, words]) => [el("dt", {}, name), el("dd", {}, told(words))]));
}

function drawFinding(held) {
  const subjects = held.subjects.join(", ") + (held.subjects_more > 0 ? ` and ${held.subjects_more} more` : "");
  const evidence = held.evidence.map((line) => [`${line.api} ${line.field}`, line.value]);
  const reasons = held.ruled_out.map((one) => [`${one.by}: ${one.class}`, one.why]);
  const how = held.how && el("code", {}, held.how);
  return el("article", { class: `finding ${held.tint}`, "data-key": `${held.class} ${held.place}` },
    el("p", { class: "class" }, held.class, held.strength > 0 && el("span", {}, `strength ${percent(held.strength)}`)),
    el("p", { class: "says" }, prose(held.sentence)),
    held.also.length > 0 && el("p", { class: "also" }, held.place.startsWith("between ") ? "The same " : "The same at ", prose(held.also.slice(0, ALSO_MAX).join(", ")),
      held.also.length > ALSO_MAX && ` and ${held.also.length - ALSO_MAX} more`),
    held.lift && el("p", { class: "lift" }, prose(`→ ${held.lift}`)),
    el("details", { class: "evidence" }, el("summary", {}, "Evidence, and how to lift it"),
      pairs([["holds", subjects], ...evidence, ["do", held.action], ["how", how], ["gain", held.gain], ["next", held.next], ["doubt", held.doubt]])),
    reasons.length > 0 && el("details", { class: "ruled-out" },
      el("summary", {}, `What speaks against ${reasons.length === 1 ? "1 other cause" : `${reasons.length} other causes`}`), pairs(reasons)));
}

function drawHeld(frame) {
  const held = frame.held.map(drawFinding);
  const well = frame.healthy.slice(0, 6).map((sentence) => el("p", { class: "well" }, prose(sentence)));
  const notes = frame.notes.map((note) => el("p", { class: "note" }, prose(`Note: ${note}.`)));
  const rest = more(frame.held_more, " finding: narrows explain", " findings: narrows explain");
  return [...(held.length + well.length > 0 ? [...held, rest, ...well] : [el("p", { class: "well" }, prose(frame.headline))]), ...notes];
}

function drawTotals(totals) {
  const figure = (name, words, note, isLong) => el("div", { class: isLong && "long" }, el("dt", {}, name),
    el("dd", {}, words, note && el("small", {}, note)));
  return [
    figure("active recoveries", String(totals.active)),
    figure("copies that wait", totals.waiting === null ? "-" : String(totals.waiting)),
    figure("recovered", totals.rate),
    figure("left", totals.left),
    figure("green", totals.green, totals.green_note, true),
  ];
}
