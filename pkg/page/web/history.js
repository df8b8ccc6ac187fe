// SPDX-License-Identifier: Apache-2.0
import {byId, make} from './dom.js';

// "14:02:09" for today, with the date for another day. The number of a simulation's step stays as it is.
function when(time) {
  const date = new Date(time);
  if (typeof time === 'number' || Number.isNaN(date.getTime())) return String(time);
  const today = date.toDateString() === new Date().toDateString();
  return today ? date.toLocaleTimeString() : date.toLocaleString();
}

// The newest first.
export function showHistory(entries) {
  const rows = entries.toReversed().map((entry) => {
    const bad = entry.error ? 'bad' : '';
    const why = [entry.error, entry.reason].filter(Boolean).join('; ');
    return make('tr', {}, make('td', {class: 'nowrap', title: String(entry.time)}, when(entry.time)),
        make('td', {class: `nowrap ${bad}`}, entry.event), make('td', {class: 'name'}, entry.container || '-'),
        make('td', {}, entry.cpus || '-'), make('td', {class: bad}, why || '-'));
  });
  byId('history').tBodies[0].replaceChildren(...rows);
}
