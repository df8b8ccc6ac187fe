// SPDX-License-Identifier: Apache-2.0
// The figures of the node, and its CPUs by use in one bar that is the key to their colours, too.
import {parseList, toList} from './cpu_set.js';
import {amount, byId, bytes, duration, make, percent, plural, replace, setText} from './dom.js';
import {isClaim, isReserved, usesOf} from './owners.js';
import {busyCpus} from './use.js';

const kHourMs = 3600 * 1000;
// The entries of the history that the daemon sends (page.cc).
const kMostEntries = 200;

const kNames = {exclusive: 'exclusive', claim: 'claims', balloon: 'balloons', shared: 'shared', reserved: 'reserved', isolated: 'isolated',
  free: 'unassigned', offline: 'offline'};

// A figure that stays in the document: {name, value, more, level, line}.
function show(figures) {
  const list = byId('figures');
  if (list.children.length !== figures.length) {
    const empty = () => make('div', {}, make('dt'), make('dd', {}, make('strong'), make('small')));
    list.replaceChildren(...figures.map(empty));
  }
  figures.forEach((figure, i) => {
    const box = list.children[i];
    box.className = figure.level ?? '';
    setText(box.querySelector('dt'), figure.name);
    setText(box.querySelector('strong'), String(figure.value));
    const more = box.querySelector('small');
    setText(more, figure.more ?? '');
    if (more.title !== (figure.more ?? '')) more.title = figure.more ?? '';
    const old = box.querySelector('svg');
    if (!figure.line) old?.remove();
    else if (old) old.replaceWith(figure.line);
    else box.append(figure.line);
  });
}

function cpuFigure(use, samples, online) {
  if (!use) return {name: 'CPU used', value: '-', more: 'not known yet'};
  const used = busyCpus(use.cpus);
  return {name: 'CPU used', value: `${amount(used)} of ${online}`,
    more: `CPUs, ${percent(100 * used / online)}; the last ten minutes`,
    line: samples.draw('', online), level: used > 0.95 * online ? 'warn' : ''};
}

function sharedFigure(node, cpus) {
  const pools = node.pools.filter((pool) => pool.name !== 'isolated' && !isReserved(pool));
  const asked = pools.reduce((sum, pool) => sum + (pool.sharedRequest ?? 0), 0) / 1000;
  const containers = node.containers.filter((container) => container.shared && container.state !== 'exited').length;
  const over = asked - cpus;
  const isOver = over > 0.0005 && containers > 0;
  const known = pools.some((pool) => pool.sharedRequest !== undefined);
  return {name: 'Shared CPUs', value: isOver ? `${cpus}, over by ${amount(over)}` : cpus, level: isOver ? 'warn' : '',
    more: (known ? `${amount(asked)} asked for by ` : '') + plural(containers, 'container')};
}

function memoryFigure(memory, use) {
  const sum = (key) => [...memory.values()].reduce((total, node) => total + (node[key] ?? 0), 0);
  const total = sum('total');
  const bound = sum('bound');
  if (!use) return {name: 'Memory', value: bytes(total), more: `bound to one node ${bytes(bound)}`};
  const placed = use.containers.filter((container) => container.remotePercent !== null && container.remotePercent !== undefined);
  const ofThem = (container) => Object.values(container.memoryByNode ?? {}).reduce((a, b) => a + b, 0);
  const all = placed.reduce((sum, container) => sum + ofThem(container), 0);
  const remote = placed.reduce((sum, container) => sum + ofThem(container) * container.remotePercent / 100, 0);
  const far = all > 0 ? `, ${percent(100 * remote / all)} of what is placed on other nodes` : '';
  return {name: 'Memory used', value: `${bytes(sum('used'))} of ${bytes(total)}`,
    more: sum('byContainers') > 0 ? `by containers ${bytes(sum('byContainers'))}${far}` : '', level: sum('used') > 0.95 * total ? 'warn' : ''};
}

