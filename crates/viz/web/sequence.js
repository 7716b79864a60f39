// Sequence numbers over time, as the thesis draws them: when each was sent, came, was lost or sent again.
const sequence = {
  axis: "x",
  most: 20000,
  draw() {
    const c = colours(), left = 62, right = size.width - 12, top = 10, bottom = size.height - 24, x = across(left, right, top, bottom);
    const first = lower(sent.at, state.from - whole.longest), last = lower(sent.at, state.to);
    let low = Infinity, high = -Infinity;
    const skip = Math.max(1, Math.ceil((last - first) / 20000));
    for (let i = first; i < last; i += skip) {
      if (sent.end[i] !== about.left && sent.end[i] !== 255) continue;
      const n = sent.number[i];
      if (sent.at[i] < state.from && !(sent.arrived[i] >= state.from)) continue;
      if (n < low) low = n;
      if (n > high) high = n;
    }
    if (!(low <= high)) return text("Nothing was sent in this time.", left + 10, 40, c.faint);
    if (low === high) high = low + 1;
    const y = (n) => bottom - 4 - ((n - low) / (high - low)) * (bottom - top - 8), each = Math.max(1, step(high - low, (bottom - top) / 40));
    for (let n = Math.ceil(low / each) * each; n <= high; n += each) {
      segment(left, y(n), right, y(n), c.line);
      text(String(n), left - 6, y(n) + 4, c.faint, "right");
    }
    this.place = { x, y, left, right };
    pen.save();
    pen.beginPath(); pen.rect(left, 0, right - left, bottom); pen.clip();
    const stride = Math.max(1, Math.ceil((last - first) / detail.rows(this.most))), late = strokes();
    this.stride = stride;
    for (let i = first; i < last; i += stride) {
      if (!shown(i) || Number.isNaN(sent.number[i]) || (sent.end[i] !== about.left && sent.end[i] !== 255)) continue;
      const yy = y(sent.number[i]), what = sent.what[i];
      pen.fillStyle = what === 3 ? c.extra : pathColour(sent.path[i]);
      if (sent.at[i] >= state.from) { const s = what === 1 ? 5 : 3; pen.fillRect(x(sent.at[i]) - s / 2, yy - s / 2, s, s); }
      if (sent.outcome[i] === 2) late.cross(x(sent.at[i]), yy, 3, c.bad, 1.4);
      else if (!Number.isNaN(sent.arrived[i]) && stride < 4) { pen.globalAlpha = 0.45; pen.fillRect(x(sent.arrived[i]) - 1, yy - 1, 2, 2); pen.globalAlpha = 1; }
    }
    late.draw();
    pen.restore();
  },
  find(px, py) {
    if (!this.place) return null;
    const { x, y } = this.place, t = state.from + ((px - this.place.left) / (this.place.right - this.place.left)) * (state.to - state.from);
    const near = (8 * (state.to - state.from)) / (this.place.right - this.place.left);
    let best = null, distance = 64;
    for (let i = lower(sent.at, t - near), end = lower(sent.at, t + near); i < end; i++) {
      const d = (x(sent.at[i]) - px) ** 2 + (y(sent.number[i]) - py) ** 2;
      if (d < distance && shown(i)) { distance = d; best = i; }
    }
    return best === null ? null : { row: best, words: describe(best) };
  },
};
