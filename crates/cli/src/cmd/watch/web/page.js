'use strict';
// Shows what the server tells once a second. All text comes in as text: nothing of it can be markup.
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
    it.key_bytes ? `AES-${8 * it.key_bytes}` : 'none', ms(it.latency_ms), ms(it.rtt_ms), it.received_packets, it.recovered_packets,
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

function context(canvas) {
  const dense = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, Number(canvas.getAttribute('height')) || canvas.clientHeight];
  canvas.style.height = height + 'px';
  if (canvas.width !== Math.round(width * dense)) { canvas.width = Math.round(width * dense); }
  canvas.dataset.height = height;
  const it = canvas.getContext('2d');
  it.setTransform(dense, 0, 0, canvas.height / height, 0, 0);
  it.clearRect(0, 0, width, height);
  return [it, width, height];
}

// A round step, not above which as many lines fit.
const step = least => { const power = 10 ** Math.floor(Math.log10(Math.max(1, least))); return [1, 2, 5, 10].map(n => n * power).find(n => n >= least) || power; };
const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// Per row and kind, the frames that went missing then and never came. Their count falls where one comes after all, or the other end
// says what became of it.
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

function draw() {
  const rows = history.map(figures => [figures, figures.streams.find(it => it.name === chosen) || figures.streams[0]]);
  const [paint, width, height] = context(byId('rates'));
  const places = Math.max(60, rows.length) - 1;
  const left = 70;
  const x = n => width - (rows.length - 1 - n) * (width - left) / places;
  const of = it => it ? [it.capacity_bits_per_second, it.input_bits_per_second, it.delivered_bits_per_second ?? received(it)] : [];
  // Paths that carry much more than comes in do not press the other curves flat.
  const greatest = from => Math.max(1, ...rows.flatMap(([, it]) => of(it).slice(from).map(value => value || 0)));
  const top = Math.min(greatest(0), 4 * greatest(1));
  const y = value => height - 6 - (height - 20) * value / top;
  const latest = rows.length ? of(rows[rows.length - 1][1]) : [];
  const drawn = rows.flatMap(([, it]) => [of(it)]);
  const sender = drawn.some(it => it[1] !== null && it[1] !== undefined);
  const lines = [['paths carry', 'room'], ['comes in', 'doubtful'], [sender ? 'delivered' : 'received', 'use']];
  const each = step(top / 4);
  paint.textAlign = 'right';
  for (let value = 0; value <= top; value += each) {
    paint.strokeStyle = colour('line'); paint.lineWidth = 1; paint.beginPath(); paint.moveTo(left, y(value)); paint.lineTo(width, y(value)); paint.stroke();
    paint.fillStyle = colour('faint'); paint.fillText(rate(value), left - 6, y(value) + 4);
  }
  paint.textAlign = 'left';
  lines.forEach(([, name], which) => {
    paint.beginPath();
    rows.forEach(([, it], n) => { const value = of(it)[which]; if (value !== null && value !== undefined) paint.lineTo(x(n), y(value)); });
    paint.strokeStyle = colour(name);
    paint.lineWidth = which === 0 ? 4 : 1.6;
    paint.stroke();
  });
  const [bars, wide, high] = context(byId('drops'));
  const gone = stayedMissing(rows);
  const counts = rows.map(([, it], n) => (it && it.kinds || []).map(kind => [kind.kind, dropped(kind.interval) + kind.interval.late + (gone[n].get(kind.kind) || 0)]));
  const most = Math.max(0, ...counts.map(it => it.reduce((sum, [, count]) => sum + count, 0)));
  counts.forEach((kinds, n) => {
    let base = high - 16;
    for (const [kind, count] of kinds) {
      const length = (high - 30) * count / Math.max(5, most);
      bars.fillStyle = KINDS[kind] || '#888';
      bars.fillRect(x(n) - (wide - left) / places, base - length, Math.max(1, (wide - left) / places - 1), length);
      base -= length;
    }
  });
  bars.fillStyle = colour('faint');
  const what = sender ? 'late, dropped or missing' : 'late or missing';
  bars.fillText(most ? `frames ${what}, each second; at most ${most}` : `no frame ${what}`, left, 10);
  bars.strokeStyle = colour('line'); bars.beginPath(); bars.moveTo(left, high - 15.5); bars.lineTo(wide, high - 15.5); bars.stroke();
  bars.textAlign = 'center';
  const tick = places <= 120 ? 30 : 120;
  for (let ago = tick; ago < places; ago += tick) bars.fillText(ago < 120 ? `${ago} s ago` : `${ago / 60} min ago`, wide - ago * (wide - left) / places, high - 2);
  bars.textAlign = 'right';
  bars.fillText('now', wide - 2, high - 2);
  bars.textAlign = 'left';
  const there = lines.filter((_, which) => drawn.some(it => it[which] !== null && it[which] !== undefined));
  const dropping = new Set(counts.flatMap(kinds => kinds.filter(([, count]) => count).map(([kind]) => kind)));
  const marks = [...there.map(([word, name]) => ['━ ', word, colour(name)]), ...[...dropping].map(kind => ['■ ', kind, KINDS[kind] || '#888'])];
  byId('legend').replaceChildren(...marks.flatMap(([sign, word, tone]) => {
    const mark = element('span', sign);
    mark.style.color = tone;
    return [mark, word + '   '];
  }));
  byId('rates').setAttribute('aria-label', lines.map(([word], which) => `${word} ${rate(latest[which])}`).join(', '));
  byId('drops').setAttribute('aria-label', most ? `at most ${most} frames ${what} in a second` : `no frame ${what}`);
}

function show() {
  const stream = last && (last.streams.find(it => it.name === chosen) || last.streams[0]);
  const state = stream ? stream.state : 'none';
  // Green while frames are on time; grey while there is nothing to judge.
  document.body.dataset.health = stream && ['live', 'degraded', 'dark'].includes(state) ? stream.health : 'none';
  document.body.dataset.state = state;
  byId('word').textContent = last && !stream ? WORDS.waiting : WORDS[state];
  document.title = `${WORDS[state]} – braidcast`;
  byId('reasons').replaceChildren(...(stream ? stream.reasons : []).map(it => element('li', it)));
  if (last) byId('title').textContent = 'braidcast ' + last.command;
  if (last) byId('clock').textContent = `${new Date(last.time).toLocaleTimeString()}, running for ${span(last.uptime_seconds)}`;
  const choice = byId('choice');
  const names = last ? last.streams.map(it => it.name) : [];
  choice.hidden = names.length < 2;
  if (names.join('\n') !== choice.dataset.names) {
    choice.dataset.names = names.join('\n');
    choice.replaceChildren(...names.map(name => { const it = element('option', name); it.value = name; it.selected = name === chosen; return it; }));
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
window.addEventListener('resize', later);
const events = new EventSource('events');
let gone = null;
events.onopen = () => { history.length = 0; gone = null; delete document.body.dataset.stale; };
events.onmessage = event => {
  last = JSON.parse(event.data);
  history.push(last);
  if (history.length > HISTORY) history.shift();
  document.body.dataset.figures = history.length;
  later();
};
events.onerror = () => {
  // What stands below is old from here on.
  gone ??= new Date();
  document.body.dataset.stale = 'yes';
  document.body.dataset.health = 'none';
  byId('word').textContent = `braidcast does not answer; trying again since ${gone.toLocaleTimeString()}`;
  byId('reasons').replaceChildren();
};
