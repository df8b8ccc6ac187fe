// SPDX-License-Identifier: Apache-2.0
import {Colours} from './colours.js';
import {parseList} from './cpu_set.js';
import {ask, askAll, askUse, explain} from './data.js';
import {Details} from './details.js';
import {byId, duration, setText} from './dom.js';
import {cpusNamed, showFigures} from './figures.js';
import {showHistory} from './history.js';
import {flatMachine, Machine} from './machine.js';
import {memoryOf, showMemory} from './memory.js';
import {onlineOf, ownersOf, placesOf} from './owners.js';
import {copyPicture} from './picture.js';
import {cpusOf, describeStep, nodeAfter, readSimulation} from './simulation.js';
import {matching, Table} from './table.js';
import {Samples} from './use.js';
import {showVerdict, tell} from './verdict.js';

const kPeriodMs = 1000;
const kLongestPauseMs = 10000;
// The daemon samples each ten seconds, unless it is configured otherwise.
const kUsePeriodMs = 5000;
// Younger data is live: a slow round or two are no reason to worry.
const kOldMs = 5000;
const kGoneMs = 12000;

const state = {
  node: undefined,        // the daemon's last data
  use: undefined,         // what was used lately
  useAsked: -Infinity,
  asksUse: false,
  answered: undefined,    // when there was an answer last, by the browser's clock
  error: '',              // why there is none
  topology: undefined,    // of the daemon's machine
  topologyIsCurrent: false,
  simulation: undefined,  // shown in place of the node
  second: undefined,      // another simulation, shown beside it
  chosen: undefined,      // key of a container
  paused: false,
  pause: kPeriodMs,
};

const samples = new Samples();
const details = new Details(explainNow, (key) => {
  state.chosen = undefined;
  show();
  table.focus(key);
});
const colours = new Colours();
const machine = new Machine(byId('machine'), colours, chooseCpu);
const other = new Machine(byId('other'), colours, () => {});
const table = new Table(samples, (key) => choose(key), () => show());

function explainNow(container) {
  if (state.simulation) return Promise.resolve([container]);
  return explain(container.id || container.title);
}

// The node that is shown: the daemon's or, where a simulation is open, that of the simulation.
function shown() {
  return state.simulation ? nodeAfter(state.simulation, stepOf(state.simulation)) : state.node;
}

const stepOf = (simulation) => Math.min(Number(byId('step').value), simulation.effects.length);

function chooseCpu(cpu) {
  const node = shown();
  if (!node) return;
  setText(byId('cpu-text'), machine.describe(cpu, node.containers));
  byId('cpu-text').title = byId('cpu-text').textContent;
  const owner = machine.owners?.get(cpu);
  if (owner?.container !== undefined) return choose(owner.container, false);
  // A balloon has several containers: they, and its CPUs, are what the reader looks for.
  if (owner?.state !== 'balloon') return;
  byId('filter').value = owner.label;
  show();
}

function choose(key, takeFocus = true) {
  state.chosen = key;
  show(takeFocus);
  table.reveal(key);
  if (state.simulation) showBeside();
}

let last = '';

function drawMachine(topology) {
  machine.draw(topology);
  last = '';
}

const nodeTime = () => (state.node ? Date.parse(state.node.machine.time) + Date.now() - state.answered : Date.now());

// The CPUs to mark for what the reader looks for: those that the text names, or those of the containers that were found.
function foundCpus(text, containers, online) {
  if (text.trim() === '') return undefined;
  const named = cpusNamed(text);
  if (named) return named;
  const have = containers.some((container) => container.exclusive) ? (container) => parseList(container.exclusive)
    : (container) => placesOf(container, online);
  return new Set(containers.flatMap((container) => [...have(container)]));
}

// Draws the node. Where nothing changed the document stays untouched, so that the reader's selection and focus stay too.
function show(takeFocus = false) {
  const node = shown();
  const topology = machine.topology;
  if (!node || !topology) return;
  const use = state.simulation ? undefined : state.use;
  const useOf = new Map((use?.containers ?? []).map((container) => [container.id, container]));
  const containers = node.containers.map((container) => ({...container, use: useOf.get(container.id)}));
  const chosen = containers.find((container) => container.key === state.chosen);
  const text = byId('filter').value;
  const now = JSON.stringify([containers, node.pools, node.history, node.status?.unsettled, node.status?.offline, state.chosen,
    text, table.order, use?.cpus, use?.nodes]);
  if (now !== last) {
    last = now;
    showAll({...node, containers}, topology, use, text, chosen);
  }
  if (chosen) details.show(chosen, takeFocus);
  else if (state.chosen !== undefined) details.close();
}

