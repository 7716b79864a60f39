'use strict';
// Shows what the server reports once a second. All text comes in as text: nothing of it can be markup.
const byId = id => document.getElementById(id);
const HISTORY = 600;
const WORDS = {
  no_input: 'Nothing comes in', waiting: 'Waiting for a sender', connecting: 'Connecting', live: 'Live', degraded: 'Live, with frames missing',
  dark: 'Dark: no connection', ended: 'The stream ended', none: 'No figures',
};
const KINDS = { tables: '#7b7b7b', audio: '#b07aa1', I: '#d62728', P: '#1f77b4', B: '#2ca02c', other: '#8c564b', data: '#17becf' };
const history = [];
let chosen = null;
let last = null;
// Since when the program does not answer: what stands here is old from then on.
let gone = null;

const rate = bits => {
  if (bits === null || bits === undefined) return '–';
  const units = ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s'];
  let at = 0;
  while (bits >= 999.5 && at < 3) { bits /= 1000; at++; }
  return bits.toFixed(at === 0 || bits >= 99.95 ? 0 : bits >= 9.995 ? 1 : 2) + ' ' + units[at];
};
const share = it => it === null || it === undefined ? '–' : (100 * it).toFixed(1) + ' %';
const ms = it => it === null || it === undefined ? '–' : it.toFixed(it < 10 ? 1 : 0) + ' ms';
const span = s => s < 100 ? s.toFixed(0) + ' s' : s < 6000 ? (s / 60).toFixed(0) + ' min' : (s / 3600).toFixed(1) + ' h';

function element(name, text, className) {
  const it = document.createElement(name);
  if (text !== undefined) it.textContent = text;
  if (className) it.className = className;
  return it;
}

// Heads with a `!` in front are left out where there is little room.
function fill(table, head, rows) {
  const narrow = head.map(name => name.startsWith('!'));
  head = head.map(name => name.replace('!', ''));
  const row = (cells, kind) => {
    const tr = element('tr');
    for (const [n, cell] of cells.entries()) {
      const [content, tone] = Array.isArray(cell) ? cell : [cell, ''];
      const td = element(kind, content instanceof Node ? undefined : content, narrow[n] ? `${tone} wide` : tone);
      if (kind === 'th') td.scope = 'col';
      if (content instanceof Node) td.append(content);
      tr.append(td);
    }
    return tr;
  };
  table.tHead.replaceChildren(row(head, 'th'));
  table.tBodies[0].replaceChildren(...rows.map(cells => row(cells, 'td')));
}

// How much of what a path could carry is in use.
function use(path) {
  const carried = path.capacity_bits_per_second;
  if (!carried || path.delivered_bits_per_second === null) return '–';
  const meter = element('meter');
  meter.min = 0; meter.max = 1; meter.high = 0.95;
  meter.value = Math.min(1, path.delivered_bits_per_second / carried);
  meter.title = share(path.delivered_bits_per_second / carried);
  return meter;
}

const bytes = it => { const units = ['B', 'kB', 'MB', 'GB', 'TB']; let at = 0; while (it >= 999.5 && at < 4) { it /= 1000; at++; } return it.toFixed(at === 0 || it >= 99.95 ? 0 : 1) + ' ' + units[at]; };
const received = stream => stream.paths.reduce((sum, path) => sum + path.received_bits_per_second, 0);
const atLeast = (bits, floor) => (bits !== null && floor ? '≥ ' : '') + rate(bits);
const stateTone = state => state === 'active' ? 'good' : state === 'inactive' ? 'bad' : state === 'left' ? '' : 'doubtful';
const missTone = miss => miss > 0.1 ? 'bad' : miss > 0.01 ? 'doubtful' : 'good';
const dropped = it => it.dropped_expired + it.dropped_crowded_out + it.dropped_refused + it.dropped_on_the_way;

