// SPDX-License-Identifier: Apache-2.0
import {parseList, toList} from './cpu_set.js';
import {ask, askAll, explain} from './data.js';
import {Details} from './details.js';
import {byId, make, setText} from './dom.js';
import {showHistory} from './history.js';
import {flatMachine, Machine, usesOf} from './machine.js';
import {showMemory} from './memory.js';
import {cpusOf, describeStep, nodeAfter, readSimulation} from './simulation.js';
import {focusRow, showContainers} from './table.js';

const kPeriodMs = 1000;
const kLongestPauseMs = 10000;

const state = {
  node: undefined,        // the daemon's last data
  topology: undefined,    // of the daemon's machine
  topologyIsCurrent: false,
  simulation: undefined,  // shown in place of the node
  chosen: undefined,      // key of a container
  paused: false,
  pause: kPeriodMs,
};

const details = new Details(explainNow, (key) => {
  state.chosen = undefined;
  show();
  focusRow(key);
});
const machine = new Machine(chooseCpu);

function explainNow(container) {
  if (state.simulation) return Promise.resolve([container]);
  return explain(container.id || container.title);
}

// The node that is shown: the daemon's or, where a simulation is open, that of the simulation.
function shown() {
  return state.simulation ? nodeAfter(state.simulation, Number(byId('step').value)) : state.node;
}

function chooseCpu(cpu) {
  const node = shown();
  if (!node) return;
  machine.describe(cpu, node.containers);
  const owner = node.containers.find((container) => container.state !== 'exited' && parseList(container.exclusive).has(cpu));
  if (owner) choose(owner.key, false);
}

function choose(key, takeFocus = true) {
  state.chosen = key;
  show(takeFocus);
}

function figure(name, value, more = '') {
  const number = make('dd', {}, value);
  if (more) number.append(make('small', {title: more}, more));
  return make('div', {}, make('dt', {}, name), number);
}

function showFigures(node, topology) {
  const uses = usesOf(topology, node.containers, node.pools);
  const cpus = (name, set) => figure(name, set.size, toList(set));
  const pods = new Set(node.containers.map((container) => `${container.namespace}/${container.pod}`));
  byId('figures').replaceChildren(cpus('CPUs online', uses.online), cpus('Exclusive', uses.exclusive),
      cpus('Shared', uses.shared), cpus('Reserved', uses.reserved), cpus('Unassigned', uses.unassigned),
      figure('Containers', node.containers.length, `in ${pods.size} pods`),
      ...(node.status?.unsettled ? [figure('Not in force yet', node.status.unsettled)] : []));
}

let last = '';

function drawMachine(topology) {
  machine.draw(topology);
  last = '';
}

// Draws the node. Where nothing changed the document stays untouched, so that the reader's selection and focus stay too.
function show(takeFocus = false) {
  const node = shown();
  const topology = machine.topology;
  if (!node || !topology) return;
  const chosen = node.containers.find((container) => container.key === state.chosen);
  const filter = byId('filter').value;
  const now = JSON.stringify([node.containers, node.pools, node.history, node.status?.unsettled, state.chosen, filter]);
  if (now !== last) {
    last = now;
    showFigures(node, topology);
    machine.colour(node.containers, node.pools, chosen);
    showMemory(topology, node.containers);
    showContainers(node.containers, filter, state.chosen, choose);
    showHistory(node.history);
  }
  if (chosen) details.show(chosen, takeFocus);
  else if (state.chosen !== undefined) details.close();
}

function tell(problems) {
  const box = byId('problems');
  box.hidden = problems.length === 0;
  if (box.textContent !== problems.join('')) box.replaceChildren(...problems.map((text) => make('p', {}, text)));
}

function problemText(problem) {
  return `${problem.kind}: ${problem.message}${problem.next ? `; try: ${problem.next}` : ''}`;
}

function showStatus(status) {
  setText(byId('source'), `${status.version}, policy ${status.policy}`);
  const runtime = status.runtime === 'connected' ? 'runtime connected' : `runtime: ${status.runtime}`;
  setText(byId('state'), `${runtime}; configuration of ${status.config}; state ${status.state}`);
  tell(status.problems.map(problemText));
}

function named(container) {
  const title = `${container.namespace}/${container.pod}/${container.name}`;
  return {...container, title, key: container.id || title};
}

async function refresh() {
  try {
    const topology = state.topologyIsCurrent ? state.topology : await ask('topology');
    const node = await askAll();
    node.containers = node.containers.map(named);
    const isOther = JSON.stringify(topology) !== JSON.stringify(state.topology);
    state.topology = topology;
    state.topologyIsCurrent = true;
    state.node = node;
    state.pause = kPeriodMs;
    if (state.simulation) return;
    if (isOther) drawMachine(topology);
    showStatus(node.status);
    show();
  } catch (error) {
    // It may be another daemon that answers again.
    state.topologyIsCurrent = false;
    state.pause = Math.min(2 * state.pause, kLongestPauseMs);
    if (!state.simulation) tell([`${error.message} What is shown may be out of date.`]);
  }
}

async function follow() {
  if (!state.paused && !state.simulation && !document.hidden) await refresh();
  setTimeout(follow, state.pause);
}

function openSimulation(simulation) {
  state.simulation = simulation;
  state.chosen = undefined;
  details.close();
  const cpus = cpusOf(simulation);
  const fits = state.topology && [...cpus].every((cpu) => state.topology.cpus.some((known) => known.id === cpu));
  drawMachine(simulation.topology ?? (fits ? state.topology : flatMachine(cpus)));
  byId('step').max = simulation.effects.length;
  byId('step').value = simulation.effects.length;
  byId('simulation').hidden = false;
  byId('pause').disabled = true;
  setText(byId('source'), 'simulation');
  setText(byId('state'), simulation.name);
  tell(simulation.topology || fits ? [] : ['The file has no machine, so its CPUs are shown in a row: put the line of '
    + '"cri-resmgr-ctl topology -topology SPEC -o json" before it, or open it beside.']);
  showStep();
}

function showStep() {
  setText(byId('step-text'), describeStep(state.simulation, Number(byId('step').value)));
  show();
}

function moveStep(by) {
  byId('step').value = Number(byId('step').value) + by;
  showStep();
}

function closeSimulation() {
  details.close();
  state.simulation = undefined;
  byId('simulation').hidden = true;
  byId('pause').disabled = false;
  byId('files').value = '';
  tell([]);
  if (state.topology) drawMachine(state.topology);
  if (state.node) {
    showStatus(state.node.status);
    show();
  }
  byId('open-files').focus();
}

byId('open-files').addEventListener('click', () => byId('files').click());
byId('files').addEventListener('change', async () => {
  if (byId('files').files.length === 0) return;
  try {
    openSimulation(await readSimulation(byId('files').files));
    byId('step').focus();
  } catch (error) {
    tell([error.message]);
  }
});
byId('step').addEventListener('input', showStep);
byId('step-back').addEventListener('click', () => moveStep(-1));
byId('step-on').addEventListener('click', () => moveStep(1));
byId('back').addEventListener('click', closeSimulation);
byId('filter').addEventListener('input', () => show());
byId('pause').addEventListener('click', () => {
  state.paused = !state.paused;
  byId('pause').setAttribute('aria-pressed', String(state.paused));
});
follow();
