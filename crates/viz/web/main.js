// What the user does: views, time, filters, the address.
const views = { exchange, timeline, frames, sequence };
let wanted = false, turned = 0;
function redraw() {
  if (wanted) return;
  wanted = true;
  requestAnimationFrame((now) => {
    wanted = false;
    const began = performance.now();
    paint();
    detail.took(performance.now() - began, now - turned);
    turned = now;
  });
}
function paint() {
  const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
  if (canvas.width !== Math.round(box.width * ratio) || canvas.height !== Math.round(box.height * ratio)) {
    canvas.width = Math.round(box.width * ratio); canvas.height = Math.round(box.height * ratio);
  }
  size.width = box.width; size.height = box.height;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.font = '12px system-ui, "DejaVu Sans", sans-serif';
  pen.fillStyle = colours().ground;
  pen.fillRect(0, 0, size.width, size.height);
  views[state.view].draw();
  const inside = lower(sent.at, state.to) - lower(sent.at, state.from), stride = views[state.view].stride ?? 1;
  status.textContent = `${seconds(state.from)} to ${seconds(state.to)}: ${inside} of ${count.sent} packets and chunks` + (stride > 1 ? `, one of ${stride} drawn` : "")
    + (count.frame ? `; ${count.frame} frames, ${missed.length} missed` : "");
}
let saved;
function remember() {
  clearTimeout(saved);
  saved = setTimeout(() => {
    const parts = [`view=${state.view}`, `t=${(state.from / 1000).toFixed(6)}-${(state.to / 1000).toFixed(6)}`];
    if (state.paths.size < paths.length) parts.push(`paths=${[...state.paths].join(",")}`);
    if (state.kind >= 0) parts.push(`kind=${kinds[state.kind]}`);
    if (state.stream >= 0) parts.push(`stream=${state.stream}`);
    if (state.frame >= 0) parts.push(`frame=${frame.number[state.frame]}`);
    history.replaceState(null, "", "#" + parts.join("&"));
  }, 120);
}
function recall() {
  const all = new URLSearchParams(location.hash.slice(1));
  if (Object.hasOwn(views, all.get("view") ?? "")) state.view = all.get("view");
  const span = /^(-?[\d.]+)-(-?[\d.]+)$/.exec(all.get("t") ?? "");
  if (span && +span[1] < +span[2]) { state.from = +span[1] * 1000; state.to = +span[2] * 1000; }
  if (all.has("paths")) state.paths = new Set(all.get("paths").split(",").map(Number).filter((path) => paths.includes(path)));
  state.kind = kinds.indexOf(all.get("kind") ?? "");
  state.stream = all.has("stream") && streams.includes(+all.get("stream")) ? +all.get("stream") : -1;
  state.frame = all.has("frame") ? frame.number.indexOf(+all.get("frame")) : -1;
}
// What the marks of each view mean: a colour, or none, and words.
const legends = {
  frames: [["good", "in time"], ["late", "too late"], ["bad", "never"], [null, "bar: from capture to when it is due"], [null, "ticks: its chunks, in the colour of the path that brought them"], ["bad", "tick: a chunk that was lost"], [null, "thick tick: all of it was there"]],
  exchange: [[null, "time goes down; of each path the sender is left, the receiver right"], [null, "arrow: a chunk"], [null, "cross: lost"], [null, "thick: sent again"], [null, "dashed: a copy"], [null, "dotted: redundancy"], ["extra", "thin: SACK"]],
  timeline: [[null, "of each path: the window and, thin, what is in flight; round trip; time in queues; rate"], [null, "upright lines: losses and changes of the path"]],
  sequence: [[null, "across: time; up: TSN"], [null, "square: sent"], [null, "dot: came"], [null, "cross: lost"]],
};
function fillLegend() {
  const marks = legends[state.view].map(([colour, words]) => {
    const it = element("span"), swatch = element("i");
    if (colour) { swatch.style.background = colours()[colour]; it.append(swatch); }
    it.append(words);
    return it;
  });
  document.getElementById("legend").replaceChildren(...marks);
}
function changed() { remember(); sync(); redraw(); }
function sync() {
  for (const tab of document.querySelectorAll("nav button")) tab.setAttribute("aria-selected", tab.dataset.view === state.view);
  for (const box of filters.querySelectorAll("input[data-path]")) box.checked = state.paths.has(+box.dataset.path);
  filters.querySelector("#kind").value = state.kind;
  filters.querySelector("#stream").value = state.stream;
  document.documentElement.classList.toggle("dark", state.dark);
  for (const swatch of filters.querySelectorAll("i")) swatch.style.background = pathColour(+swatch.dataset.path);
  fillPanel();
  fillLegend();
}
function show(view) { state.view = view; state.hover = null; changed(); }
function span(from, to) {
  const least = 0.05, most = (whole.to - whole.from) * 1.2;
  let width = Math.min(most, Math.max(least, to - from));
  const middle = (from + to) / 2;
  state.from = middle - width / 2; state.to = middle + width / 2;
  detail.move();
  redraw(); remember();
}
function zoom(factor, at = (state.from + state.to) / 2) { span(at - (at - state.from) * factor, at + (state.to - at) * factor); }
function move(share) { const d = (state.to - state.from) * share; span(state.from + d, state.to + d); }
// Shows one frame, or all.
function choose(f) {
  state.frame = f;
  if (f >= 0) {
    const until = Math.max(frame.deadline[f] || 0, frame.arrived[f] || 0, frame.captured[f] + 20), room = (until - frame.captured[f]) * 0.5;
    state.from = frame.captured[f] - room; state.to = until + room;
  }
  changed();
}
function nextMissed(direction) {
  const chosen = missed.filter((f) => state.kind < 0 || frame.kind[f] === state.kind);
  if (!chosen.length) return;
  const here = chosen.indexOf(state.frame);
  if (state.view === "timeline") state.view = "frames";
  choose(chosen[here < 0 ? (direction > 0 ? 0 : chosen.length - 1) : (here + direction + chosen.length) % chosen.length]);
}
const filters = document.getElementById("filters");
filters.onsubmit = (event) => event.preventDefault();
for (const path of paths) {
  const label = element("label"), box = element("input"), swatch = element("i");
  box.type = "checkbox"; box.dataset.path = path; swatch.dataset.path = path;
  box.onchange = () => { if (box.checked) state.paths.add(path); else state.paths.delete(path); changed(); };
  label.append(box, swatch, ` path ${path}`);
  filters.append(label);
}
{
  const select = element("select"), every = element("option", "all streams");
  every.value = -1;
  select.id = "stream";
  select.setAttribute("aria-label", "Stream");
  select.append(every);
  for (const n of streams) { const option = element("option", `stream ${n}`); option.value = n; select.append(option); }
  select.onchange = () => { state.stream = +select.value; changed(); };
  select.hidden = streams.length < 2;
  filters.append(select);
}
{
  const select = element("select"), every = element("option", "all kinds");
  every.value = -1;
  select.id = "kind";
  select.setAttribute("aria-label", "Kind of frame");
  select.append(every);
  kinds.forEach((kind, k) => { if (frame.kind.includes(k)) { const option = element("option", kind); option.value = k; select.append(option); } });
  select.onchange = () => { state.kind = +select.value; changed(); };
  const search = element("input");
  search.type = "search"; search.placeholder = "frame number"; search.id = "search"; search.setAttribute("aria-label", "Frame number");
  search.onchange = () => {
    const f = search.value.trim() === "" ? -1 : frame.number.indexOf(Number(search.value));
    search.setCustomValidity(f < 0 && search.value.trim() !== "" ? "there is no such frame" : "");
    search.reportValidity();
    choose(f);
  };
  filters.append(select, search);
  if (!count.frame) { select.hidden = true; search.hidden = true; }
}
for (const tab of document.querySelectorAll("nav button")) tab.onclick = () => show(tab.dataset.view);
document.getElementById("reset").onclick = () => { state.frame = -1; state.from = whole.from; state.to = whole.to; changed(); };
document.getElementById("theme").onclick = () => { state.dark = !state.dark; changed(); };
document.getElementById("help").onclick = () => document.getElementById("keys").showModal();
const timeAt = (event) => {
  const box = canvas.getBoundingClientRect(), place = views[state.view].place ?? {};
  if (views[state.view].axis === "y") return state.from + ((event.clientY - box.top - 40) / (size.height - 48)) * (state.to - state.from);
  const left = place.left ?? 62, right = place.right ?? size.width - 12;
  return state.from + ((event.clientX - box.left - left) / (right - left)) * (state.to - state.from);
};
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  if (event.shiftKey) move((event.deltaY || event.deltaX) / 1500); else zoom(Math.exp(event.deltaY / 500), timeAt(event));
}, { passive: false });
let drag = null;
canvas.onpointerdown = (event) => { canvas.setPointerCapture(event.pointerId); drag = { t: timeAt(event), from: state.from, to: state.to, x: event.clientX, y: event.clientY, marks: event.shiftKey, moved: false }; };
canvas.onpointermove = (event) => {
  if (drag) {
    if (Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) > 3) drag.moved = true;
    if (!drag.marks && drag.moved) { const d = timeAt(event) - drag.t; span(state.from - d, state.to - d); }
    return;
  }
  const box = canvas.getBoundingClientRect();
  state.hover = views[state.view].find?.(event.clientX - box.left, event.clientY - box.top) ?? null;
  tip.hidden = !state.hover?.words;
  if (state.hover?.words) {
    tip.textContent = state.hover.words;
    tip.style.left = Math.min(event.clientX + 14, innerWidth - 350) + "px"; tip.style.top = Math.min(event.clientY + 14, innerHeight - 110) + "px";
  }
  if (state.view === "timeline") redraw();
};
canvas.onpointerup = (event) => {
  const it = drag;
  drag = null;
  if (!it) return;
  if (it.marks && it.moved) { const t = timeAt(event); return span(Math.min(t, it.t), Math.max(t, it.t)); }
  if (it.moved) return;
  const found = state.hover, f = found?.frame ?? (found?.row !== undefined ? sent.frame[found.row] : NONE);
  if (f !== NONE && f >= 0) { state.frame = f; changed(); }
};
canvas.onpointerleave = () => { tip.hidden = true; state.hover = null; redraw(); };
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {
    1: () => show("exchange"), 2: () => show("timeline"), 3: () => show("frames"), 4: () => show("sequence"),
    ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), ArrowUp: () => move(-0.2), ArrowDown: () => move(0.2),
    "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), 0: () => document.getElementById("reset").click(),
    n: () => nextMissed(1), p: () => nextMissed(-1), t: () => document.getElementById("theme").click(), "?": () => document.getElementById("help").click(),
    "/": () => document.getElementById("search").focus(), Escape: () => choose(-1),
  }[event.key];
  if (act) { event.preventDefault(); act(); }
});
state.dark = matchMedia("(prefers-color-scheme: dark)").matches;
let darkBefore;
addEventListener("beforeprint", () => { darkBefore = state.dark; state.dark = false; sync(); paint(); });
addEventListener("afterprint", () => { state.dark = darkBefore; sync(); redraw(); });
addEventListener("hashchange", () => { recall(); sync(); redraw(); });
addEventListener("resize", redraw);
recall();
sync();
new ResizeObserver(redraw).observe(canvas);
paint();
// When all was there to be seen, ms after the page was asked for.
document.documentElement.dataset.opened = Math.round(performance.now());
document.documentElement.dataset.ready = "yes";
