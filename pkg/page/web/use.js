// SPDX-License-Identifier: Apache-2.0
// Keeps the samples of the last ten minutes, as far as this page has seen them, and draws them.
import {byId} from './dom.js';

const kKeptMs = 10 * 60 * 1000;
// Enough for a node with the shortest interval between samples.
const kMostSamples = 600;

export class Samples {
  constructor() {
    this.clear();
  }

  clear() {
    this.last = '';
    this.times = [];
    this.lines = new Map();   // by id of a container, and of the machine by ''
  }

  // Takes what the daemon told of use (data.js). A sample that is already known is not taken again.
  take(use, now) {
    const text = JSON.stringify([use.cpus, use.containers.map((container) => container.cpuUsed)]);
    const isOld = use.containers[0] ? use.containers[0].since === this.since : text === this.last;
    if (isOld) return false;
    this.since = use.containers[0]?.since;
    this.last = text;
    while (this.times.length > 0 && (now - this.times[0] > kKeptMs || this.times.length >= kMostSamples)) this.#dropFirst();
    const before = this.times.length;
    this.times.push(now);
    const told = new Map(use.containers.map((container) => [container.id, container.cpuUsed]));
    told.set('', busyCpus(use.cpus));
    for (const id of this.lines.keys()) {
      if (!told.has(id)) this.lines.delete(id);
    }
    for (const [id, value] of told) {
      if (!this.lines.has(id)) this.lines.set(id, Array(before).fill(null));
      this.lines.get(id).push(value ?? null);
    }
    return true;
  }

  #dropFirst() {
    this.times.shift();
    for (const line of this.lines.values()) line.shift();
  }

  // A line of the last ten minutes, the right edge being now. `most` is its upper edge.
  draw(id, most) {
    const drawn = byId('line').content.firstElementChild.cloneNode(true);
    this.redraw(drawn, id, most);
    return drawn;
  }

  redraw(drawn, id, most) {
    const values = this.lines.get(id) ?? [];
    const now = this.times.at(-1) ?? 0;
    const top = Math.max(most, ...values);
    const points = values.map((value, i) => {
      const x = 60 * (1 - (now - this.times[i]) / kKeptMs);
      return value === null ? '' : `${x.toFixed(1)},${(15 - 14 * (top > 0 ? value / top : 0)).toFixed(1)}`;
    }).filter(Boolean);
    // So that a single sample can be seen.
    if (points.length === 1) points.unshift(points[0].replace(/^[^,]*/, '58'));
    const line = drawn.querySelector('polyline');
    if (line.getAttribute('points') !== points.join(' ')) line.setAttribute('points', points.join(' '));
  }
}

// How many CPUs were busy, on average since the sample before.
export function busyCpus(cpus) {
  return cpus.reduce((sum, cpu) => sum + (cpu.busyPercent ?? 0), 0) / 100;
}
