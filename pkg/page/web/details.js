// SPDX-License-Identifier: Apache-2.0
// The panel that tells why a container has its CPUs.
import {byId, bytes, make, setText} from './dom.js';

const milli = (value) => (value > 0 ? `${value / 1000} CPUs` : '-');

function list(title, lines) {
  if (!lines || lines.length === 0) return [];
  return [make('h3', {}, title), make('ul', {}, ...lines.map((line) => make('li', {}, line)))];
}

function facts(pairs) {
  return make('dl', {}, ...pairs.filter(([, value]) => value !== undefined && value !== '')
      .flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]));
}

function owner({field, key, stage, plugin}) {
  return `${field}${key ? ` ${key}` : ''}: ${stage}${plugin ? `, plugin ${plugin}` : ''}`;
}

function describe(explained) {
  return [
    facts([['Why', explained.reason], ['Refused', explained.refused], ['CPUs', explained.cpus],
      ['Exclusive', explained.exclusive || 'none'], ['Memory nodes', explained.mems || 'any'], ['Pool', explained.pool],
      ['State', explained.state], ['QoS', explained.qos], ['Role', explained.role],
      ['CPU request', explained.request === undefined ? undefined : milli(explained.request)],
      ['CPU limit', explained.limit === undefined ? undefined : milli(explained.limit)],
      ['Memory request', explained.memoryRequest === undefined ? undefined : bytes(explained.memoryRequest)],
      ['Memory limit', bytes(explained.memoryLimit)], ['CPU shares', explained.shares],
      ['In force', explained.settled === undefined ? undefined : explained.settled ? 'yes' : 'not yet'], ['Id', explained.id]]),
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
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close();
    });
  }

  async show(container, takeFocus) {
    this.key = container.key;
    byId('details').hidden = false;
    document.querySelector('main').classList.add('beside');
    setText(byId('details-heading'), container.title);
    if (takeFocus) byId('details-heading').focus();
    let shown;
    try {
      shown = (await this.explain(container)).flatMap(describe);
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
    document.querySelector('main').classList.remove('beside');
    byId('details-body').replaceChildren();
    this.closed(key);
  }
}
