// SPDX-License-Identifier: Apache-2.0
// Makes elements. Text stays text and never becomes markup: users choose the names of their pods.

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'class') element.className = value;
    else if (name === 'onclick') element.addEventListener('click', value);
    else element.setAttribute(name, value);
  }
  for (const child of children) element.append(child instanceof Node ? child : String(child));
  return element;
}

export const byId = (id) => document.getElementById(id);

// Changes the document only where the text differs.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Replaces the children only where they would differ, so that a reader's selection stays. A button that has the focus gives it
// to the one in its place.
export function replace(element, ...children) {
  const before = element.childNodes;
  if (before.length === children.length && children.every((child, i) => child.isEqualNode(before[i]))) return;
  const focused = [...element.querySelectorAll('button')].indexOf(document.activeElement);
  element.replaceChildren(...children);
  if (focused >= 0) element.querySelectorAll('button')[focused]?.focus({preventScroll: true});
}

export function setStyle(element, name, value) {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
}

// One problem of `status` or `explain`, with the section of the runbook about it.
export function problemText(problem) {
  const next = problem.next ? `; try: ${problem.next}` : '';
  return `${problem.kind}: ${problem.message}${next} (docs/troubleshooting.md#${problem.kind})`;
}

export function bytes(count) {
  if (!count) return '-';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (count >= 1024 && unit + 1 < units.length) {
    count /= 1024;
    ++unit;
  }
  return `${count.toFixed(unit === 0 || count % 1 === 0 ? 0 : 1)} ${units[unit]}`;
}

export function plural(count, one) {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}

// "3.2", and "0" for what is not measurably more.
export function amount(number, digits = 1) {
  const text = number.toFixed(digits);
  return Number(text) === 0 ? '0' : text.replace(/\.0+$/, '');
}

export const percent = (number) => (number === null || number === undefined ? '-' : `${amount(number, number < 10 ? 1 : 0)} %`);

// "40 s", "12 min", "3 h", "5 d".
export function duration(seconds) {
  const steps = [[86400, 'd'], [3600, 'h'], [60, 'min']];
  for (const [size, unit] of steps) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${Math.max(0, Math.floor(seconds))} s`;
}
