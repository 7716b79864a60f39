// Time downwards, a lane for each path between the two ends, arrows whose slope is the delay.
const exchange = {
  axis: "y",
  most: 12000,
  lanes() {
    const chosen = paths.filter((path) => state.paths.has(path)), left = 74, width = (size.width - left - 16) / Math.max(1, chosen.length);
    return new Map(chosen.map((path, n) => [path, { left: left + n * width + 26, right: left + (n + 1) * width - 26 }]));
  },
  draw() {
    const c = colours(), lanes = this.lanes(), top = 40, bottom = size.height - 8;
    const scale = (bottom - top) / (state.to - state.from), y = (t) => top + (t - state.from) * scale;
    this.place = { y, lanes, top };
    const each = step(state.to - state.from, Math.max(2, (bottom - top) / 60));
    for (let t = Math.ceil(state.from / each) * each; t <= state.to; t += each) {
      segment(70, y(t), size.width - 16, y(t), c.line);
      text(seconds(t), 64, y(t) + 4, c.faint, "right");
    }
    const near = about.ends[about.left] ?? "sender", far = about.ends.find((_, n) => n !== about.left) ?? "the other end";
    for (const [path, { left, right }] of lanes) {
      segment(left, top, left, bottom, c.faint, 1.5);
      segment(right, top, right, bottom, c.faint, 1.5);
      text(`path ${path}`, (left + right) / 2, 16, pathColour(path), "center");
      text(near, left - 20, 32, c.faint);
      text(far, right + 20, 32, c.faint, "right");
    }
    pen.save();
    pen.beginPath(); pen.rect(0, top - 6, size.width, bottom - top + 12); pen.clip();
    const first = lower(sent.at, state.from - whole.longest), last = lower(sent.at, state.to);
    const stride = Math.max(1, Math.ceil((last - first) / detail.rows(this.most)));
    this.stride = stride;
    const arrows = strokes(), crosses = strokes();
    for (let i = first; i < last; i += stride) {
      if (!shown(i)) continue;
      const lane = lanes.get(sent.path[i]);
      if (!lane) continue;
      const what = sent.what[i], towards = sent.end[i] === about.left || (sent.end[i] === 255 && what !== 4);
      const x0 = towards ? lane.left : lane.right, x1 = towards ? lane.right : lane.left;
      const lost = sent.outcome[i] === 2 || sent.outcome[i] === 3 || Number.isNaN(sent.arrived[i]);
      const share = lost ? 0.62 : 1, arrived = lost ? sent.at[i] + (whole.usual || 20) * share : sent.arrived[i];
      if (arrived < state.from) continue;
      const colour = what >= 3 ? c.extra : kindColour(i), width = what === 1 ? 2 : what >= 4 ? 0.6 : 1.1;
      const xe = x0 + (x1 - x0) * share, ye = y(arrived);
      arrows.add(x0, y(sent.at[i]), xe, ye, colour, width, what === 2 || sent.reckoned[i] ? 1 : what === 3 ? 2 : 0);
      if (lost && sent.outcome[i] !== 0) crosses.cross(xe, ye, 4, sent.outcome[i] === 3 ? c.good : c.bad, 1.6);
    }
    arrows.draw();
    crosses.draw();
    // What the sender abandoned.
    for (const f of missed) {
      const t = frame.given_up[f];
      if (!(t >= state.from && t <= state.to) || (state.kind >= 0 && frame.kind[f] !== state.kind)) continue;
      for (const { left } of lanes.values()) {
        pen.fillStyle = c.bad; pen.beginPath(); pen.moveTo(left - 9, y(t)); pen.lineTo(left - 4, y(t) - 4); pen.lineTo(left - 4, y(t) + 4); pen.fill();
      }
    }
    for (let m = lower(mark.at, state.from), end = lower(mark.at, state.to); m < end; m++) {
      const lane = lanes.get(mark.path[m]);
      if (lane && mark.end[m] === about.left && mark.sign[m] !== 1) text(signs[mark.sign[m]], lane.left + 6, y(mark.at[m]) - 3, c.late);
    }
    pen.restore();
  },
  find(px, py) {
    const { y, lanes } = this.place, scale = (y(1) - y(0));
    const t = state.from + (py - y(state.from)) / scale;
    let best = null, distance = 7;
    for (let i = lower(sent.at, t - whole.longest - 8 / scale), end = lower(sent.at, t + 8 / scale); i < end; i++) {
      const lane = lanes.get(sent.path[i]);
      if (!lane || !shown(i)) continue;
      const towards = sent.end[i] === about.left, share = (px - lane.left) / (lane.right - lane.left);
      if (share < -0.05 || share > 1.05) continue;
      const way = (Number.isNaN(sent.arrived[i]) ? sent.at[i] + (whole.usual || 20) : sent.arrived[i]) - sent.at[i];
      const d = Math.abs(y(sent.at[i] + way * (towards ? share : 1 - share)) - py);
      if (d < distance) { distance = d; best = i; }
    }
    return best === null ? null : { row: best, words: describe(best) };
  },
};
function describe(i) {
  const f = sent.frame[i];
  return [
    `${whats[sent.what[i]]}${Number.isNaN(sent.number[i]) ? "" : `, number ${sent.number[i]}`}${sent.bytes[i] ? `, ${sent.bytes[i]} bytes` : ""}, path ${sent.path[i]}`,
    `${packetOutcomes[sent.outcome[i]]}; sent ${seconds(sent.at[i])}` + (Number.isNaN(sent.arrived[i]) ? "" : `, ${(sent.arrived[i] - sent.at[i]).toFixed(1)} ms on the way${sent.reckoned[i] ? " (reckoned)" : ""}`),
    f === NONE ? "" : `frame ${frame.number[f]}, ${kinds[frame.kind[f]]}: ${outcomes[frame.outcome[f]]}`,
  ].filter(Boolean).join("\n");
}
// The usual one-way delay, for those that never came.
whole.usual = (() => {
  const ways = [];
  for (let i = 0; i < count.sent && ways.length < 5000; i += 1 + (count.sent >> 13)) if (sent.arrived[i] > sent.at[i]) ways.push(sent.arrived[i] - sent.at[i]);
  return ways.sort((a, b) => a - b)[ways.length >> 1] ?? 20;
})();
