// SPDX-License-Identifier: Apache-2.0
import {parseList} from './cpu_set.js';
import {byId, bytes, make, percent, replace} from './dom.js';

// By node: {id, type, total, used, byContainers, otherPages, bound, among}.
//   bound  memory limits of the containers that may use this node alone
//   among  of those that may use this one and others. A container without memory nodes of its own may use all nodes
export function memoryOf(topology, containers, nodes) {
  const all = new Set(topology.numa.map((node) => node.id));
  const use = new Map((nodes ?? []).map((node) => [node.id, node]));
  const memory = new Map(topology.numa.map(({id, type, memoryBytes}) => [id, {id, type, total: memoryBytes,
    used: use.get(id)?.memoryUsed ?? undefined, byContainers: use.get(id)?.containerBytes,
    otherPages: use.get(id)?.otherPagesPercent, bound: 0, among: 0}]));
  for (const container of containers) {
    if (container.state === 'exited' || !container.memoryLimit) continue;
    const own = parseList(container.mems);
    const may = own.size > 0 ? own : all;
    for (const id of may) {
      const node = memory.get(id);
      if (node) node[may.size === 1 ? 'bound' : 'among'] += container.memoryLimit;
    }
  }
  return memory;
}

export function showMemory(memory) {
  const meter = (node, name, part) => {
    const share = node.total > 0 ? Math.min(1, (part ?? 0) / node.total) : 0;
    return make('meter', {min: 0, max: 1, high: 0.95, value: share, title: name, 'aria-label': `Node ${node.id}: ${name}`},
        `${Math.round(share * 100)} %`);
  };
  const rows = [...memory.values()].map((node) => make('tr', {}, make('th', {scope: 'row'}, node.id), make('td', {}, node.type),
      make('td', {}, bytes(node.total)), make('td', {}, bytes(node.used)), make('td', {}, bytes(node.byContainers)),
      make('td', {}, bytes(node.bound)), make('td', {}, bytes(node.among)), make('td', {}, percent(node.otherPages)),
      make('td', {}, meter(node, 'used', node.used), meter(node, 'bound to it alone', node.bound))));
  replace(byId('memory').tBodies[0], ...rows);
}
