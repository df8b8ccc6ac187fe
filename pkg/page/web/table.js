// SPDX-License-Identifier: Apache-2.0
import {byId, bytes, make, setText} from './dom.js';

function cpuLimit(container) {
  if (!(container.quota > 0)) return '-';
  return String(Math.round(1000 * container.quota / (container.period || 100000)) / 1000);
}

function row(container, isChosen, choose) {
  const name = make('button', {type: 'button', class: 'link', 'data-key': container.key, 'aria-pressed': String(isChosen),
    onclick: () => choose(container.key)}, container.title);
  const cell = (text, style = '') => make('td', {class: style}, text || '-');
  return make('tr', {class: isChosen ? 'chosen' : ''}, make('td', {class: 'name'}, name), cell(container.qos, 'nowrap'),
      cell(container.state, 'nowrap'), cell(container.exclusive), cell(container.shared), cell(container.mems),
      cell(cpuLimit(container)), cell(bytes(container.memoryLimit), 'nowrap'), cell(container.pool));
}

// Shows the containers that have the filter's text somewhere; the focus stays where it is.
export function showContainers(containers, filter, chosenKey, choose) {
  const wanted = filter.trim().toLowerCase();
  const shown = containers.filter((container) =>
    [container.title, container.qos, container.state, container.pool].some((text) => (text ?? '').toLowerCase().includes(wanted)));
  const body = byId('containers').tBodies[0];
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  body.replaceChildren(...shown.map((container) => row(container, container.key === chosenKey, choose)));
  setText(byId('count'), shown.length === containers.length ? `${shown.length}` : `${shown.length} of ${containers.length}`);
  if (focused !== undefined) focusRow(focused);
}

export function focusRow(key) {
  for (const button of byId('containers').querySelectorAll('button[data-key]')) {
    if (button.dataset.key === key) button.focus();
  }
}