function showPaths(stream) {
  const sends = stream.paths.some(it => it.capacity_bits_per_second !== null || it.rtt_ms !== null && it.delivered_bits_per_second !== null);
  const head = ['path', 'state', '!since', sends ? '!sent' : 'received'].concat(sends ? ['carries', 'in use', '!RTT', '!queue', 'loss'] : ['on time']);
  fill(byId('paths'), head, stream.paths.map(it => [
    it.name, [it.state, stateTone(it.state)], span(it.state_seconds), rate(sends ? it.sent_bits_per_second : it.received_bits_per_second),
  ].concat(sends ? [
    it.state === 'inactive' ? '–' : atLeast(it.capacity_bits_per_second, it.capacity_is_floor), use(it), it.state === 'inactive' ? '–' : ms(it.rtt_ms), ms(it.queue_ms),
    [share(it.loss_share), it.loss_share > 0.1 ? 'bad' : it.loss_share > 0.02 ? 'doubtful' : ''],
  ] : [[share(it.on_time_share), it.on_time_share === null ? '' : missTone(1 - it.on_time_share)]])));
}

function showKinds(stream) {
  if (stream.flows) {
    byId('what').textContent = 'Flows';
    fill(byId('kinds'), ['flow', 'sent', 'received', 'on time', 'lost', 'late', 'expired', 'crowded out', 'jitter', 'MOS'], stream.flows.map(it => [
      it.flow, rate(it.sent_bits_per_second), rate(it.received_bits_per_second),
      [share(it.on_time_share), it.on_time_share === null ? '' : missTone(1 - it.on_time_share)],
      it.lost_datagrams, it.late_datagrams, it.dropped_expired, it.dropped_crowded_out, ms(it.jitter_ms), it.mos === null ? '–' : it.mos.toFixed(1),
    ]));
    return;
  }
  // captured = on time + late + dropped + missing + not known yet; then the same of the last ten seconds, as a share.
  const lately = new Map((stream.recent || []).map(it => [it.kind, it]));
  fill(byId('kinds'), ['kind', '!captured', 'on time', 'late', ...(stream.end === 'receiver' ? [] : ['dropped']), 'missing', '!not known yet', `last ${Math.min(10, Math.round(stream.recent_seconds || 0))} s`],
    (stream.kinds || []).map(it => {
      const now = lately.get(it.kind);
      const recent = now ? now.on_time / now.captured : null;
      const rest = it.captured - it.on_time - it.late - it.missing - it.not_known_yet;
      return [it.kind, it.captured, it.on_time, it.late, ...(stream.end === 'receiver' ? [] : [rest]), it.missing, it.not_known_yet, [share(recent), recent === null ? '' : missTone(1 - recent)]];
    }));
}

function showNeighbours(stream) {
  const all = stream.neighbours || [];
  byId('beside').hidden = all.length === 0;
  fill(byId('neighbours'), ['protocol', 'from or to', 'state', 'stream id', 'key', 'latency', 'RTT', 'received', 'recovered', 'skipped', 'sent', 'sent again', 'dropped'], all.map(it => [
    it.protocol, it.remote || (it.links || []).map(link => link.remote).join(', ') || '–', it.connected ? ['connected', 'good'] : ['waits', 'bad'], it.stream_id || '–',
    it.key_bytes ? `AES-${8 * it.key_bytes}` : 'none', it.total_latency_ms === undefined ? ms(it.latency_ms) : `${ms(it.latency_ms)}, in total ${ms(it.total_latency_ms)}`, ms(it.rtt_ms), it.received_packets, it.recovered_packets,
    [String(it.skipped_packets), it.skipped_packets ? 'doubtful' : ''], it.sent_packets, it.repeated_packets, it.dropped_packets,
  ]));
}

function showSums(stream) {
  const redundancy = stream.redundancy;
  const onTime = kinds => {
    const of = (stream.recent || []).filter(it => kinds.includes(it.kind));
    const all = of.reduce((sum, it) => sum + it.captured, 0);
    return all ? share(of.reduce((sum, it) => sum + it.on_time, 0) / all) : '–';
  };
  const sums = [
    ['video on time, last\u00a010\u00a0s', onTime(['I', 'P', 'B'])], ['audio on time, last\u00a010\u00a0s', onTime(['audio'])],
    ['comes in', rate(stream.input_bits_per_second ?? (stream.end === 'receiver' ? received(stream) : null))], ['delivered', rate(stream.delivered_bits_per_second)],
    ['latency', ms(stream.latency_ms)],
    ...(stream.outputs || []).map(it => [it.free_bytes === null ? it.name : `${it.name}, ${bytes(it.free_bytes)} free`, bytes(it.bytes)]),
    ['paths carry', atLeast(stream.capacity_bits_per_second, stream.capacity_is_floor)],
    ['suggested encoder', rate(stream.suggested_encoder_bits_per_second)],
    ['redundancy', redundancy.code ? `${redundancy.code}, ${share(redundancy.share)}` : redundancy.recovered_chunks ? `${redundancy.recovered_chunks} made up for` : '–'],
    ['waits here', bytes(stream.waiting_bytes)], ['connected for', span(stream.connected_seconds)], ['reconnections', String(stream.reconnections)],
  ].filter(([, value]) => value !== '–');
  byId('sums').replaceChildren(...sums.map(([name, value]) => {
    const it = element('div');
    it.append(element('b', value), element('span', name));
    return it;
  }));
}

