// SPDX-License-Identifier: Apache-2.0

// More than any machine has; higher numbers in a file are left out.
const kMost = 65536;

// The numbers of a kernel list ("0-3,8"), as a Set.
export function parseList(text) {
  const numbers = new Set();
  for (const part of String(text ?? '').split(',')) {
    const range = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part);
    if (!range) continue;
    const last = Math.min(Number(range[2] ?? range[1]), kMost);
    for (let number = Number(range[1]); number <= last; ++number) numbers.add(number);
  }
  return numbers;
}

export function without(from, others) {
  return new Set([...from].filter((number) => !others.has(number)));
}

// The other way: "0-3,8".
export function toList(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const parts = [];
  for (let i = 0; i < sorted.length; ++i) {
    const first = sorted[i];
    while (sorted[i + 1] === sorted[i] + 1) ++i;
    parts.push(first === sorted[i] ? `${first}` : `${first}-${sorted[i]}`);
  }
  return parts.join(',');
}
