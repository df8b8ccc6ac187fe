// SPDX-License-Identifier: Apache-2.0
import {byId, make, replace} from './dom.js';

// "14:02:09" for today, with the date for another day, in UTC as all times of the page. The number of a simulation's step
// stays as it is.
function when(time, now) {
  if (typeof time === 'number' || Number.isNaN(Date.parse(time))) return String(time);
  const [day, clock] = new Date(time).toISOString().split('T');
  const short = clock.slice(0, 8);
  return now && new Date(now).toISOString().startsWith(day) ? short : `${day} ${short}`;
}

// The newest first.
export function showHistory(entries, now) {
  const rows = entries.toReversed().map((entry) => {
    const bad = entry.error ? 'bad' : '';
    const why = [entry.error, entry.reason].filter(Boolean).join('; ');
    return make('tr', {}, make('td', {class: 'nowrap quiet', title: String(entry.time)}, when(entry.time, now)),
        make('td', {class: `nowrap ${bad}`}, entry.event),
        make('td', {class: 'name', title: entry.container}, entry.container || '-'),
        make('td', {class: 'cpus', title: entry.cpus}, entry.cpus || '-'),
        make('td', {class: `why ${bad}`, title: why}, why || '-'));
  });
  replace(byId('history').tBodies[0], ...rows);
}