const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// Per row and kind, the frames that went missing then and never came. Their count falls where one comes
// after all, or the other end says what became of it.
function stayedMissing(rows) {
  const least = new Map();
  const totals = rows.map(() => new Map());
  for (let n = rows.length - 1; n >= 0; n--) {
    for (const { kind, missing } of rows[n][1] && rows[n][1].kinds || []) {
      least.set(kind, Math.min(missing, least.get(kind) ?? missing));
      totals[n].set(kind, least.get(kind));
    }
  }
  return totals.map((now, n) => new Map([...now].map(([kind, total]) => [kind, n ? Math.max(0, total - (totals[n - 1].get(kind) ?? total)) : 0])));
}

// Both charts share their cursor and their span: a minute at least, ten at most.
const WIDTH_OF_AXIS = 78;
const seconds = figures => Date.parse(figures.time) / 1000;
const axis = more => ({ stroke: () => colour('faint'), grid: { stroke: () => colour('line'), width: 1 }, ticks: { show: false }, font: '12px system-ui', ...more });
const LINES = [['paths carry', 'room', 4], ['comes in', 'doubtful', 1.6], ['delivered', 'use', 1.6]];
// Bottom first.
const BARS = Object.keys(KINDS);
let counts = [];
const charts = {
  rates: {
    // Paths that carry much more than comes in do not press the other curves flat.
    top: data => Math.max(1000, Math.min(greatest(data.slice(1)), 4 * greatest(data.slice(2)))),
    axis: { values: (_, values) => values.map(rate) },
    series: LINES.map(([label, name, width]) => ({ label, stroke: () => colour(name), width, points: { show: false }, value: (_, value) => rate(value) })),
  },
  drops: {
    top: data => Math.max(5, greatest(data.slice(1))),
    axis: { values: (_, values) => values.map(value => Number.isInteger(value) ? String(value) : '') },
    // What stands on top is drawn first, as high as all below it together.
    series: [...BARS].reverse().map(kind => ({
      label: kind, fill: KINDS[kind], stroke: KINDS[kind], width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.9, 40], align: -1 }),
      value: (_, value, series, at) => at === null || !counts[at] ? '–' : String(counts[at].get(kind) || 0),
    })),
  },
};
const greatest = rows => Math.max(0, ...rows.flat().map(value => value || 0));

function chart(id, height) {
  const { top, axis: values, series } = charts[id];
  const place = byId(id);
  const options = {
    width: place.clientWidth, height, ms: 1e-3, series: [{ label: 'at', value: (_, at) => at ? new Date(at * 1000).toLocaleTimeString() : '–' }, ...series],
    cursor: { sync: { key: 'page' }, drag: { x: false, y: false } },
    scales: { x: { time: true, range: (_, from, to) => [Math.min(from, to - 60), to] }, y: { range: it => [0, 1.08 * top(it.data)] } },
    axes: [axis({ values: (_, values) => values.map(at => new Date(at * 1000).toLocaleTimeString()), space: 110, size: 30 }), axis({ size: WIDTH_OF_AXIS, ...values })],
  };
  charts[id].plot = new uPlot(options, [[0], ...series.map(() => [null])], place);
}

// A chart and its legend show only what there is.
function plot(id, data) {
  const { plot } = charts[id];
  plot.setData(data);
  data.slice(1).forEach((row, n) => {
    const there = row.some(value => value !== null && value !== undefined);
    if (plot.series[n + 1].show !== there) plot.setSeries(n + 1, { show: there });
  });
}

