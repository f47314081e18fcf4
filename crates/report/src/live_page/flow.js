// What goes from node to node: a band for each pair of nodes, as wide as its rate. Those with the highest rates are drawn,
// as long as there is room for their nodes, which stand by name; the others are counted.
function drawFlow(flows, hidden, held, width) {
  const isNarrow = width < 560;
  const nodesMax = isNarrow ? 7 : 11;
  const sources = new Map();
  const targets = new Map();
  const drawn = [];
  const rest = { count: hidden.count, rate: hidden.bytes_per_s };
  const fits = (map, name) => map.has(name) || map.size < nodesMax;
  const add = (map, name, bytes) => map.set(name, (map.get(name) ?? 0) + bytes);
  for (const flow of flows) {
    const bytes = flow.bytes_per_s ?? 0;
    if (fits(sources, flow.source) && fits(targets, flow.target)) {
      add(sources, flow.source, bytes);
      add(targets, flow.target, bytes);
      drawn.push(flow);
    } else {
      rest.count += 1;
      rest.rate += bytes;
    }
  }
  const total = drawn.reduce((sum, flow) => sum + (flow.bytes_per_s ?? 0), 0);
  const gap = 14;
  const least = 12;
  const rows = Math.max(sources.size, targets.size);
  const scale = total > 0 ? Math.max(60, Math.min(200, rows * 26)) / total : 0;
  const side = isNarrow ? Math.min(112, width * 0.3) : Math.min(190, width * 0.24);
  const placed = (map) => {
    let y = 6;
    const places = new Map();
    for (const [name, bytes] of [...map].sort(([a], [b]) => byName(a, b))) {
      const height = Math.max(least, bytes * scale);
      places.set(name, { y, height, used: 0, bytes });
      y += height + gap + (isNarrow ? 12 : 4);
    }
    return { places, height: y };
  };
  const left = placed(sources);
  const right = placed(targets);
  const height = Math.max(left.height, right.height, 40);
  const [x1, x2] = [side, width - side];
  const tint = (flow) => held.find((one) => [one.place, ...one.also].some((place) => place === flow.source || place === flow.target))?.tint ?? "series-1";
  const calm = [...drawn].sort((a, b) => byName(a.source, b.source) || byName(a.target, b.target));
  const bands = calm.map((flow) => {
    const from = left.places.get(flow.source);
    const to = right.places.get(flow.target);
    const bytes = flow.bytes_per_s ?? 0;
    const thick = bytes * scale;
    const title = `${flow.source} to ${flow.target}: ${flow.recoveries === 1 ? "1 recovery" : `${flow.recoveries} recoveries`}, ` +
      (flow.bytes_per_s === null ? "rate not known yet" : rate(bytes));
    const [a, b] = [from.y + from.used, to.y + to.used];
    const middle = (x1 + x2) / 2;
    if (thick < 1.5) {
      const [p, q] = [from.y + Math.min(from.height - 3, from.used + 4), to.y + Math.min(to.height - 3, to.used + 4)];
      return draw("path", { class: `band thin ${tint(flow)}`, d: `M${x1},${p} C${middle},${p} ${middle},${q} ${x2},${q}` },
        draw("title", {}, title));
    }
    from.used += thick;
    to.used += thick;
    const d = `M${x1},${a} C${middle},${a} ${middle},${b} ${x2},${b} v${thick} C${middle},${b + thick} ${middle},${a + thick} ${x1},${a + thick} Z`;
    return draw("path", { class: `band ${tint(flow)}`, d }, draw("title", {}, title));
  });
  const letters = Math.floor((side - 20) / 7.2);
  const ends = (places, isLeft) => [...places].flatMap(([name, place]) => {
    const x = isLeft ? x1 - 6 : x2;
    const textX = isLeft ? x1 - 14 : x2 + 14;
    const anchor = isLeft ? "end" : "start";
    const y = place.y + place.height / 2;
    const own = rate(place.bytes);
    return [
      draw("rect", { class: "end", x, y: place.y, width: 6, height: place.height, rx: 1 }),
      draw("text", { class: "label", x: textX, y: y - (place.bytes > 0 ? 2 : -4), "text-anchor": anchor },
        draw("title", {}, name), shortened(name, letters)),
      place.bytes > 0 && draw("text", { class: "rate", x: textX, y: y + 12, "text-anchor": anchor }, own),
    ];
  });
  const spoken = drawn.slice(0, 8).map((flow) =>
    `${flow.source} to ${flow.target} ${flow.bytes_per_s === null ? "" : rate(flow.bytes_per_s)}`).join("; ");
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `Recoveries from node to node: ${spoken}` }, ...bands, ...ends(left.places, true), ...ends(right.places, false));
  const words = rest.count > 0 && `and ${rest.count} more from node to node, together ${rate(rest.rate)}`;
  return [picture, words && el("p", { class: "more" }, words)];
}
