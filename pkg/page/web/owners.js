// SPDX-License-Identifier: Apache-2.0
// Who has which CPU, by what the daemon tells.
import {parseList} from './cpu_set.js';

// "payments" for "payments-6d4cf56db6-x7xkq" and "collector" for "collector-x7xkq": what people call a pod. Kubernetes makes
// such endings of letters that form no words.
function shortName(pod) {
  return pod.replace(/(-[bcdfghjklmnpqrstvwxz2456789]{6,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}$/, '');
}

// Holds CPUs for the containers that carry it, also while there are none.
export const isClaim = (container) => container.state === 'claim';

// A policy's pool for the system; balloons are numbered.
export const isReserved = (pool) => pool.name === 'reserved' || pool.name.startsWith('reserved[');

const hasEnded = (container) => container.state === 'exited';

// Where a container may run, as a set of CPUs: on each one that is online if it is bound to none, and nowhere after its end.
export function placesOf(container, online) {
  if (hasEnded(container)) return new Set();
  return container.cpus ? parseList(container.cpus) : online;
}

// By CPU: {state, key, label, title}. `key` names an owner with a colour of its own, `container` is the key of a container.
//   state    exclusive, claim, balloon, shared, reserved, isolated, free or offline
//   offline  the list of CPUs that are offline now; undefined for those that were when the topology was read
export function ownersOf(topology, containers, pools, offline) {
  const owners = new Map();
  const put = (cpus, owner) => {
    for (const cpu of cpus) owners.set(cpu, owner);
  };
  for (const cpu of topology.cpus) {
    if (cpu.isolated) owners.set(cpu.id, {state: 'isolated', title: 'isolated, and free'});
  }
  for (const pool of pools) {
    if (pool.name === 'isolated') continue;
    if (isReserved(pool)) {
      put(parseList(pool.shared), {state: 'reserved', title: 'reserved', label: pool.kind === 'balloon' ? pool.name : ''});
    } else if (pool.kind !== 'balloon') {
      put(parseList(pool.shared), {state: 'shared', title: 'shared'});
    }
  }
  for (const pool of pools) {
    if (pool.kind !== 'balloon' || isReserved(pool)) continue;
    put(parseList(pool.cpus), {state: 'balloon', key: `balloon ${pool.name}`, label: pool.name, title: `balloon ${pool.name}`});
  }
  const own = containers.filter((container) => container.exclusive && !hasEnded(container) && !isClaim(container));
  const ofPod = new Map();
  for (const {namespace, pod} of own) ofPod.set(`${namespace}/${pod}`, (ofPod.get(`${namespace}/${pod}`) ?? 0) + 1);
  for (const container of own) {
    const name = shortName(container.pod);
    const isOne = ofPod.get(`${container.namespace}/${container.pod}`) === 1;
    put(parseList(container.exclusive), {state: 'exclusive', key: container.key, container: container.key,
      label: isOne ? name : `${name}/${container.name}`, title: `exclusive to ${container.title}`});
  }
  for (const claim of containers.filter(isClaim)) {
    const name = `${claim.namespace}/${claim.pod}`;
    for (const cpu of parseList(claim.exclusive)) {
      // The container that has them for itself is the one that people look for.
      const carrier = owners.get(cpu)?.state === 'exclusive' ? owners.get(cpu) : undefined;
      owners.set(cpu, {state: 'claim', key: claim.key, container: carrier?.container ?? claim.key, label: carrier?.label ?? claim.pod,
        title: carrier ? `${carrier.title}, by claim ${name}` : `held for claim ${name}`});
    }
  }
  const off = offline === undefined ? undefined : parseList(offline);
  for (const cpu of topology.cpus) {
    if (off ? off.has(cpu.id) : !cpu.online) owners.set(cpu.id, {state: 'offline', title: 'offline'});
    else if (!owners.has(cpu.id)) owners.set(cpu.id, {state: 'free', title: 'unassigned'});
  }
  return owners;
}

// The CPUs that are online, as a set.
export function onlineOf(owners) {
  return new Set([...owners.keys()].filter((cpu) => owners.get(cpu).state !== 'offline'));
}

// By use: the CPUs of each state.
export function usesOf(topology, owners) {
  const uses = new Map(['exclusive', 'claim', 'balloon', 'shared', 'reserved', 'isolated', 'free', 'offline'].map((use) => [use, []]));
  for (const cpu of topology.cpus) uses.get(owners.get(cpu.id).state).push(cpu.id);
  return uses;
}

// Owners of cores that are no farther apart in a row are seen together.
const kNear = 3;

// By key: the keys of owners on near cores, in the same rows or in those above and below.
//   rows  lists of lists of CPUs: the cores of each row, as they are drawn
export function neighboursOf(rows, owners) {
  const neighbours = new Map();
  const meet = (a, b) => {
    for (const one of a) {
      for (const other of b) {
        const [first, second] = [owners.get(one)?.key, owners.get(other)?.key];
        if (first === undefined || second === undefined || first === second) continue;
        if (!neighbours.has(first)) neighbours.set(first, new Set());
        if (!neighbours.has(second)) neighbours.set(second, new Set());
        neighbours.get(first).add(second);
        neighbours.get(second).add(first);
      }
    }
  };
  rows.forEach((row, at) => {
    const next = rows[at + 1] ?? [];
    row.forEach((core, i) => {
      meet(core, core);
      for (const near of row.slice(i + 1, i + 1 + kNear)) meet(core, near);
      if (next[i]) meet(core, next[i]);
    });
    if (row.length > 0 && next.length > 0) meet(row.at(-1), next[0]);
  });
  return neighbours;
}