function draw() {
  if (!history.length) return;
  if (!charts.rates.plot) { chart('rates', 190); chart('drops', 130); }
  const rows = history.map(figures => [figures, figures.streams.find(it => it.name === chosen) || figures.streams[0]]);
  const at = rows.map(([figures]) => seconds(figures));
  const of = it => it ? [it.capacity_bits_per_second, it.input_bits_per_second, it.delivered_bits_per_second ?? received(it)] : [null, null, null];
  const lines = rows.map(([, it]) => of(it));
  plot('rates', [at, ...LINES.map((_, n) => lines.map(it => it[n] ?? null))]);
  const gone = stayedMissing(rows);
  counts = rows.map(([, it], n) => new Map((it && it.kinds || []).map(kind => [kind.kind, dropped(kind.interval) + kind.interval.late + (gone[n].get(kind.kind) || 0)])));
  const ever = kind => counts.some(it => it.get(kind));
  const upTo = (it, kind) => BARS.slice(0, BARS.indexOf(kind) + 1).reduce((sum, each) => sum + (it.get(each) || 0), 0);
  plot('drops', [at, ...[...BARS].reverse().map(kind => counts.map(it => ever(kind) ? upTo(it, kind) : null))]);
  const latest = lines[lines.length - 1];
  const most = Math.max(0, ...counts.map(it => [...it.values()].reduce((sum, count) => sum + count, 0)));
  const what = lines.some(it => it[1] !== null && it[1] !== undefined) ? 'late, dropped or missing' : 'late or missing';
  byId('caption').textContent = most ? `Frames ${what}, each second` : `No frame ${what}`;
  byId('rates').setAttribute('aria-label', LINES.map(([word], n) => `${word} ${rate(latest[n])}`).join(', '));
  byId('drops').setAttribute('aria-label', most ? `at most ${most} frames ${what} in a second` : `no frame ${what}`);
}

function show() {
  const stream = last && (last.streams.find(it => it.name === chosen) || last.streams[0]);
  const state = stream ? stream.state : 'none';
  // Green while frames are on time; grey while there is nothing to judge.
  document.body.dataset.health = stream && !gone && ['live', 'degraded', 'dark'].includes(state) ? stream.health : 'none';
  document.body.dataset.state = state;
  byId('word').textContent = gone ? `braidcast does not answer; trying again since ${gone.toLocaleTimeString()}` : last && !stream ? WORDS.waiting : WORDS[state];
  document.title = `${WORDS[state]} – braidcast`;
  byId('reasons').replaceChildren(...(stream && !gone ? stream.reasons : []).map(it => element('li', it)));
  if (last) byId('title').textContent = 'braidcast ' + last.command;
  if (last) byId('clock').textContent = `${new Date(last.time).toLocaleTimeString()}, running for ${span(last.uptime_seconds)}`;
  const choice = byId('choice');
  const names = last ? last.streams.map(it => it.name) : [];
  choice.hidden = names.length < 2;
  if (names.join('\n') !== choice.dataset.names) {
    choice.dataset.names = names.join('\n');
    choice.replaceChildren(...names.map(name => { const it = element('option', name); it.value = name; it.selected = name === chosen; return it; }));
  }
  const image = byId('image');
  image.hidden = !stream || !stream.thumbnail;
  if (!image.hidden && image.dataset.shown !== stream.thumbnail) {
    image.src = image.dataset.shown = stream.thumbnail;
  }
  if (stream) { showSums(stream); showPaths(stream); showKinds(stream); showNeighbours(stream); }
  draw();
}

let asked = false;
function later() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; show(); });
}

byId('choice').addEventListener('change', event => { chosen = event.target.value; later(); });
window.addEventListener('resize', () => {
  for (const id of ['rates', 'drops']) if (charts[id].plot) charts[id].plot.setSize({ width: byId(id).clientWidth, height: charts[id].plot.height });
  later();
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', later);
const events = new EventSource('events');
events.onopen = () => { history.length = 0; gone = null; delete document.body.dataset.stale; };
events.onmessage = event => {
  last = JSON.parse(event.data);
  history.push(last);
  if (history.length > HISTORY) history.shift();
  document.body.dataset.figures = history.length;
  later();
};
events.onerror = () => {
  gone ??= new Date();
  document.body.dataset.stale = 'yes';
  later();
};
