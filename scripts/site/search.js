// SPDX-License-Identifier: Apache-2.0
// Search in INDEX (index.js): rows of address, page, heading and text. A hit has all words; those in headings come first.
const query = document.getElementById('query');
const hits = document.getElementById('hits');

function score(row, words) {
  const heading = (row[1] + ' ' + row[2]).toLowerCase();
  const text = row[3].toLowerCase();
  let sum = 0;
  for (const word of words) {
    if (row[2].toLowerCase().includes(word)) sum += 8;
    else if (heading.includes(word)) sum += 4;
    else if (text.includes(word)) sum += 1;
    else return 0;
  }
  return sum;
}

function around(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
  return (at > 0 ? '…' : '') + text.slice(at, at + 120) + '…';
}

function show() {
  const words = query.value.toLowerCase().split(/\s+/).filter(word => word);
  hits.replaceChildren();
  if (!words.length) return;
  const found = INDEX.map(row => [score(row, words), row]).filter(hit => hit[0] > 0);
  found.sort((a, b) => b[0] - a[0]);
  for (const [, row] of found.slice(0, 20)) {
    const link = document.createElement('a');
    link.href = document.body.dataset.root + row[0];
    const name = document.createElement('b');
    name.textContent = row[1] === row[2] ? row[1] : row[1] + ': ' + row[2];
    const text = document.createElement('small');
    text.textContent = around(row[3], words[0]);
    link.append(name, text);
    hits.append(link);
  }
  if (!found.length) hits.textContent = 'nothing found';
}

query.addEventListener('input', show);
document.addEventListener('keydown', event => {
  if (event.key === '/' && document.activeElement !== query) {
    event.preventDefault();
    query.focus();
  } else if (event.key === 'Escape') {
    query.value = '';
    show();
    query.blur();
  } else if (event.key === 'Enter' && document.activeElement === query && hits.querySelector('a')) {
    hits.querySelector('a').click();
  }
});
for (const link of document.querySelectorAll('nav > a'))
  if (link.href === location.href.split('#')[0]) link.setAttribute('aria-current', 'page');
