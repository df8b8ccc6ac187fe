// SPDX-License-Identifier: Apache-2.0
// Tells first what is wrong with the node: the problems that `cri-resmgr-ctl status` lists, and whether there is an answer.
import {byId, duration, make, plural, replace, setText} from './dom.js';

const kShown = 3;

let isOpen = false;

// These cost a container what it was promised; the others are for the next working day.
const kUrgent = new Set(['drift', 'refused', 'runtime', 'overcommit', 'socket', 'state', 'cpu-offline', 'cpuset-overridden',
  'cpu-manager-on']);

function row(problem, containers, now, choose) {
  const known = (problem.objects ?? []).map((name) => containers.get(name)).filter(Boolean).slice(0, 3);
  const since = Date.parse(problem.since);
  return make('p', {class: kUrgent.has(problem.kind) ? 'problem urgent' : 'problem'},
      make('strong', {}, problem.kind), make('span', {class: 'message', title: problem.message}, problem.message),
      ...known.map((container) => make('button', {type: 'button', class: 'link', 'data-shows': container.key,
        onclick: () => choose(container.key)}, 'show')),
      make('span', {class: 'quiet'}, Number.isNaN(since) ? '' : `for ${duration((now - since) / 1000)}`),
      problem.next ? make('code', {title: 'what to do next'}, problem.next) : '');
}

// Tells what is wrong with this page or its data.
export function tell(texts) {
  const box = byId('problems');
  byId('verdict').hidden = texts.length === 0;
  byId('verdict').className = 'bad';
  setText(byId('verdict-text'), '');
  box.hidden = texts.length === 0;
  replace(box, ...texts.map((text) => make('p', {class: 'problem urgent'}, make('span', {class: 'message'}, text))));
}

//   choose  is called with the key of a container
//   error   why there is no newer data, or ''
export function showVerdict(problems, containers, now, choose, error = '') {
  const byTitle = new Map(containers.map((container) => [container.title, container]));
  const urgent = problems.filter((problem) => kUrgent.has(problem.kind));
  const ordered = [...urgent, ...problems.filter((problem) => !kUrgent.has(problem.kind))];
  const shown = isOpen ? ordered : ordered.slice(0, kShown);
  byId('verdict').hidden = false;
  byId('verdict').className = error || urgent.length > 0 ? 'bad' : problems.length > 0 ? 'warn' : 'good';
  setText(byId('verdict-text'), error ? 'No answer' : problems.length === 0 ? 'No problems known'
    : `${plural(problems.length, 'problem')}: ${[...new Set(ordered.map((problem) => problem.kind))].join(', ')}`);
  const box = byId('problems');
  box.hidden = problems.length === 0 && error === '';
  const turn = () => {
    isOpen = !isOpen;
    showVerdict(problems, containers, now, choose, error);
    box.lastElementChild.focus();
  };
  const more = ordered.length <= kShown ? [] : [make('button', {type: 'button', class: 'link', 'aria-expanded': String(isOpen),
    onclick: turn}, isOpen ? 'fewer' : `${ordered.length - kShown} more`)];
  const first = error ? [make('p', {class: 'problem urgent'}, make('span', {class: 'message'}, error))] : [];
  replace(box, ...first, ...shown.map((problem) => row(problem, byTitle, now, choose)), ...more);
  return problems.length;
}
