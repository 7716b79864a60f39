// A bar from capture to deadline for each frame, what of it came over which path when, and what became of it.
const frames = {
  axis: "x",
  order: (() => { const all = Array.from({ length: count.frame }, (_, f) => f); return all.sort((a, b) => frame.captured[a] - frame.captured[b]); })(),
  bands() {
    const used = kinds.map((_, k) => k).filter((k) => frame.kind.includes(k) && (state.kind < 0 || state.kind === k));
    const weight = (k) => (k === 0 ? 1 : k === 1 || k === 5 ? 2 : 3), total = used.reduce((sum, k) => sum + weight(k), 0) || 1;
    let top = 24;
    return used.map((k) => { const height = ((size.height - 60) * weight(k)) / total, band = { kind: k, top, height: height - 8 }; top += height; return band; });
  },
  draw() {
    const c = colours(), left = 62, right = size.width - 12, x = across(left, right, 20, size.height - 24);
    const longest = 60000, bands = this.bands();
    this.place = { left, right, x, boxes: [] };
    if (!count.frame) return text("No end told of frames: this is no trace of `send` or `receive`.", left + 10, 40, c.faint);
    const captured = this.sorted ??= Float64Array.from(this.order, (f) => frame.captured[f]);
    const from = lower(captured, state.from - Math.min(longest, whole.latency)), to = lower(captured, state.to);
    for (const band of bands) {
      text(kinds[band.kind], left - 8, band.top + band.height / 2 + 4, c.kinds[band.kind], "right");
      const mine = [];
      for (let n = from; n < to; n++) if (frame.kind[this.order[n]] === band.kind) mine.push(this.order[n]);
      if (mine.length > 1500) { this.strip(band, mine, x, left, right); continue; }
      // The first row that is free, or of as many as fit the one that is so first.
      const most = Math.max(1, Math.min(16, Math.floor(band.height / 11))), free = new Float64Array(most).fill(-Infinity);
      const until = (f) => Math.max(Number.isNaN(frame.deadline[f]) ? frame.captured[f] : frame.deadline[f], frame.arrived[f] || 0);
      let used = 1;
      const places = mine.map((f) => {
        let row = 0;
        for (let r = 0; r < most; r++) { if (free[r] <= frame.captured[f]) { row = r; break; } if (free[r] < free[row]) row = r; }
        free[row] = until(f);
        if (row >= used) used = row + 1;
        return row;
      });
      const height = Math.min(30, band.height / used);
      const ticks = strokes();
      pen.save();
      pen.beginPath(); pen.rect(left, 0, right - left, size.height - 24); pen.clip();
      for (let n = 0; n < mine.length; n++) {
        const f = mine[n], row = places[n], end = Number.isNaN(frame.deadline[f]) ? until(f) : frame.deadline[f];
        const x0 = x(frame.captured[f]), x1 = Math.max(x(end), x0 + 2), y = band.top + row * height, h = Math.max(3, height - 3);
        pen.globalAlpha = frame.outcome[f] > 1 ? 0.55 : 0.22; pen.fillStyle = outcomeColour(f); pen.fillRect(x0, y, x1 - x0, h); pen.globalAlpha = 1;
        if (f === state.frame) { pen.strokeStyle = c.ink; pen.lineWidth = 2; pen.strokeRect(x0, y, x1 - x0, h); }
        this.place.boxes.push({ f, x0, x1: Math.max(x1, x(frame.arrived[f] || 0)), y, h });
        const parts = rowsOf(f);
        // In a bar that is hardly wider than a tick they would say nothing.
        if (x1 - x0 >= 4 && (parts.length < (x1 - x0) * 4 || parts.length < 12)) for (const i of parts) {
          if (!state.paths.has(sent.path[i])) continue;
          const lost = sent.outcome[i] === 2, colour = lost ? c.bad : sent.outcome[i] === 3 ? c.good : pathColour(sent.path[i]);
          const px = x(lost || Number.isNaN(sent.arrived[i]) ? sent.at[i] : sent.arrived[i]);
          ticks.add(px, y, px, y + h, colour, sent.what[i] === 1 ? 2 : 1);
          if (lost) ticks.cross(px, y + h / 2, 2, c.bad);
        }
        if (frame.arrived[f] > 0) ticks.add(x(frame.arrived[f]), y - 1, x(frame.arrived[f]), y + h + 1, outcomeColour(f), 2);
        if (x1 - x0 > 60 && h > 8) text(`${frame.number[f]}`, x1 - 4, y + h / 2 + 4, c.ink, "right");
      }
      ticks.draw();
      pen.restore();
    }
  },
  // So many frames that a pixel stands for several: how many of them were on time.
  strip(band, mine, x, left, right) {
    const c = colours(), all = new Float64Array(Math.ceil(right) + 1), bad = new Float64Array(all.length), late = new Float64Array(all.length);
    for (const f of mine) {
      const p = Math.round(x(frame.captured[f]));
      if (p < left || p >= all.length) continue;
      all[p]++;
      if (frame.outcome[f] > 2) bad[p]++; else if (frame.outcome[f] === 2) late[p]++;
    }
    for (let p = Math.floor(left); p < all.length; p++) {
      if (!all[p]) continue;
      const h = band.height, b = (bad[p] / all[p]) * h, l = (late[p] / all[p]) * h;
      pen.globalAlpha = 0.35; pen.fillStyle = c.good; pen.fillRect(p, band.top + b + l, 1, h - b - l); pen.globalAlpha = 1;
      pen.fillStyle = c.bad; pen.fillRect(p, band.top, 1, b);
      pen.fillStyle = c.late; pen.fillRect(p, band.top + b, 1, l);
    }
  },
  find(px, py) {
    const box = this.place.boxes.findLast((it) => px >= it.x0 - 1 && px <= it.x1 + 1 && py >= it.y && py <= it.y + it.h);
    if (!box) return null;
    const f = box.f;
    return { frame: f, words: `frame ${frame.number[f]}, ${kinds[frame.kind[f]]}${frame.reference[f] ? ", others reference it" : ""}, ${frame.bytes[f]} bytes: ${outcomes[frame.outcome[f]]}\n${explain(f)}` };
  },
};
whole.latency = (() => { let most = 1000; for (let f = 0; f < count.frame; f++) { const span = Math.max(frame.deadline[f] || 0, frame.arrived[f] || 0) - frame.captured[f]; if (span > most) most = span; } return most; })();
// The list of frames that were missed, or one frame's account. Text only goes in as text.
function element(tag, words, className) {
  const it = document.createElement(tag);
  if (words) it.textContent = words;
  if (className) it.className = className;
  return it;
}
function fillPanel() {
  panel.replaceChildren();
  if (state.view !== "frames" || !count.frame) return;
  if (state.frame >= 0) {
    const f = state.frame, back = element("button", "All missed frames");
    back.onclick = () => choose(-1);
    panel.append(back, element("h2", `Frame ${frame.number[f]}, ${kinds[frame.kind[f]]}: ${outcomes[frame.outcome[f]]}`), element("p", explain(f)));
    const table = element("table"), head = element("tr");
    for (const word of ["sent", "in flight", "path", "what", "came to"]) head.append(element("th", word));
    table.append(head);
    for (const i of [...rowsOf(f)].slice(0, 400)) {
      const line = element("tr"), way = sent.arrived[i] - sent.at[i];
      for (const word of [`+${(sent.at[i] - frame.captured[f]).toFixed(1)} ms`, Number.isNaN(way) ? "–" : `${way.toFixed(1)} ms`, `${sent.path[i]}`, whats[sent.what[i]], packetOutcomes[sent.outcome[i]]]) line.append(element("td", word));
      table.append(line);
    }
    return panel.append(table);
  }
  const chosen = missed.filter((f) => (state.kind < 0 || frame.kind[f] === state.kind));
  panel.append(element("h2", `${chosen.length} of ${count.frame} frames were missed${about.has_arrivals ? "" : ", as far as the sender knows"}`));
  for (const f of chosen.slice(0, 500)) {
    const row = element("button", `${seconds(frame.captured[f])}  frame ${frame.number[f]}, ${kinds[frame.kind[f]]}: ${outcomes[frame.outcome[f]]}`, "row");
    row.append(element("div", explain(f), "why"));
    row.onclick = () => choose(f);
    panel.append(row);
  }
  if (chosen.length > 500) panel.append(element("p", `and ${chosen.length - 500} more; zoom and filter to see them.`));
}
