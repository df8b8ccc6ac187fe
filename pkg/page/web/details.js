// SPDX-License-Identifier: Apache-2.0
// The panel that tells why a container has its CPUs.
import {amount, byId, bytes, make, percent, problemText, setText} from './dom.js';

const milli = (value) => (value > 0 ? `${value / 1000} CPUs` : '-');

function list(title, lines) {
  if (!lines || lines.length === 0) return [];
  return [make('h3', {}, title), make('ul', {}, ...lines.map((line) => make('li', {}, line)))];
}

function facts(pairs) {
  return make('dl', {}, ...pairs.filter(([, value]) => value !== undefined && value !== '')
      .map(([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, value))));
}

function owner({field, key, stage, plugin}) {
  return `${field}${key ? ` ${key}` : ''}: ${stage}${plugin ? `, plugin ${plugin}` : ''}`;
}

function used(use) {
  if (typeof use?.cpuUsed !== 'number') return undefined;
  return `${amount(use.cpuUsed, 2)} of ${amount(use.granted, 2)} CPUs; throttled ${percent(use.throttledPercent)}; ` +
    `pressure ${percent(use.cpuPressure10)} / ${percent(use.cpuPressure60)}`;
}

function memoryUsed(use) {
  if (!use?.memoryBytes) return undefined;
  const nodes = Object.entries(use.memoryByNode ?? {}).map(([node, count]) => `${bytes(count)} on node ${node}`);
  return `${bytes(use.memoryBytes)}${nodes.length > 0 ? ` (${nodes.join(', ')})` : ''}; ${percent(use.remotePercent)} remote`;
}

// The kernel's events that deserve a look, '' where there was none.
function memoryEvents(use) {
  const events = [];
  if (use?.oomKills > 0) events.push(`${use.oomKills} process${use.oomKills === 1 ? '' : 'es'} killed since its start`);
  if (use?.memoryHighEvents > 0) events.push(`memory.high reached ${use.memoryHighEvents} times since the last sample`);
  return events.join('; ');
}

// "idle 10us: 10, by CPU; of classes.isolation"
function classText({kind, name, state, inForce, way, source, reason}) {
  return `${kind} ${name}: ${state === 'active' ? inForce : 'inactive'}, ${way}; of ${source}${reason ? `; ${reason}` : ''}`;
}

function inForce({settled, audit}) {
  if (audit) return 'no: it has drifted';
  return settled === undefined ? undefined : settled ? 'yes' : 'not yet';
}

// A claim of Dynamic Resource Allocation, which is no container.
// Pods that may use the claim; older daemons do not tell.
function reservedFor(claim) {
  if (!claim.reservedFor) return undefined;
  if (claim.reservedFor.length === 0) return `all pods of namespace ${claim.namespace}`;
  return claim.reservedFor.map((pod) => pod.pod || `uid ${pod.uid}`).join(', ');
}

function describeClaim(claim) {
  const asks = `${milli(claim.request)} of ${claim.device}${claim.numaNode === undefined ? '' : `, NUMA node ${claim.numaNode}`}` +
    `${claim.wholeCores ? '; whole cores' : ''}${claim.coreType ? `; of type ${claim.coreType}` : ''}${claim.l3 ? '; in one L3 cache' : ''}` +
    `${claim.avoidSiblings ? `; containers see CPUs ${claim.seen}` : ''}; for ${claim.sharedWithinPod ? 'all containers of a pod' : 'one container'}`;
  return [
    facts([['Claim', claim.claimState], ['Prepared', claim.since], ['Asks for', asks], ['Holds', claim.exclusive || 'no CPUs'],
      ['Reserved for', reservedFor(claim)], ['Carried by', claim.carriers?.join(', ') || 'no container'], ['Why', claim.reason], ['Pool', claim.pool],
      ['CDI file', claim.cdiFile], ['Uid', claim.claim]]),
    ...list('Candidates', claim.candidates),
  ];
}

function describe(explained, use) {
  if (explained.claimState) return describeClaim(explained);
  return [
    facts([['Why', explained.reason], ['Refused', explained.refused], ['CPUs', explained.cpus],
      ['Exclusive', explained.exclusive || 'none'], ['Advice', explained.advice], ['Audit', explained.audit],
      ['Moved by use', explained.byUse], ['Used', used(use)], ['Memory', memoryUsed(use)], ['Memory events', memoryEvents(use)], ['Memory elsewhere', explained.memoryElsewhere],
      ['Memory nodes', explained.mems || 'any'], ['Pool', explained.pool],
      ['State', explained.state], ['QoS', explained.qos], ['Role', explained.role],
      ['CPU request', explained.request === undefined ? undefined : milli(explained.request)],
      ['CPU limit', explained.limit === undefined ? undefined : milli(explained.limit)],
      ['Memory request', explained.memoryRequest === undefined ? undefined : bytes(explained.memoryRequest)],
      ['Memory limit', bytes(explained.memoryLimit)], ['CPU shares', explained.shares],
      ['In force', inForce(explained)], ['Id', explained.id]]),
    ...list('Problems', explained.problems?.map(problemText)),
    ...list('Not in force', explained.notUpdated ? [explained.notUpdated] : []),
    ...list('Classes', [...(explained.classes ?? []).map(classText), explained.classesIgnored].filter(Boolean)),
    ...list('Hints of devices and volumes',
        explained.hints?.map((hint) => `${hint.source}: CPUs ${hint.cpus || '-'}, nodes ${hint.nodes || '-'}`)),
    ...list('Candidates', explained.candidates),
    ...list('Decided by', explained.owners?.map(owner)),
  ];
}

export class Details {
  //   explain  returns a promise of the explanations of a container
  //   closed   is called with the container's key when the panel is closed
  constructor(explain, closed) {
    this.explain = explain;
    this.closed = closed;
    byId('close-details').addEventListener('click', () => this.close());
  }

  async show(container, takeFocus) {
    this.key = container.key;
    byId('details').hidden = false;
    document.body.classList.add('detailed');
    setText(byId('details-heading'), container.title);
    if (takeFocus) byId('details-heading').focus({preventScroll: true});
    let shown;
    try {
      shown = (await this.explain(container)).flatMap((explained) => describe(explained, container.use));
    } catch (error) {
      shown = [make('p', {class: 'bad'}, error.message)];
    }
    if (this.key !== container.key) return;
    const body = make('div', {}, ...shown);
    if (body.textContent !== byId('details-body').textContent) byId('details-body').replaceChildren(body);
  }

  close() {
    const key = this.key;
    if (key === undefined) return;
    this.key = undefined;
    byId('details').hidden = true;
    document.body.classList.remove('detailed');
    byId('details-body').replaceChildren();
    this.closed(key);
  }
}