// How far back the entries reach, an hour at most: of a busy node the newest ones alone are known (page.cc).
function knownMs(history, now) {
  const oldest = history.length < kMostEntries ? NaN : Date.parse(history[0].time);
  return Number.isNaN(oldest) ? kHourMs : Math.min(kHourMs, now - oldest);
}

function refusedFigure(history, now) {
  const refused = history.filter((entry) => entry.event === 'refused' && now - Date.parse(entry.time) < kHourMs);
  const last = refused.at(-1);
  const known = knownMs(history, now);
  return {name: `Refused, last ${known < kHourMs ? duration(known / 1000) : 'hour'}`, value: refused.length === 0 ? 'none' : plural(refused.length, 'container'),
    more: last ? `${last.container}: ${last.error}` : '', level: last ? 'bad' : ''};
}

function exclusiveFigure(node, uses, use) {
  const cpus = new Set([...uses.get('exclusive'), ...uses.get('claim')]);
  const owners = node.containers.filter((container) => container.exclusive && container.state !== 'exited' && !isClaim(container)).length;
  const claims = node.containers.filter(isClaim).length;
  const busy = (use?.cpus ?? []).filter((cpu) => cpus.has(cpu.id) && typeof cpu.busyPercent === 'number');
  const average = busy.length > 0 ? `, ${percent(busy.reduce((sum, cpu) => sum + cpu.busyPercent, 0) / busy.length)} busy` : '';
  return {name: 'Exclusive CPUs', value: cpus.size, more: `${plural(owners, 'container')}${claims > 0 ? `, ${plural(claims, 'claim')}` : ''}${average}`};
}

function balloonsFigure(node, uses) {
  const balloons = node.pools.filter((pool) => pool.kind === 'balloon');
  return {name: 'Balloons', value: plural(balloons.length, 'balloon'),
    more: `${plural(uses.get('balloon').length, 'CPU')}, ${uses.get('free').length} idle`};
}

//   node      {containers, pools, history, status}; without a status it is a simulation
//   memory    memory.js
//   use       data.js, or undefined
//   now       the daemon's time, in milliseconds
export function showFigures({node, topology, owners, memory, use, samples, now}) {
  const uses = usesOf(topology, owners);
  const online = topology.cpus.length - uses.get('offline').length;
  const containers = node.containers.filter((container) => !isClaim(container));
  const pods = new Set(containers.map((container) => `${container.namespace}/${container.pod}`));
  const hasBalloons = node.pools.some((pool) => pool.kind === 'balloon');
  const unsettled = node.status?.unsettled ? `; ${node.status.unsettled} not in force yet` : '';
  show([
    ...(node.status ? [cpuFigure(use, samples, online)] : []),
    hasBalloons ? balloonsFigure(node, uses) : exclusiveFigure(node, uses, use),
    ...(hasBalloons ? [] : [sharedFigure(node, uses.get('shared').length)]),
    memoryFigure(memory, use),
    {name: 'Containers', value: containers.length, more: `in ${plural(pods.size, 'pod')}${unsettled}`},
    ...(node.status ? [refusedFigure(node.history, now)] : [{name: 'Refused',
      value: node.refused === 0 ? 'none' : plural(node.refused, 'time'), level: node.refused > 0 ? 'bad' : ''}]),
  ]);
  showUses(uses);
}

function showUses(uses) {
  const list = byId('uses');
  const shown = [...uses].filter(([, cpus]) => cpus.length > 0);
  replace(list, ...shown.map(([use, cpus]) => {
    const all = toList(cpus);
    const part = make('li', {class: `use ${use}`, title: `${kNames[use]}: CPUs ${all}`}, `${kNames[use]} ${cpus.length}`);
    part.style.setProperty('flex-grow', cpus.length);
    return part;
  }));
}

// The CPUs that a text names: "7", "cpu 7", "0-3,8"; undefined where it names none.
export function cpusNamed(text) {
  const list = /^(?:cpus? *)?([\d][\d,\- ]*)$/.exec(text.trim().toLowerCase());
  if (!list) return undefined;
  const cpus = parseList(list[1].replace(/ /g, ''));
  return cpus.size > 0 ? cpus : undefined;
}
