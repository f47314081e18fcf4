// Elements, and numbers as narrows writes them everywhere. Text goes in as text.
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}
const el = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

// Makes what is there like what is wanted, so that focus, selection and what was unfolded stay.
function morph(old, now) {
  const isOther = old.nodeType !== now.nodeType || old.nodeName !== now.nodeName ||
    (old.nodeType === 1 && old.getAttribute("data-key") !== now.getAttribute("data-key"));
  if (isOther) return old.replaceWith(now);
  if (old.nodeType === 3) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!now.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of now.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const have = [...old.childNodes];
  const want = [...now.childNodes];
  want.forEach((node, at) => (at < have.length ? morph(have[at], node) : old.append(node)));
  have.slice(want.length).forEach((node) => node.remove());
}
function show(parent, ...children) {
  morph(parent, filled(parent.cloneNode(false), {}, children));
}

function threeDigits(value) {
  const size = Math.abs(value);
  if (size >= 9999.5) return value.toFixed(0).replace(/(?<=\d)(?=(\d{3})+$)/g, "\u202f");
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  return size >= 0.0995 || size === 0 ? value.toFixed(2) : value.toFixed(4);
}
const rate = (bytesPerS) => `${threeDigits(bytesPerS / 1e6)} MB/s`;
const more = (count, one, many) => (count > 0 ? el("p", { class: "more" }, `and ${count} more${(count === 1 ? one : many) ?? ""}`) : null);
const key = (kind, words) => el("span", {}, draw("svg", { viewBox: "0 0 34 10", "aria-hidden": "true" },
  draw("path", { class: kind, d: "M0,5H34" })), words);
const none = (text) => el("p", { class: "none" }, text);
function percent(share) {
  const size = share * 100;
  if (size >= 9.95) return `${Math.round(size)} %`;
  if (size >= 0.05) return `${size.toFixed(1)} %`;
  return size > 0 ? "< 0.1 %" : "0 %";
}
// No line breaks between a number and its unit.
const unbroken = (text) => text.replace(/(\d) (?=([kMGTP]?B(\/s)?|ms|s|%)(?!\w))/g, "$1\u00a0");
// A sentence: a name with hyphens stays on one line where it fits, and is copied as it is. It is looked for from where
// words begin alone: from each letter of a name without an end it would take for ever.
const prose = (text) => unbroken(text).split(/((?<![^ ])[^ ]*\w-\w[^ ]*)/)
  .map((part, at) => (at % 2 ? el("span", { class: "whole" }, part) : part)).filter((part) => part !== "");
// The order of names, which stays while figures change: node-2 comes before node-10.
const byName = new Intl.Collator(undefined, { numeric: true }).compare;
// Cut in the middle: ends tell nodes apart.
function shortened(text, letters) {
  if (text.length <= letters) return text;
  const half = Math.max(1, Math.floor((letters - 1) / 2));
  return `${text.slice(0, half)}…${text.slice(-half)}`;
}

// Times are those of whoever reads.
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
