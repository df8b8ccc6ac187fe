// SPDX-License-Identifier: Apache-2.0
// Draws a machine: packages, dies, NUMA nodes, groups of cores with a common L3 cache, cores, and their threads one above
// the other. The names of containers are above the cores that they have.
import {bytes, make, percent, replace, setStyle, setText} from './dom.js';
import {isClaim, neighboursOf, onlineOf, placesOf} from './owners.js';

// Cores in a row, and the width of a row of caches in cores, at most.
const kLongestRow = 16;
const kRowOfCaches = 26;

function groupBy(list, keyOf) {
  const groups = new Map();
  for (const each of list) {
    const key = keyOf(each);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(each);
  }
  return [...groups].sort(([a], [b]) => a - b);
}

// Rows of equal length, the last one excepted.
function rowsOf(cores) {
  const rows = Math.ceil(cores.length / kLongestRow);
  const length = Math.ceil(cores.length / rows);
  return Array.from({length: rows}, (_, i) => cores.slice(i * length, (i + 1) * length));
}

export class Machine {
  // `choose` is called with the number of a CPU.
  constructor(root, colours, choose) {
    this.root = root;
    this.colours = colours;
    this.choose = choose;
    this.root.classList.add('machine');
    this.root.addEventListener('keydown', (event) => this.#onKey(event));
  }

  clear() {
    this.topology = undefined;
    this.root.replaceChildren();
  }

  // The topology as `cri-resmgr-ctl topology -o json` has it.
  draw(topology) {
    this.topology = topology;
    this.cells = new Map();
    this.rows = [];   // {cores: lists of CPUs, names: element, shown: what the element shows}
    this.heads = new Map();
    const count = topology.cpus.length;
    this.root.classList.toggle('many', count > 320);
    this.root.classList.toggle('some', count > 160 && count <= 320);
    const nodes = new Map(topology.numa.map((node) => [node.id, node]));
    const packages = groupBy(topology.cpus, (cpu) => cpu.package);
    this.isAlone = packages.length === 1;
    const drawn = packages.map(([id, cpus]) => this.#package(id, cpus, nodes));
    const bare = topology.numa.filter((node) => !this.heads.has(node.id));
    if (bare.length > 0) {
      drawn.push(make('div', {class: 'package bare', role: 'group', 'aria-label': 'Memory without CPUs'},
          make('div', {class: 'nodes'}, ...bare.map((node) => make('div', {class: 'node'}, this.#head(node.id, node, ''))))));
    }
    this.root.replaceChildren(...drawn);
    const first = this.cells.values().next().value;
    if (first) first.tabIndex = 0;
  }

  #package(id, cpus, nodes) {
    const dies = groupBy(cpus, (cpu) => cpu.die);
    const several = dies.length > 1;
    const inside = dies.flatMap(([die, own]) => make('div', {class: 'die', role: 'group', 'aria-label': `Die ${die}`},
        ...this.#nodes(own, nodes, several ? `Die ${die}, ` : '')));
    const cores = new Set(cpus.map((cpu) => cpu.core)).size;
    return make('div', {class: 'package', role: 'group', 'aria-label': `Package ${id}`},
        make('h3', {}, id < 0 ? 'CPUs ' : `Package ${id} `,
            make('span', {class: 'quiet'}, `${cores} cores, ${cpus.length} CPUs`)), make('div', {class: 'nodes'}, ...inside));
  }

  #nodes(cpus, nodes, die) {
    return groupBy(cpus, (cpu) => cpu.numa).map(([id, own]) => {
      const l3s = groupBy(own, (cpu) => cpu.l3);
      const coresOf = ([, of]) => Math.min(new Set(of.map((cpu) => cpu.core)).size, kLongestRow);
      const longest = Math.max(...l3s.map(coresOf));
      const room = Math.max(1, Math.floor(kRowOfCaches * (this.isAlone ? 2 : 1) / (longest + 1)));
      const grid = make('div', {class: 'l3s'}, ...l3s.map(([l3, cores]) => this.#l3(l3, cores, l3s.length)));
      grid.style.setProperty('--across', Math.ceil(l3s.length / Math.ceil(l3s.length / room)));
      return make('div', {class: 'node', role: 'group', 'aria-label': `NUMA node ${id}`},
          this.#head(id, nodes.get(id), die), grid);
    });
  }

  #head(id, node, die) {
    const bar = make('span', {class: 'bar', role: 'img'}, make('i', {class: 'by-containers'}), make('i', {class: 'by-others'}),
        make('b', {}));
    const text = make('span', {class: 'quiet'}, node?.memoryBytes ? bytes(node.memoryBytes) : '');
    const kind = node && node.type && node.type !== 'dram' ? ` ${node.type}` : '';
    if (!this.heads.has(id)) this.heads.set(id, []);
    const cpus = this.topology.cpus.filter((cpu) => cpu.numa === id).map((cpu) => cpu.id);
    if (node) this.heads.get(id).push({bar, text, cpus});
    return make('h4', {}, id < 0 ? 'no node ' : `${die}Node ${id}${kind} `, ...(node ? [bar, text] : []));
  }

  #l3(id, cpus, count) {
    const cores = groupBy(cpus, (cpu) => cpu.core).map(([, threads]) => threads.map((cpu) => cpu.id));
    const rows = rowsOf(cores).map((row) => this.#row(row));
    const box = make('div', {class: 'cores'}, ...rows);
    if (id < 0 && count === 1) return box;
    return make('div', {class: 'l3', role: 'group', 'aria-label': `L3 cache ${id}`},
        make('span', {class: 'l3-name', title: `L3 cache ${id}`}, `L3 ${id}`), box);
  }

  #row(cores) {
    const names = make('div', {class: 'names', 'aria-hidden': 'true'});
    const row = make('div', {class: 'row'}, names,
        ...cores.map((threads) => make('div', {class: 'core'}, ...threads.map((cpu) => this.#cpu(cpu)))));
    row.style.setProperty('--cores', cores.length);
    this.rows.push({cores, names});
    return row;
  }

  #cpu(id) {
    const cell = make('button', {type: 'button', class: 'cpu free', tabindex: '-1', 'data-cpu': id,
      onclick: () => this.choose(id)}, id);
    this.cells.set(id, cell);
    return cell;
  }

  // The Tab key stops once in the machine; within it the arrow keys move.
  #onKey(event) {
    const cells = [...this.cells.values()];
    const at = cells.indexOf(document.activeElement);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = {ArrowRight: () => at + 1, ArrowLeft: () => at - 1, Home: () => 0, End: () => cells.length - 1,
      ArrowDown: () => this.#below(cells, at, 1), ArrowUp: () => this.#below(cells, at, -1)}[event.key]?.();
    if (to === undefined) return;
    event.preventDefault();
    const next = cells[to];
    if (!next) return;
    cells[at].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  // The nearest cell above or below.
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

  // Colours each CPU by its owner.
  //   owners  owners.js
  //   oldest  keys of owners, the oldest first
  colour(owners, oldest) {
    this.owners = owners;
    const keys = new Set([...owners.values()].map((owner) => owner.key).filter((key) => key !== undefined));
    const ordered = [...oldest.filter((key) => keys.has(key)), ...[...keys].filter((key) => !oldest.includes(key))];
    this.tints = this.colours.assign(ordered, neighboursOf(this.rows.map((row) => row.cores), owners));
    for (const cpu of this.topology.cpus) this.#paint(cpu, owners.get(cpu.id));
    for (const row of this.rows) this.#name(row);
    this.#label();
  }

  #paint(cpu, owner) {
    const kind = ['balloon', 'claim'].includes(owner.state) ? `${owner.state} ` : '';
    const own = owner.key === undefined ? owner.state : `${kind}own own${this.tints.get(owner.key)}`;
    const cell = this.cells.get(cpu.id);
    const marks = ['chosen', 'found', 'measured'].filter((mark) => cell.classList.contains(mark));
    const classes = ['cpu', own, ...marks].join(' ');
    if (cell.className !== classes) cell.className = classes;
  }

  // The names above a row: one for neighbouring cores with the same owners, which may reach over two more without a name.
  #name(row) {
    const runs = [];
    row.cores.forEach((threads, i) => {
      const here = [...new Set(threads.map((cpu) => this.owners.get(cpu)).filter((owner) => owner.label))];
      const key = here.map((owner) => owner.key ?? owner.label).join(' ');
      const last = runs.at(-1);
      if (last && last.key === key && last.from + last.length === i) ++last.length;
      else if (here.length > 0) runs.push({key, from: i, length: 1, owners: here});
    });
    replace(row.names, ...runs.map((run, i) => {
      const room = (runs[i + 1]?.from ?? row.cores.length) - run.from;
      const name = make('span', {title: run.owners.map((owner) => owner.title).join('; ')},
          [...new Set(run.owners.map((owner) => owner.label))].join(', '));
      name.style.setProperty('grid-column', `${run.from + 1} / span ${Math.min(room, run.length + 2)}`);
      return name;
    }));
  }

  // Marks CPUs where they are: those of the chosen container, and those that the reader looks for.
  mark(chosen, found) {
    this.root.classList.toggle('choosing', chosen.size > 0);
    this.root.classList.toggle('finding', found !== undefined);
    for (const [id, cell] of this.cells) {
      cell.classList.toggle('chosen', chosen.has(id));
      cell.classList.toggle('found', found?.has(id) ?? false);
    }
  }

  // How busy the CPUs are: the answer to `busy`, or undefined.
  showBusy(cpus) {
    this.busy = new Map((cpus ?? []).map((cpu) => [cpu.id, cpu.busyPercent]));
    for (const [id, cell] of this.cells) {
      const busy = this.busy.get(id);
      const known = typeof busy === 'number';
      cell.classList.toggle('measured', known);
      setStyle(cell, '--busy', known ? String(Math.round(busy)) : '0');
    }
    this.#label();
  }

  #label() {
    if (!this.owners) return;
    for (const cpu of this.topology.cpus) {
      const cell = this.cells.get(cpu.id);
      const busy = this.busy?.get(cpu.id);
      const label = `CPU ${cpu.id}, core ${cpu.core}, node ${cpu.numa}: ${this.owners.get(cpu.id).title}` +
        (typeof busy === 'number' ? `, ${percent(busy)} busy` : '');
      if (cell.title === label) continue;
      cell.title = label;
      cell.setAttribute('aria-label', label);
    }
  }

  // Memory and use in the heads of nodes.
  //   memory  by node {total, used, byContainers, bound}, what is not known is undefined
  showNodes(memory) {
    for (const [id, heads] of this.heads) {
      for (const head of heads) this.#showHead(head, memory.get(id));
    }
  }

  #showHead({bar, text, cpus}, memory) {
    if (!memory?.total) {
      bar.hidden = true;
      return;
    }
    const {total, used, byContainers, bound} = memory;
    const share = (part) => `${Math.round(1000 * Math.min(1, part / total)) / 10}%`;
    setStyle(bar, '--part', share(Math.min(byContainers ?? 0, used ?? 0)));
    setStyle(bar, '--rest', share(Math.max(0, (used ?? 0) - (byContainers ?? 0))));
    setStyle(bar, '--bound', share(bound));
    const gib = (part) => (part / 2 ** 30).toFixed(part < 2 ** 30 * 10 && part > 0 ? 1 : 0);
    const parts = used === undefined ? [`bound ${gib(bound)}`] : [`used ${gib(used)}`, `bound ${gib(bound)}`];
    const busy = cpus.map((cpu) => this.busy?.get(cpu)).filter((each) => typeof each === 'number');
    const sum = busy.reduce((a, b) => a + b, 0);
    setText(text, `${parts.join(', ')} of ${gib(total)} GiB${busy.length > 0 ? ` · ${percent(sum / busy.length)} busy` : ''}`);
    const label = `${text.textContent}; ${byContainers === undefined ? '' : `${gib(byContainers)} GiB of these by containers`}`;
    if (bar.title !== label) {
      bar.title = label;
      bar.setAttribute('aria-label', label);
    }
  }

  // "CPU 7, ...; shop/web/main may run there."
  describe(cpu, containers) {
    const online = this.owners ? onlineOf(this.owners) : new Set();
    const here = containers.filter((container) => !isClaim(container) && placesOf(container, online).has(cpu))
        .map((container) => container.title);
    const users = here.length === 0 ? 'no container may run there'
      : `${here.slice(0, 6).join(', ')}${here.length > 6 ? ` and ${here.length - 6} more` : ''} may run there`;
    return `${this.cells.get(cpu)?.title ?? ''}; ${users}.`;
  }
}

// A machine of which only the numbers of the CPUs are known.
export function flatMachine(cpus) {
  const ids = [...cpus].sort((a, b) => a - b);
  return {cpus: ids.map((id) => ({id, core: id, l3: -1, die: -1, numa: -1, package: -1, online: true})), numa: []};
}
