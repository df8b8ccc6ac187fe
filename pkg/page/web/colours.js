// SPDX-License-Identifier: Apache-2.0
// Gives each owner of CPUs a colour that it keeps as long as it exists, and that none of its neighbours has.

const kColours = 12;
const kKept = 4000;
const kStore = 'resmgr-colours';

function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < text.length; ++i) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

// How near to each other two colours of the palette are: neighbours on the wheel look alike.
function isAlike(a, b) {
  const apart = Math.abs(a - b);
  return Math.min(apart, kColours - apart) <= 1;
}

export class Colours {
  constructor() {
    this.known = new Map();
    try {
      const kept = JSON.parse(localStorage.getItem(kStore) ?? '[]');
      for (const [key, colour] of kept) {
        if (typeof key === 'string' && Number.isInteger(colour) && colour >= 0 && colour < kColours) this.known.set(key, colour);
      }
    } catch {
      // Without a store, or with one that something else wrote, colours hold until the page is loaded again.
    }
  }

  // The colours of these owners.
  //   owners      keys, the oldest first
  //   neighbours  by key, the set of keys beside it
  assign(owners, neighbours) {
    const before = this.known.size;
    const moved = new Map();
    for (const key of owners) {
      const others = [...(neighbours.get(key) ?? [])].map((other) => moved.get(other) ?? this.known.get(other));
      moved.set(key, this.#colourOf(key, others.filter((colour) => colour !== undefined)));
    }
    for (const [key, colour] of moved) {
      // The order of the map is the order in which owners were last seen.
      this.known.delete(key);
      this.known.set(key, colour);
    }
    if (this.known.size !== before) this.#keep();
    return moved;
  }

  #colourOf(key, others) {
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const first = hash(key) % kColours;
    // Steps of five visit all twelve colours, with a large difference between one and the next.
    const tried = Array.from({length: kColours}, (_, i) => (first + 5 * i) % kColours);
    return tried.find((colour) => !others.some((other) => isAlike(colour, other))) ??
      tried.find((colour) => !others.includes(colour)) ?? first;
  }

  #keep() {
    const kept = [...this.known].slice(-kKept);
    this.known = new Map(kept);
    try {
      localStorage.setItem(kStore, JSON.stringify(kept));
    } catch {
      // As above.
    }
  }
}
