// SPDX-License-Identifier: Apache-2.0
// Draws the machine: packages, dies, NUMA nodes, groups of cores with a common L3 cache, cores and their threads.
import {parseList, without} from './cpu_set.js';
import {byId, bytes, make, setText} from './dom.js';

const kTints = 4;

function groupBy(list, keyOf) {
  const groups = new Map();
  for (const each of list) {
    const key = keyOf(each);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(each);
  }
  return [...groups].sort(([a], [b]) => a - b);
}

export class Machine {
  // `choose` is called with the number of a CPU.
  constructor(choose) {
    this.root = byId('machine');
    this.choose = choose;
    this.cells = new Map();
    this.root.addEventListener('keydown', (event) => this.#onKey(event));
  }

  // The topology as `cri-resmgr-ctl topology -o json` has it.
  draw(topology) {
    this.topology = topology;
    this.cells.clear();
    this.root.classList.toggle('many', topology.cpus.length > 160);
    const nodes = new Map(topology.numa.map((node) => [node.id, node]));
    this.root.replaceChildren(...groupBy(topology.cpus, (cpu) => cpu.package).map(([id, cpus]) =>
      this.#package(id, cpus, nodes)));
    const first = this.cells.values().next().value;
    if (first) first.tabIndex = 0;
  }

  #package(id, cpus, nodes) {
    const dies = groupBy(cpus, (cpu) => cpu.die);
    const inside = dies.length === 1 ? [this.#nodes(dies[0][1], nodes)] : dies.map(([die, own]) =>
      make('div', {class: 'die'}, make('h4', {}, `Die ${die}`), this.#nodes(own, nodes)));
    const cores = new Set(cpus.map((cpu) => cpu.core)).size;
    return make('div', {class: 'package', role: 'group', 'aria-label': `Package ${id}`},
        make('h3', {}, id < 0 ? 'CPUs' : `Package ${id} `,
            make('span', {class: 'quiet'}, `${cores} cores, ${cpus.length} CPUs`)), ...inside);
  }

  #nodes(cpus, nodes) {
    return make('div', {class: 'nodes'}, ...groupBy(cpus, (cpu) => cpu.numa).map(([id, own]) => {
      const memory = nodes.get(id)?.memoryBytes;
      const l3s = groupBy(own, (cpu) => cpu.l3);
      return make('div', {class: 'node', role: 'group', 'aria-label': `NUMA node ${id}`},
          make('h4', {}, id < 0 ? 'no node ' : `Node ${id} `, make('span', {}, memory ? bytes(memory) : '')),
          make('div', {class: 'l3s'}, ...l3s.map(([l3, cores]) => this.#l3(l3, cores, l3s.length))));
    }));
  }

  #l3(id, cpus, count) {
    const cores = make('div', {class: 'cores'}, ...groupBy(cpus, (cpu) => cpu.core).map(([core, threads]) =>
      make('div', {class: 'core'}, ...threads.map((cpu) => this.#cpu(cpu, core)))));
    if (id < 0 && count === 1) return cores;
    return make('div', {class: 'l3', role: 'group', 'aria-label': `L3 cache ${id}`}, make('span', {}, `L3 ${id}`), cores);
  }

  #cpu(cpu) {
    const cell = make('button', {type: 'button', class: 'cpu free', tabindex: '-1', 'data-cpu': cpu.id,
      onclick: () => this.choose(cpu.id)}, cpu.id);
    this.cells.set(cpu.id, cell);
    return cell;
  }

  // The Tab key stops once in the machine; within it the arrow keys move.
  #onKey(event) {
    const cells = [...this.cells.values()];
    const at = cells.indexOf(document.activeElement);
    if (at < 0) return;
    const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: cells.length - 1,
      ArrowDown: this.#below(cells, at, 1), ArrowUp: this.#below(cells, at, -1)}[event.key];
    if (to === undefined || !cells[to]) return;
    event.preventDefault();
    cells[at].tabIndex = -1;
    cells[to].tabIndex = 0;
    cells[to].focus();
  }

  // The nearest cell of the next row, or -1.
  #below(cells, at, direction) {
    const here = cells[at].getBoundingClientRect();
    let best = -1;
    let least = Infinity;
    cells.forEach((cell, i) => {
      const there = cell.getBoundingClientRect();
      const down = (there.top - here.top) * direction;
      if (down < here.height / 2) return;
      const distance = down * 4 + Math.abs(there.left - here.left);
      if (distance < least) [best, least] = [i, distance];
    });
    return best;
  }

  // Colours each CPU by its use.
  //   containers, pools  as the daemon tells them
  //   chosen             the container whose CPUs are marked, or undefined
  colour(containers, pools, chosen) {
    const owners = new Map();
    let tint = -1;
    for (const container of containers) {
      const own = parseList(container.exclusive);
      if (own.size === 0 || container.state === 'exited') continue;
      tint = (tint + 1) % kTints;
      for (const cpu of own) owners.set(cpu, {name: container.title, tint});
    }
    const shared = new Set();
    const reserved = new Set();
    for (const pool of pools) {
      for (const cpu of parseList(pool.shared)) (pool.name === 'reserved' ? reserved : shared).add(cpu);
    }
    const marked = chosen ? parseList(chosen.cpus) : new Set();
    this.root.classList.toggle('choosing', marked.size > 0);
    for (const cpu of this.topology.cpus) this.#paint(cpu, owners.get(cpu.id), shared, reserved, marked);
  }

  #paint(cpu, owner, shared, reserved, marked) {
    let style = 'free';
    let use = 'unassigned';
    if (!cpu.online) [style, use] = ['offline', 'offline'];
    else if (owner) [style, use] = [`own${owner.tint}`, `exclusive to ${owner.name}`];
    else if (reserved.has(cpu.id)) [style, use] = ['reserved', 'reserved'];
    else if (shared.has(cpu.id)) [style, use] = ['shared', 'shared'];
    const cell = this.cells.get(cpu.id);
    const classes = `cpu ${style}${marked.has(cpu.id) ? ' chosen' : ''}`;
    if (cell.className !== classes) cell.className = classes;
    const label = `CPU ${cpu.id}, core ${cpu.core}, node ${cpu.numa}: ${use}`;
    if (cell.title === label) return;
    cell.title = label;
    cell.setAttribute('aria-label', label);
  }

  describe(cpu, containers) {
    const here = containers.filter((container) => parseList(container.cpus).has(cpu)).map((container) => container.title);
    const text = this.cells.get(cpu)?.title ?? '';
    const users = here.length === 0 ? 'no container may run there'
      : `${here.slice(0, 6).join(', ')}${here.length > 6 ? ` and ${here.length - 6} more` : ''} may run there`;
    setText(byId('cpu-text'), `${text}; ${users}.`);
  }
}

// A machine of which only the numbers of the CPUs are known.
export function flatMachine(cpus) {
  const ids = [...cpus].sort((a, b) => a - b);
  return {cpus: ids.map((id) => ({id, core: id, l3: -1, die: -1, numa: -1, package: -1, online: true})), numa: []};
}

// CPUs by use, for the figures.
export function usesOf(topology, containers, pools) {
  const online = new Set(topology.cpus.filter((cpu) => cpu.online).map((cpu) => cpu.id));
  const exclusive = new Set();
  const shared = new Set();
  const reserved = new Set();
  for (const container of containers) {
    if (container.state !== 'exited') parseList(container.exclusive).forEach((cpu) => exclusive.add(cpu));
  }
  for (const pool of pools) {
    for (const cpu of parseList(pool.shared)) (pool.name === 'reserved' ? reserved : shared).add(cpu);
  }
  const used = new Set([...exclusive, ...shared, ...reserved]);
  return {online, exclusive, shared: without(shared, exclusive), reserved: without(reserved, exclusive),
    unassigned: without(online, used)};
}
