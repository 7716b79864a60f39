// Window, bytes in flight, RTT, rate and time in queue of each path under one another.
const timeline = {
  axis: "x",
  panels: [
    { title: "window and, thin, in flight, kB (DCCP: packets)", of: [known.cwnd, known.flight], scale: 1e-3 },
    { title: "smoothed RTT, ms", of: [known.srtt], scale: 1 },
    { title: "time in queues, ms", of: [known.queued], scale: 1 },
    { title: "sent and, thin, arrived, Mbit/s", rate: true },
    { title: "arrived behind a gap, kB", gap: true },
  ].filter((it) => it.rate || (it.gap ? count.gap : it.of.some((column) => column.some((v) => !Number.isNaN(v))))),
  // Rows of the sender's path, once.
  rows: new Map(paths.map((path) => {
    const rows = [];
    for (let i = 0; i < count.known; i++) if (known.path[i] === path && known.end[i] === about.left) rows.push(i);
    return [path, Uint32Array.from(rows)];
  })),
  rates(path, bins) {
    const out = new Float64Array(bins), came = new Float64Array(bins), width = (state.to - state.from) / bins;
    for (let i = lower(sent.at, state.from - whole.longest), end = lower(sent.at, state.to); i < end; i++) {
      if (sent.path[i] !== path || sent.end[i] !== about.left) continue;
      const a = Math.floor((sent.at[i] - state.from) / width), b = Math.floor((sent.arrived[i] - state.from) / width);
      if (a >= 0 && a < bins) out[a] += sent.bytes[i];
      if (b >= 0 && b < bins && sent.fate[i] === 1) came[b] += sent.bytes[i];
    }
    const unit = 8 / 1e3 / width;
    return [out, came].map((bytes) => bytes.map((n) => n * unit));
  },
  draw() {
    const c = colours(), left = 62, right = size.width - 12, each = (size.height - 30) / this.panels.length;
    const x = across(left, right, 6, size.height - 24);
    this.place = { x, left, right };
    const cursor = state.hover?.t;
    this.panels.forEach((panel, n) => {
      const top = 6 + n * each + 18, bottom = 6 + (n + 1) * each - 8;
      const lines = [];
      let highest = 0;
      if (panel.gap) {
        const points = [];
        let low = Math.max(0, lower(gap.at, state.from) - 1), pixel = NaN, least = 0, most = 0, last = 0;
        const flush = () => { if (!Number.isNaN(pixel)) points.push([pixel, most, least, last]); };
        for (; low < count.gap && gap.at[low] <= state.to; low++) {
          const v = gap.bytes[low] / 1e3, p = Math.round(x(Math.max(state.from, gap.at[low])));
          if (v > highest) highest = v;
          if (p !== pixel) { flush(); pixel = p; least = most = v; }
          if (v < least) least = v;
          if (v > most) most = v;
          last = v;
        }
        flush();
        lines.push({ which: 0, pixels: points });
      } else for (const path of paths.filter((path) => state.paths.has(path))) {
        if (panel.rate) {
          const bins = Math.max(20, Math.min(300, (right - left) >> 2)), width = (state.to - state.from) / bins;
          this.rates(path, bins).forEach((values, which) => {
            lines.push({ path, which, points: Array.from(values, (v, b) => [state.from + (b + 0.5) * width, v]) });
            values.forEach((v) => { if (v > highest) highest = v; });
          });
          continue;
        }
        const rows = this.rows.get(path);
        panel.of.forEach((column, which) => {
          const points = [];
          let low = 0, high = rows.length;
          while (low < high) { const m = (low + high) >> 1; if (known.at[rows[m]] < state.from) low = m + 1; else high = m; }
          // Of what falls on one pixel the least and the most are drawn.
          let pixel = NaN, least = 0, most = 0, last = 0;
          const flush = () => { if (!Number.isNaN(pixel)) points.push([pixel, most, least, last]); };
          for (let r = Math.max(0, low - 1); r < rows.length && known.at[rows[r]] <= state.to; r++) {
            const v = column[rows[r]] * panel.scale, p = Math.round(x(Math.max(state.from, known.at[rows[r]])));
            if (Number.isNaN(v)) continue;
            if (v > highest) highest = v;
            if (p !== pixel) { flush(); pixel = p; least = most = v; }
            if (v < least) least = v;
            if (v > most) most = v;
            last = v;
          }
          flush();
          lines.push({ path, which, pixels: points });
        });
      }
      highest = highest * 1.05 || 1;
      const y = (v) => bottom - (v / highest) * (bottom - top);
      const tick = step(highest, Math.max(2, (bottom - top) / 28));
      for (let v = 0; v <= highest; v += tick) {
        segment(left, y(v), right, y(v), c.line);
        text(String(+v.toPrecision(3)), left - 6, y(v) + 4, c.faint, "right");
      }
      text(panel.title, left + 4, top - 6, c.ink);
      const values = [];
      for (const { path, which, points, pixels } of lines) {
        pen.strokeStyle = path === undefined ? c.ink : pathColour(path); pen.lineWidth = which ? 0.8 : 1.7;
        pen.beginPath();
        let at, value;
        if (points) {
          for (const [t, v] of points) { pen.lineTo(x(t), y(v)); if (t <= cursor) value = v; }
        } else {
          let before;
          for (const [p, most, least, last] of pixels) {
            if (before !== undefined) pen.lineTo(p, y(before));
            pen.lineTo(p, y(most)); pen.lineTo(p, y(least)); pen.lineTo(p, y(last));
            before = last;
            at = p;
            if (cursor !== undefined && p <= x(cursor)) value = last;
          }
          if (before !== undefined && at < right) pen.lineTo(right, y(before));
        }
        pen.stroke();
        if (value !== undefined) values.push(path === undefined ? [c.ink, value.toPrecision(3)] : [pathColour(path), `path ${path}${which ? " (thin)" : ""}: ${value.toPrecision(3)}`]);
      }
      values.forEach(([colour, words], k) => text(words, right - 4, top + 12 + 15 * k, colour, "right"));
    });
    for (let m = lower(mark.at, state.from), end = lower(mark.at, state.to); m < end; m++) {
      if (mark.end[m] !== about.left || !state.paths.has(mark.path[m]) || mark.sign[m] === 5) continue;
      pen.globalAlpha = 0.7; segment(x(mark.at[m]), 8, x(mark.at[m]), size.height - 24, pathColour(mark.path[m]), 0.8); pen.globalAlpha = 1;
    }
    if (cursor !== undefined) segment(x(cursor), 6, x(cursor), size.height - 24, c.ink, 0.8);
  },
  find(px) {
    const t = state.from + ((px - this.place.left) / (this.place.right - this.place.left)) * (state.to - state.from);
    const near = (6 * (state.to - state.from)) / (this.place.right - this.place.left), words = [];
    for (let m = lower(mark.at, t - near), end = lower(mark.at, t + near); m < end && words.length < 6; m++) {
      if (mark.end[m] === about.left && state.paths.has(mark.path[m])) words.push(`path ${mark.path[m]}: ${signs[mark.sign[m]]}, ${seconds(mark.at[m])}`);
    }
    return { t, words: words.join("\n") };
  },
};
