// What all views draw with.
const canvas = document.getElementById("canvas"), pen = canvas.getContext("2d", { alpha: false });
const tip = document.getElementById("tip"), panel = document.getElementById("panel"), status = document.getElementById("status");
const state = { view: count.frame ? "frames" : "exchange", from: whole.from, to: whole.to, paths: new Set(paths), kind: -1, stream: -1, frame: -1, hover: null, dark: false };
const size = { width: 0, height: 0 };
// Colours that those who see few tell apart (Okabe and Ito), lighter on dark.
const palette = {
  light: { paths: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a6a00", "#56b4e9", "#8c510a", "#444"], kinds: ["#7a6a00", "#009e73", "#d55e00", "#0072b2", "#56b4e9", "#cc79a7", "#555"],
    good: "#0a8f5b", late: "#c77700", bad: "#c62828", ink: "#1a1c1f", faint: "#70757d", line: "#d7dade", ground: "#fff", extra: "#8a8f98" },
  dark: { paths: ["#56b4e9", "#ff9d4d", "#2fd6a3", "#f0a6cf", "#e6d25a", "#9ad7ff", "#d9a066", "#ccc"], kinds: ["#e6d25a", "#2fd6a3", "#ff9d4d", "#56b4e9", "#9ad7ff", "#f0a6cf", "#bbb"],
    good: "#35c98e", late: "#f0b04a", bad: "#ff6b6b", ink: "#e8eaed", faint: "#9aa1aa", line: "#363b42", ground: "#15171a", extra: "#777e88" },
};
const colours = () => palette[state.dark ? "dark" : "light"];
const pathColour = (path) => colours().paths[Math.max(0, paths.indexOf(path)) % 8];
const kindColour = (i) => (sent.frame[i] === NONE ? colours().faint : colours().kinds[frame.kind[sent.frame[i]]]);
const outcomeColour = (f) => [colours().faint, colours().good, colours().late, colours().bad, colours().bad, colours().bad][frame.outcome[f]];
const seconds = (t) => {
  const span = state.to - state.from, digits = span < 20 ? 4 : span < 2000 ? 3 : span < 60000 ? 2 : 1;
  return (t / 1000).toFixed(digits) + " s";
};
function step(span, most) {
  const rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
}
function text(words, x, y, colour, align = "left") {
  pen.fillStyle = colour; pen.textAlign = align; pen.fillText(words, x, y);
}
function segment(x0, y0, x1, y1, colour, width = 1) {
  pen.strokeStyle = colour; pen.lineWidth = width; pen.beginPath(); pen.moveTo(x0, y0); pen.lineTo(x1, y1); pen.stroke();
}
// Lines that are drawn together, those of a colour, width and dash at once: a stroke of its own takes
// longer than the line.
function strokes() {
  const dashes = [[], [5, 3], [2, 2]], all = dashes.map(() => new Map());
  return {
    add(x0, y0, x1, y1, colour, width = 1, dash = 0) {
      let widths = all[dash].get(colour);
      if (!widths) all[dash].set(colour, (widths = new Map()));
      let lines = widths.get(width);
      if (!lines) widths.set(width, (lines = []));
      lines.push(x0, y0, x1, y1);
    },
    cross(x, y, r, colour, width = 1) { this.add(x - r, y - r, x + r, y + r, colour, width); this.add(x - r, y + r, x + r, y - r, colour, width); },
    draw() {
      all.forEach((colours, dash) => {
        pen.setLineDash(dashes[dash]);
        for (const [colour, widths] of colours) for (const [width, lines] of widths) {
          pen.strokeStyle = colour; pen.lineWidth = width; pen.beginPath();
          for (let n = 0; n < lines.length; n += 4) { pen.moveTo(lines[n], lines[n + 1]); pen.lineTo(lines[n + 2], lines[n + 3]); }
          pen.stroke();
        }
      });
      pen.setLineDash([]);
    },
  };
}
// A time axis along the width, with lines up to `top`; the place of a time.
function across(left, right, top, bottom) {
  const scale = (right - left) / (state.to - state.from), x = (t) => left + (t - state.from) * scale;
  const each = step(state.to - state.from, Math.max(2, (right - left) / 110));
  for (let t = Math.ceil(state.from / each) * each; t <= state.to; t += each) {
    segment(x(t), top, x(t), bottom, colours().line);
    text(seconds(t), x(t), bottom + 15, colours().faint, "center");
  }
  return x;
}
// Whether the row passes the filters.
const shown = (i) => state.paths.has(sent.path[i])
  && (state.kind < 0 || (sent.frame[i] !== NONE && frame.kind[sent.frame[i]] === state.kind))
  && (state.stream < 0 || sent.stream[i] === state.stream)
  && (state.frame < 0 || sent.frame[i] === state.frame || sent.what[i] > 2);
