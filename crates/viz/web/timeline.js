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
  // What is known of each path at the sender, column by column, and the bytes that were sent over it and
  // came; made when they are first drawn.
  columns: new Map(), bytes: new Map(),
  seriesOf(path, column) {
    let mine = this.columns.get(path);
    if (!mine) {
      const rows = [];
      for (let i = 0; i < count.known; i++) if (known.path[i] === path && known.end[i] === about.left) rows.push(i);
      this.columns.set(path, (mine = { rows, at: Float64Array.from(rows, (r) => known.at[r]), made: new Map() }));
    }
    if (!mine.made.has(column)) mine.made.set(column, series(mine.at, Float64Array.from(mine.rows, (r) => column[r])));
    return mine.made.get(column);
  },
  rates(path, bins) {
    if (!this.bytes.has(path)) {
      const rows = [];
      for (let i = 0; i < count.sent; i++) if (sent.path[i] === path && sent.end[i] === about.left) rows.push(i);
      this.bytes.set(path, [running(rows, sent.at), running(rows.filter((i) => sent.outcome[i] === 1), sent.arrived)]);
    }
    const width = (state.to - state.from) / bins, unit = 8 / 1e3 / width;
    return this.bytes.get(path).map((it) => Float64Array.from({ length: bins }, (_, b) => it.between(state.from + b * width, state.from + (b + 1) * width) * unit));
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
        const points = pixels((this.gaps ??= series(gap.at, gap.bytes)), x, 1e-3);
        for (const [, most] of points) if (most > highest) highest = most;
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
        panel.of.forEach((column, which) => {
          const points = pixels(this.seriesOf(path, column), x, panel.scale);
          for (const [, most] of points) if (most > highest) highest = most;
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
