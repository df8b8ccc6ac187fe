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
