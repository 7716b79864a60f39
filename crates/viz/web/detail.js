// How much is drawn: as much as a screen's turn allows while the view moves, all of what fits when it stands still.
const detail = {
  share: 1, moving: false, timer: undefined,
  // Rows that may be drawn where `most` may be at rest.
  rows(most) { return Math.max(500, this.moving ? most * this.share : most); },
  // The view moves; it stands still when nothing has moved it for a while.
  move() {
    this.moving = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.moving = false; redraw(); }, 180);
  },
  // Milliseconds of a drawing, and of the screen since the one before: what is painted later than in
  // the script counts too. What was too much is not tried again for a second, and then little by little:
  // else every sixth turn of the screen is missed.
  steady: 0,
  took(ms, turn) {
    if (!this.moving) return;
    if (ms > 11 || (turn > 20 && turn < 300)) {
      this.share = Math.max(0.02, this.share * Math.min(0.8, 9 / ms));
      this.steady = 0;
    } else if (ms < 7 && ++this.steady > 60) this.share = Math.min(1, this.share * 1.02);
  },
};
// A value over rising times, with minimum, maximum and last value of each block of rows, so that a long
// time is drawn as quickly as a short one.
const BLOCK = 64;
function series(at, value) {
  const blocks = Math.floor(at.length / BLOCK), least = new Float64Array(blocks), most = new Float64Array(blocks), last = new Float64Array(blocks);
  for (let b = 0; b < blocks; b++) {
    let low = NaN, high = NaN, end = NaN;
    for (let r = b * BLOCK; r < (b + 1) * BLOCK; r++) {
      const v = value[r];
      if (Number.isNaN(v)) continue;
      if (!(low <= v)) low = v;
      if (!(high >= v)) high = v;
      end = v;
    }
    least[b] = low; most[b] = high; last[b] = end;
  }
  return { at, value, least, most, last };
}
// Of what falls on one pixel: its place, and its maximum, minimum and last value.
function pixels(it, x, scale) {
  const points = [], n = it.at.length, begin = Math.max(0, lower(it.at, state.from) - 1), end = lower(it.at, state.to);
  const coarse = end - begin > 30000;
  let pixel = NaN, least = 0, most = 0, last = 0;
  const flush = () => { if (!Number.isNaN(pixel)) points.push([pixel, most, least, last]); };
  for (let r = begin; r < end;) {
    const b = r / BLOCK, whole = coarse && Number.isInteger(b) && r + BLOCK <= n;
    const low = (whole ? it.least[b] : it.value[r]) * scale, high = (whole ? it.most[b] : it.value[r]) * scale, final = (whole ? it.last[b] : it.value[r]) * scale;
    const p = Math.round(x(Math.max(state.from, it.at[r])));
    r += whole ? BLOCK : 1;
    if (Number.isNaN(final)) continue;
    if (p !== pixel) { flush(); pixel = p; least = low; most = high; }
    if (low < least) least = low;
    if (high > most) most = high;
    last = final;
  }
  flush();
  return points;
}
// Bytes up to each of rising times: what falls between two is a difference.
function running(rows, time) {
  const order = rows.filter((i) => !Number.isNaN(time[i])), at = Float64Array.from(order, (i) => time[i]);
  const rising = at.every((t, n) => n === 0 || at[n - 1] <= t);
  if (!rising) { order.sort((a, b) => time[a] - time[b]); order.forEach((i, n) => { at[n] = time[i]; }); }
  const sum = new Float64Array(order.length + 1);
  order.forEach((i, n) => { sum[n + 1] = sum[n] + sent.bytes[i]; });
  return { at, between: (from, to) => sum[lower(at, to)] - sum[lower(at, from)] };
}
