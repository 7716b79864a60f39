"use strict";
// What the trace says: columns of numbers, and what follows from them.
const about = JSON.parse(document.getElementById("about").textContent);
const kinds = ["tables", "audio", "I", "P", "B", "other", "data"];
const whats = ["new", "repeated", "copy", "redundancy", "SACK", "FORWARD-TSN", "control"];
const packetOutcomes = ["unknown", "arrived", "lost", "lost, made up for by redundancy", "came twice"];
const outcomes = ["unknown", "on time", "late", "never sent", "abandoned in flight", "missing"];
const reasons = ["", "it would have come too late", "the queue wanted its place for another one", "the queue had no room",
  "what was lost or left of it would have come too late"];
const signs = ["unconfirmed", "active", "potentially failed", "inactive", "left", "window cut: loss", "window cut: mark", "window cut: timeout"];
const columns = (() => {
  const holder = document.getElementById("data");
  const text = atob(holder.textContent);
  holder.remove();
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const types = { f64: Float64Array, f32: Float32Array, u32: Uint32Array, u8: Uint8Array };
  const all = {};
  for (const { name, of, at, count } of about.columns) {
    const [table, column] = name.split(".");
    (all[table] ??= {})[column] = new types[of](bytes.buffer, at, count);
  }
  return all;
})();
const { sent, known, mark, frame, gap } = columns;
const count = { sent: sent.at.length, known: known.at.length, mark: mark.at.length, frame: frame.captured.length, gap: gap.at.length };
const NONE = 0xffffffff;
const paths = (() => {
  const seen = new Set();
  for (let i = 0; i < count.sent; i++) seen.add(sent.path[i]);
  for (let i = 0; i < count.known; i++) if (known.end[i] === about.left) seen.add(known.path[i]);
  return [...seen].sort((a, b) => a - b);
})();
const streams = (() => {
  const seen = new Set();
  for (let i = 0; i < count.sent; i++) if (sent.stream[i] !== NONE) seen.add(sent.stream[i]);
  return [...seen].sort((a, b) => a - b);
})();
// Begin and end of all, and the longest way that a packet took.
const whole = (() => {
  let from = Infinity, to = -Infinity, longest = 0, highest = 1;
  const see = (t) => { if (t < from) from = t; if (t > to) to = t; };
  for (let i = 0; i < count.sent; i++) {
    see(sent.at[i]);
    const way = sent.arrived[i] - sent.at[i];
    if (way > longest) longest = way;
    if (sent.arrived[i] > to) to = sent.arrived[i];
    if (sent.number[i] > highest) highest = sent.number[i];
  }
  for (let i = 0; i < count.frame; i++) {
    see(frame.captured[i]);
    if (frame.deadline[i] > to) to = frame.deadline[i];
  }
  if (count.known) { see(known.at[0]); see(known.at[count.known - 1]); }
  if (!(from < to)) { from = 0; to = 1000; }
  const margin = (to - from) * 0.01;
  return { from: from - margin, to: to + margin, longest, highest };
})();
// The first place in a rising column that is not below `value`.
function lower(column, value) {
  let low = 0, high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}
// The rows of what was sent, by frame: rows of the frame `f` are of[start[f]] to of[start[f + 1]].
const rowsOf = (() => {
  const start = new Uint32Array(count.frame + 2);
  for (let i = 0; i < count.sent; i++) if (sent.frame[i] !== NONE) start[sent.frame[i] + 2]++;
  for (let f = 2; f < start.length; f++) start[f] += start[f - 1];
  const of = new Uint32Array(count.frame ? start[count.frame + 1] : 0);
  for (let i = 0; i < count.sent; i++) if (sent.frame[i] !== NONE) of[start[sent.frame[i] + 1]++] = i;
  return (f) => of.subarray(start[f], start[f + 1]);
})();
const missed = [];
for (let f = 0; f < count.frame; f++) if (frame.outcome[f] > 1) missed.push(f);
missed.sort((a, b) => frame.captured[a] - frame.captured[b]);
// Why the first chunk of a frame left late: what left meanwhile.
function waited(f, from, begun) {
  if (begun - from < 20) return "";
  let others = 0, again = 0;
  for (let i = lower(sent.at, from); i < count.sent && sent.at[i] < begun; i++) {
    if (sent.what[i] > 2 || sent.frame[i] === f) continue;
    others++;
    if (sent.what[i] === 1) again++;
  }
  if (!others) return " (no path had room meanwhile)";
  return ` (it waited for its turn: ${others} chunks of others left meanwhile` + (again ? `, ${again} of them sent again)` : ")");
}
// Why a frame came, or did not, in words.
function explain(f) {
  const rows = rowsOf(f), due = frame.deadline[f];
  let first = 0, repeated = 0, copies = 0, lost = 0, recovered = 0, afterwards = 0, begun = Infinity, latest = -Infinity, latestRow = -1;
  const lostOn = new Map();
  for (const i of rows) {
    if (sent.what[i] === 0) first++;
    if (sent.what[i] === 1) repeated++;
    if (sent.what[i] === 2) copies++;
    if (sent.outcome[i] === 2) { lost++; lostOn.set(sent.path[i], (lostOn.get(sent.path[i]) ?? 0) + 1); }
    if (sent.outcome[i] === 3) recovered++;
    if (sent.at[i] < begun) begun = sent.at[i];
    if (sent.arrived[i] > latest) { latest = sent.arrived[i]; latestRow = i; }
    if (sent.arrived[i] > due) afterwards++;
  }
  const words = [], from = frame.captured[f], since = (t) => `${(t - from).toFixed(0)} ms after its capture`;
  const outcome = frame.outcome[f];
  if (rows.length) {
    words.push(`${first} chunks, the first ${since(begun)}${waited(f, from, begun)}`);
    if (lost) words.push(`${lost} lost: ` + [...lostOn].map(([path, n]) => `${n} on path ${path}`).join(", "));
    if (recovered) words.push(`${recovered} made up for by redundancy`);
    if (repeated) words.push(`${repeated} sent again`);
    if (copies) words.push(`${copies} sent over a second path too`);
    if (outcome === 2 || afterwards) {
      if (latestRow >= 0) words.push(`the last one came ${since(latest)} over path ${sent.path[latestRow]}` + (latest > due ? `, ${(latest - due).toFixed(0)} ms too late` : ""));
    }
  }
  if (frame.given_up[f] > 0) {
    const how = outcome === 3 && !rows.length ? "never sent; abandoned" : "abandoned";
    words.push(`${how} ${since(frame.given_up[f])}` + (frame.why[f] ? `: ${reasons[frame.why[f]]}` : ""));
  }
  if (outcome === 1 && !lost) words.push("nothing of it was lost");
  if (outcome === 1 && lost) words.push("in time all the same");
  if (outcome === 5 && !(frame.given_up[f] > 0)) words.push("what is missing had not come when it was due");
  if (outcome === 1 && frame.given_up[f] > 0) words.push("the sender abandoned it, yet all of it was there");
  return words.join("; ") + ".";
}
