// SPDX-License-Identifier: Apache-2.0
// Reads the output of `cri-resmgr-ctl simulate -o page`: the machine, then one effect a line. The
// output of `-o json` has no machine, which may then be another file or line, as `cri-resmgr-ctl
// topology -o json` writes it, and fewer facts. The files stay in the browser.
import {parseList, toList, without} from './cpu_set.js';
import {isReserved} from './owners.js';

const kLargest = 64 << 20;
const kHistoryEntries = 200;

const nameOf = (effect) => (effect.container ? `${effect.pod}/${effect.container}` : effect.pod);

const areTexts = (object, names) => names.every((name) => typeof object?.[name] === 'string');

function isMachine(value) {
  return Array.isArray(value?.cpus) && Array.isArray(value.numa) && value.cpus.every((cpu) => Number.isInteger(cpu?.id));
}

function isEffect(value) {
  return areTexts(value, ['op', 'pod', 'container', 'cpus', 'exclusive', 'pool', 'reason']) && Array.isArray(value.changed) &&
    value.changed.every((change) => areTexts(change, ['pod', 'container', 'cpus']));
}

// Throws an Error that says what is wrong.
export async function readSimulation(files) {
  const simulation = {name: [...files].map((file) => file.name).join(', '), effects: [], topology: undefined};
  for (const file of files) {
    if (file.size > kLargest) throw new Error(`${file.name} has more than ${kLargest >> 20} MiB.`);
    (await file.text()).split('\n').forEach((line, index) => {
      if (line.trim() !== '') take(simulation, line, `${file.name}, line ${index + 1}`);
    });
  }
  if (simulation.effects.length === 0) throw new Error(`${simulation.name} has no effects; write it with simulate -o page.`);
  return simulation;
}

function take(simulation, line, where) {
  let value;
  try {
    value = JSON.parse(line);
  } catch {
    throw new Error(`${where} is not JSON; write the file with simulate -o page.`);
  }
  if (isMachine(value)) simulation.topology = value;
  else if (isEffect(value)) simulation.effects.push(value);
  else throw new Error(`${where} is neither an effect of simulate nor a machine.`);
}

function containerOf(effect) {
  const title = nameOf(effect);
  const [namespace, pod] = effect.pod.split('/');
  return {key: title, title, namespace, pod, name: effect.container, state: 'running', cpus: effect.cpus, mems: effect.mems,
    exclusive: effect.exclusive, shared: toList(without(parseList(effect.cpus), parseList(effect.exclusive))),
    shares: effect.shares, quota: effect.quota, period: 100000, pool: effect.pool, reason: effect.reason, qos: effect.qos,
    cpuLimit: effect.cpuLimit, limit: effect.cpuLimit, memoryLimit: effect.memoryLimit};
}

// A claim that holds CPUs is a container in the state "claim", as in the daemon's data.
function applyClaim(containers, effect) {
  const claim = containerOf({...effect, container: 'claim'});
  if (effect.op === 'unprepare') containers.delete(claim.key);
  else if (effect.cpus) containers.set(claim.key, {...claim, state: 'claim'});
}

function apply(containers, effect) {
  const title = nameOf(effect);
  if (['prepare', 'unprepare'].includes(effect.op) && !effect.error) applyClaim(containers, effect);
  if (effect.container && !effect.error) {
    if (['exit', 'delete'].includes(effect.op)) containers.delete(title);
    else if (effect.cpus || effect.shares) containers.set(title, containerOf(effect));
  }
  // A preview of rebalancing tells moves that were not made.
  if (effect.op === 'rebalance' && effect.reason.startsWith('a preview')) return;
  for (const change of effect.changed) {
    const known = containers.get(nameOf(change));
    if (!known) continue;
    const cpus = parseList(change.cpus);
    // The output of -o json does not tell which CPUs of a container that moved are exclusive: those that it keeps, or else all.
    const exclusive = known.exclusive ? new Set([...parseList(known.exclusive)].filter((cpu) => cpus.has(cpu))) : new Set();
    const own = typeof change.exclusive === 'string' ? parseList(change.exclusive)
      : known.exclusive && exclusive.size === 0 ? cpus : exclusive;
    containers.set(known.key, {...known, cpus: change.cpus, mems: change.mems, exclusive: toList(own),
      shared: toList(without(cpus, own))});
  }
}

// The policy balloons numbers its balloons.
function poolOf(name, shared) {
  return /\[\d+\]$/.test(name) ? {name, kind: 'balloon', cpus: shared, shared} : {name, shared};
}

// The node after the first `count` effects, in the form in which a daemon tells of itself.
export function nodeAfter(simulation, count) {
  const containers = new Map();
  const done = simulation.effects.slice(0, count);
  for (const effect of done) apply(containers, effect);
  const list = [...containers.values()];
  const exclusive = new Set(list.flatMap((container) => [...parseList(container.exclusive)]));
  const reserved = done.findLast((effect) => typeof effect.reserved === 'string')?.reserved ?? '';
  const pools = new Map();
  for (const container of list) {
    if (!container.shared) continue;
    const shared = pools.get(container.pool) ?? new Set();
    without(without(parseList(container.shared), exclusive), parseList(reserved)).forEach((cpu) => shared.add(cpu));
    pools.set(container.pool, shared);
  }
  return {
    containers: list,
    refused: done.filter((effect) => effect.error).length,
    pools: [{name: 'reserved', shared: reserved}, ...[...pools].filter(([name]) => !isReserved({name}))
        .map(([name, shared]) => poolOf(name, toList(shared)))],
    history: done.slice(-kHistoryEntries).map((effect) => ({time: effect.step, event: effect.error ? 'refused' : effect.op,
      container: nameOf(effect), cpus: effect.cpus, reason: effect.reason, error: effect.error})),
  };
}

export function cpusOf(simulation) {
  const cpus = new Set();
  for (const effect of simulation.effects) {
    for (const each of [effect, ...effect.changed]) parseList(each.cpus).forEach((cpu) => cpus.add(cpu));
  }
  return cpus;
}

export function describeStep(simulation, count) {
  const effect = simulation.effects[count - 1];
  if (!effect) return 'at the start';
  const what = [effect.op, nameOf(effect), effect.error].filter(Boolean).join(' ');
  return `${count} of ${simulation.effects.length}: ${what}`;
}
