// SPDX-License-Identifier: Apache-2.0
// The table of containers: what they were given, and what they use.
import {parseList} from './cpu_set.js';
import {amount, byId, bytes, make, percent, setText} from './dom.js';
import {cpusNamed} from './figures.js';
import {placesOf} from './owners.js';

const kUnsorted = '';

// A simulation tells the limit itself, which a policy may have lifted from the quota.
function cpuLimit(container) {
  if (container.cpuLimit > 0) return container.cpuLimit / 1000;
  return container.quota > 0 ? container.quota / (container.period || 100000) : undefined;
}

function limitText(container) {
  const limit = cpuLimit(container);
  return limit === undefined ? '-' : String(Math.round(1000 * limit) / 1000);
}

function usedCell({use}) {
  if (typeof use?.cpuUsed !== 'number') return '-';
  const share = use.granted > 0 ? Math.min(1, use.cpuUsed / use.granted) : 0;
  const cell = make('span', {class: 'share'}, `${amount(use.cpuUsed, 2)} of ${amount(use.granted, 2)}`);
  cell.style.setProperty('--share', `${Math.round(100 * share)}%`);
  return cell;
}

function countText(count) {
  return typeof count === 'number' ? String(count) : '-';
}

function pressureText({use}) {
  if (typeof use?.cpuPressure10 !== 'number') return '-';
  return `${percent(use.cpuPressure10)} / ${percent(use.cpuPressure60)}`;
}

// {name, title, text or cell, by: what it is sorted by, high: what deserves a look, used: of what simulations do not have}.
// Numbers are sorted from the highest.
const kColumns = [
  {name: 'Exclusive', text: (container) => container.exclusive, by: (container) => parseList(container.exclusive).size},
  {name: 'Shared', text: (container) => container.shared, by: (container) => parseList(container.shared).size},
  {name: 'Used of granted', title: 'CPUs, on average since the sample before', cell: usedCell, used: true, by: ({use}) => use?.cpuUsed},
  {name: '10 min', title: 'CPUs used in the last ten minutes; the upper edge is what is granted', cell: 'line',
    used: true, by: ({use}) => use?.cpuUsed},
  {name: 'Throttled', title: 'Periods in which a quota was used up', text: ({use}) => percent(use?.throttledPercent),
    used: true, by: ({use}) => use?.throttledPercent, high: ({use}) => use?.throttledPercent >= 5},
  {name: 'Pressure', title: 'Time of the last 10 and 60 seconds in which some task waited for a CPU', text: pressureText,
    used: true, by: ({use}) => use?.cpuPressure10, high: ({use}) => use?.cpuPressure60 >= 20},
  {name: 'Memory', text: ({use}) => bytes(use?.memoryBytes), used: true, by: ({use}) => use?.memoryBytes},
  {name: 'Remote', title: 'The part of its memory on other nodes than decided', text: ({use}) => percent(use?.remotePercent),
    used: true, by: ({use}) => use?.remotePercent, high: ({use}) => use?.remotePercent >= 20},
  {name: 'Killed', title: 'Processes of it that were killed for want of memory since it was started',
    text: ({use}) => countText(use?.oomKills), used: true, by: ({use}) => use?.oomKills, high: ({use}) => use?.oomKills > 0},
  {name: 'Memory high', title: 'How often it reached memory.high since the sample before',
    text: ({use}) => countText(use?.memoryHighEvents), used: true, by: ({use}) => use?.memoryHighEvents},
  {name: 'Pool', text: (container) => container.pool, by: (container) => container.pool},
  {name: 'QoS', text: (container) => container.qos, by: (container) => container.qos},
  {name: 'State', text: (container) => container.state, by: (container) => container.state},
  {name: 'Nodes', title: 'Memory nodes', text: (container) => container.mems, by: (container) => container.mems},
  {name: 'CPU limit', text: limitText, by: cpuLimit},
  {name: 'Memory limit', text: (container) => bytes(container.memoryLimit), by: (container) => container.memoryLimit},
];

