// SPDX-License-Identifier: Apache-2.0
import {parseList} from './cpu_set.js';
import {byId, bytes, make} from './dom.js';

// Adds up the memory limits of containers on each node. A container without memory nodes of its own may use all nodes.
export function showMemory(topology, containers) {
  const all = new Set(topology.numa.map((node) => node.id));
  const alone = new Map();
  const among = new Map();
  for (const container of containers) {
    if (container.state === 'exited' || !container.memoryLimit) continue;
    const own = parseList(container.mems);
    const nodes = own.size > 0 ? own : all;
    const sums = nodes.size === 1 ? alone : among;
    for (const node of nodes) sums.set(node, (sums.get(node) ?? 0) + container.memoryLimit);
  }
  const rows = topology.numa.map((node) => {
    const bound = alone.get(node.id) ?? 0;
    const share = node.memoryBytes > 0 ? Math.min(1, bound / node.memoryBytes) : 0;
    const percent = `${Math.round(share * 100)} %`;
    const meter = make('meter', {min: 0, max: 1, high: 0.95, value: share, 'aria-label': `Node ${node.id}: limits of containers on it alone`},
        percent);
    return make('tr', {}, make('th', {scope: 'row'}, node.id), make('td', {}, node.type), make('td', {}, bytes(node.memoryBytes)),
        make('td', {}, bytes(bound)), make('td', {}, bytes(among.get(node.id) ?? 0)), make('td', {}, meter));
  });
  byId('memory').tBodies[0].replaceChildren(...rows);
}