function showAll(node, topology, use, text, chosen) {
  const owners = ownersOf(topology, node.containers, node.pools, node.status?.offline);
  const online = onlineOf(owners);
  const memory = memoryOf(topology, node.containers, use?.nodes);
  const found = matching(node.containers, text);
  showFigures({node, topology, owners, memory, use, samples, now: nodeTime()});
  machine.colour(owners, node.containers.map((container) => container.key));
  machine.showBusy(use?.cpus);
  machine.showNodes(memory);
  machine.mark(chosen ? placesOf(chosen, online) : new Set(), foundCpus(text, found, online));
  showMemory(memory);
  table.show(node.containers, found, state.chosen);
  showHistory(node.history, state.simulation ? undefined : nodeTime());
}

function showStatus() {
  const {machine: {name}, status, containers} = state.node;
  const count = showVerdict(status.problems, containers, nodeTime(), (key) => choose(key),
      state.error && `${state.error} What is shown may be out of date.`);
  document.title = `${count > 0 ? `(${count}) ` : ''}${name} · cri-resmgr`;
  setText(byId('node'), name);
  const runtime = status.runtime === 'connected' ? 'runtime connected' : `runtime: ${status.runtime}`;
  setText(byId('state'), [`policy ${status.policy}`, runtime, `cri-resmgr ${status.version}`,
    `up ${duration(status.uptimeSeconds)}`, `configuration of ${status.config}`, `state ${status.state}`].join(' · '));
}