export class Table {
  //   choose   is called with the key of a container
  //   changed  when the order changed
  constructor(samples, choose, changed) {
    this.samples = samples;
    this.choose = choose;
    this.order = kUnsorted;
    this.changed = changed;
    this.body = byId('containers').tBodies[0];
    byId('containers').tHead.replaceChildren(make('tr', {}, this.#heading({name: 'Container'}),
        ...kColumns.map((column) => this.#heading(column))));
  }

  #heading(column) {
    const name = column.name === 'Container' ? kUnsorted : column.name;
    const button = make('button', {type: 'button', title: [column.title, 'Sorts by this'].filter(Boolean).join('. '),
      onclick: () => this.#sortBy(name)}, column.name);
    return make('th', {scope: 'col', 'data-order': name, class: column.used ? 'used' : ''}, button);
  }

  #sortBy(name) {
    this.order = name;
    for (const heading of byId('containers').tHead.rows[0].cells) {
      heading.dataset.order === name && name !== kUnsorted ? heading.setAttribute('aria-sort', 'descending')
        : heading.removeAttribute('aria-sort');
    }
    this.changed();
  }

  #row(container, isChosen) {
    const name = make('button', {type: 'button', class: 'link', 'data-key': container.key, 'aria-pressed': String(isChosen),
      onclick: () => this.choose(container.key)}, container.title);
    const cells = kColumns.map((column) => {
      const shown = column.cell === 'line' ? this.samples.draw(container.id, container.use?.granted ?? 0)
        : column.cell ? column.cell(container) : column.text(container) || '-';
      const isList = column.name === 'Exclusive' || column.name === 'Shared';
      return isList ? make('td', {class: 'cpus', title: container[column.name.toLowerCase()] ?? ''}, shown)
        : make('td', {class: `${column.used ? 'used' : ''}${column.high?.(container) ? ' warn' : ''}`}, shown);
    });
    return make('tr', {class: isChosen ? 'chosen' : ''}, make('td', {class: 'name', title: container.title}, name), ...cells);
  }

  #sorted(containers) {
    const column = kColumns.find((each) => each.name === this.order);
    if (!column) return containers;
    const keyOf = (container) => column.by(container) ?? '';
    const compare = (a, b) => (typeof a === 'number' || typeof b === 'number' ? (b || 0) - (a || 0) : a < b ? -1 : a > b ? 1 : 0);
    return containers.toSorted((a, b) => compare(keyOf(a), keyOf(b)));
  }

  // The focus stays where it is.
  show(containers, shown, chosenKey) {
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    this.body.replaceChildren(...this.#sorted(shown).map((container) => this.#row(container, container.key === chosenKey)));
    setText(byId('count'), shown.length === containers.length ? `${shown.length}` : `${shown.length} of ${containers.length}`);
    if (focused !== undefined) this.focus(focused);
  }

  #button(key) {
    return [...this.body.querySelectorAll('button[data-key]')].find((button) => button.dataset.key === key);
  }

  focus(key) {
    this.#button(key)?.focus({preventScroll: true});
  }

  focusFirst() {
    this.body.querySelector('button[data-key]')?.focus();
  }

  // Brings a row into view within the table; the page does not move.
  reveal(key) {
    const row = this.#button(key)?.closest('tr');
    const box = byId('containers').closest('.scroll');
    if (!row) return;
    const top = row.offsetTop - byId('containers').tHead.offsetHeight;
    if (top < box.scrollTop || row.offsetTop + row.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top;
  }
}

// The containers that have the text somewhere, or may run on one of the CPUs that it names.
export function matching(containers, text) {
  const wanted = text.trim().toLowerCase();
  if (wanted === '') return containers;
  const cpus = cpusNamed(wanted);
  const hasText = (container) => [container.title, container.qos, container.state, container.pool]
      .some((each) => (each ?? '').toLowerCase().includes(wanted));
  if (!cpus) return containers.filter(hasText);
  const meets = (list) => {
    const has = parseList(list);
    return [...cpus].some((cpu) => has.has(cpu));
  };
  const own = new Set(containers.filter((container) => meets(container.exclusive)));
  const bound = new Set(containers.filter((container) => !own.has(container) && meets(container.cpus)));
  const anywhere = containers.filter((container) => !container.cpus && placesOf(container, cpus).size > 0);
  return [...own, ...bound, ...anywhere];
}