// The daemon's time, and how old its data is.
function showAge() {
  if (!state.node || state.simulation) {
    setText(byId('time'), '');
    setText(byId('age-text'), state.simulation ? '' : state.error);
    return;
  }
  const age = Date.now() - state.answered;
  const told = new Date(Date.parse(state.node.machine.time));
  const isOld = age > kOldMs || state.error !== '';
  const time = `${told.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  setText(byId('time'), time);
  byId('time').dateTime = told.toISOString();
  setText(byId('age-text'), !isOld ? 'live' : `${duration(age / 1000)} old${state.paused ? ', paused' : ''}`);
  document.body.classList.toggle('old', !state.paused && (age > kGoneMs || (isOld && state.error !== '')));
}

function named(container) {
  const title = `${container.namespace}/${container.pod}/${container.name}`;
  return {...container, title, key: container.id || title};
}

// Beside the other data, which do not wait for it.
async function refreshUse() {
  if (state.asksUse || performance.now() - state.useAsked < kUsePeriodMs) return;
  state.asksUse = true;
  const use = await askUse();
  state.asksUse = false;
  // It may not be known yet: the next round asks again.
  state.useAsked = use ? performance.now() : -Infinity;
  if (use) samples.take(use, Date.now());
  state.use = use;
  show();
}

async function refresh() {
  try {
    const topology = state.topologyIsCurrent ? state.topology : await ask('topology');
    const node = await askAll();
    refreshUse();
    node.containers = node.containers.map(named);
    const isOther = JSON.stringify(topology) !== JSON.stringify(state.topology);
    if (isOther) samples.clear();
    Object.assign(state, {topology, topologyIsCurrent: true, node, answered: Date.now(), error: '', pause: kPeriodMs});
    if (state.simulation) return showBeside();
    if (isOther) drawMachine(topology);
    showStatus();
    show();
  } catch (error) {
    // It may be another daemon that answers again.
    state.topologyIsCurrent = false;
    state.pause = Math.min(2 * state.pause, kLongestPauseMs);
    state.error = error.message;
    if (state.simulation) return;
    if (state.node) showStatus();
    else tell([state.error]);
  }
}

async function follow() {
  const looks = !state.simulation || byId('beside').getAttribute('aria-pressed') === 'true';
  if (!state.paused && looks && !document.hidden) await refresh();
  setTimeout(follow, state.pause);
}

// Another simulation, after as many steps, or the live node beside a simulation.
function showBeside() {
  const isLive = byId('beside').getAttribute('aria-pressed') === 'true' && state.node !== undefined;
  const isShown = state.simulation !== undefined && (state.second !== undefined || isLive);
  byId('other-section').hidden = !isShown;
  if (!isShown) return other.clear();
  const node = state.second ? nodeAfter(state.second, stepOf(state.second)) : state.node;
  const topology = state.second ? machineOf(state.second) : state.topology;
  const use = state.second ? undefined : state.use;
  if (other.topology !== topology) other.draw(topology);
  setText(byId('other-heading'), state.second ? `${state.second.name}, ${describeStep(state.second, stepOf(state.second))}`
    : `${node.machine.name}, now`);
  const owners = ownersOf(topology, node.containers, node.pools, node.status?.offline);
  other.colour(owners, node.containers.map((container) => container.key));
  other.showBusy(use?.cpus);
  other.showNodes(memoryOf(topology, node.containers, use?.nodes));
  other.mark(chosenIn(node, onlineOf(owners)), undefined);
}

// Where the container of the same name as the chosen one may run.
function chosenIn(node, online) {
  const title = shown()?.containers.find((container) => container.key === state.chosen)?.title;
  const same = title === undefined ? undefined : node.containers.find((container) => container.title === title);
  return same ? placesOf(same, online) : new Set();
}

// The machine of a simulation: its own, the node's if that has all of its CPUs, or else CPUs in a row.
function machineOf(simulation) {
  if (!simulation.topology) {
    const cpus = cpusOf(simulation);
    const fits = state.topology && [...cpus].every((cpu) => state.topology.cpus.some((known) => known.id === cpu));
    simulation.topology = fits ? state.topology : flatMachine(cpus);
    simulation.isFlat = !fits;
  }
  return simulation.topology;
}

function openSimulation(simulation) {
  state.simulation = simulation;
  state.chosen = undefined;
  details.close();
  drawMachine(machineOf(simulation));
  byId('step').max = simulation.effects.length;
  byId('step').value = simulation.effects.length;
  byId('simulation').hidden = false;
  document.body.classList.add('simulated');
  byId('pause').disabled = true;
  document.title = `${simulation.name} · cri-resmgr`;
  setText(byId('node'), 'simulation');
  setText(byId('state'), simulation.name);
  tell(!simulation.isFlat ? [] : ['The file has no machine, so its CPUs are shown in a row: write the file with '
    + '"cri-resmgr-ctl simulate -o page", or open the output of "topology -topology SPEC -o json" beside it.']);
  showAge();
  showStep();
}

function showStep() {
  setText(byId('step-text'), describeStep(state.simulation, stepOf(state.simulation)));
  show();
  showBeside();
}

function moveStep(by) {
  byId('step').value = Number(byId('step').value) + by;
  showStep();
}

function closeSimulation() {
  details.close();
  state.simulation = undefined;
  state.second = undefined;
  byId('simulation').hidden = true;
  document.body.classList.remove('simulated');
  byId('pause').disabled = false;
  byId('beside').setAttribute('aria-pressed', 'false');
  showBeside();
  byId('files').value = '';
  byId('other-files').value = '';
  tell([]);
  if (state.topology) drawMachine(state.topology);
  if (state.node) {
    showStatus();
    show();
  }
  byId('open-files').focus();
}

function toggle(button) {
  const on = button.getAttribute('aria-pressed') !== 'true';
  button.setAttribute('aria-pressed', String(on));
  return on;
}

function toggleBusy() {
  document.body.classList.toggle('by-use', toggle(byId('busy')));
}

// Letters are keys only where nothing is typed.
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const types = event.target.matches('input[type="search"]');
  if (event.key === 'Escape') {
    if (types && byId('filter').value !== '') {
      byId('filter').value = '';
      show();
    } else {
      details.close();
    }
  } else if (event.key === '/' && !types) {
    event.preventDefault();
    byId('filter').focus();
    byId('filter').select();
  } else if (event.key === 'b' && !types) {
    toggleBusy();
  } else if (types && event.key === 'Enter') {
    const first = matching(shown()?.containers ?? [], byId('filter').value)[0];
    if (first) choose(first.key);
  } else if (types && event.key === 'ArrowDown') {
    event.preventDefault();
    table.focusFirst();
  }
}

async function copy() {
  const parts = ['header', '#verdict', '#figures', '#uses', '#machine-section'].map((part) => document.querySelector(part));
  try {
    setText(byId('copy'), await copyPicture(parts, byId('node').textContent));
  } catch (error) {
    setText(byId('copy'), error.message);
  }
  setTimeout(() => setText(byId('copy'), 'Copy picture'), 2000);
}

// A button that lets the reader choose files of a simulation, for which `open` is called.
function openBy(button, input, open) {
  button.addEventListener('click', () => input.click());
  input.addEventListener('change', async () => {
    if (input.files.length === 0) return;
    try {
      open(await readSimulation(input.files));
      byId('step').focus();
    } catch (error) {
      tell([error.message]);
    }
  });
}

openBy(byId('open-files'), byId('files'), openSimulation);
openBy(byId('beside-files'), byId('other-files'), (simulation) => {
  state.second = simulation;
  byId('beside').setAttribute('aria-pressed', 'false');
  byId('step').max = Math.max(state.simulation.effects.length, simulation.effects.length);
  showBeside();
});
byId('step').addEventListener('input', showStep);
byId('step-back').addEventListener('click', () => moveStep(-1));
byId('step-on').addEventListener('click', () => moveStep(1));
byId('back').addEventListener('click', closeSimulation);
byId('beside').addEventListener('click', () => {
  toggle(byId('beside'));
  state.second = undefined;
  showBeside();
});
byId('filter').addEventListener('input', () => show());
byId('busy').addEventListener('click', toggleBusy);
byId('copy').addEventListener('click', copy);
byId('pause').addEventListener('click', () => {
  state.paused = toggle(byId('pause'));
});
document.addEventListener('keydown', onKey);
setInterval(showAge, 500);
follow();
