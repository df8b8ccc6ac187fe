// SPDX-License-Identifier: Apache-2.0
// Draws what the page shows as a picture. The browser lends no picture of a document to its scripts, and the page's policy
// allows none that is made of markup: boxes, texts and lines are painted one by one, as they are laid out.

const kScale = 2;

const isTransparent = (colour) => colour === 'transparent' || /[,/] *0\)$/.test(colour);

function paintBox(canvas, element, style, origin) {
  const box = element.getBoundingClientRect();
  if (box.width === 0 || box.height === 0) return;
  const [x, y] = [box.left - origin.left, box.top - origin.top];
  const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, box.height / 2);
  const path = (inset) => {
    canvas.beginPath();
    canvas.roundRect(x + inset, y + inset, box.width - 2 * inset, box.height - 2 * inset, radius);
  };
  if (!isTransparent(style.backgroundColor)) {
    canvas.fillStyle = style.backgroundColor;
    path(0);
    canvas.fill();
  }
  const width = parseFloat(style.borderTopWidth) || 0;
  if (width > 0 && style.borderTopStyle !== 'none' && !isTransparent(style.borderTopColor)) {
    canvas.strokeStyle = style.borderTopColor;
    canvas.lineWidth = width;
    path(width / 2);
    canvas.stroke();
  }
  const left = parseFloat(style.borderLeftWidth) || 0;
  if (left > width && !isTransparent(style.borderLeftColor)) {
    canvas.fillStyle = style.borderLeftColor;
    canvas.fillRect(x, y, left, box.height);
  }
  const outline = parseFloat(style.outlineWidth) || 0;
  if (style.outlineStyle === 'solid' && outline > 0) {
    canvas.strokeStyle = style.outlineColor;
    canvas.lineWidth = outline;
    path(-outline / 2);
    canvas.stroke();
  }
}

function paintText(canvas, node, style, origin) {
  const text = node.data.replace(/\s+/g, ' ').trim();
  if (text === '') return;
  const range = document.createRange();
  range.selectNodeContents(node);
  const box = range.getBoundingClientRect();
  const clip = node.parentElement.getBoundingClientRect();
  if (box.width === 0) return;
  canvas.save();
  if (style.overflowX !== 'visible') {
    canvas.beginPath();
    canvas.rect(clip.left - origin.left, clip.top - origin.top - 2, clip.width, clip.height + 4);
    canvas.clip();
  }
  canvas.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  canvas.fillStyle = style.color;
  canvas.textBaseline = 'middle';
  // Lines that wrap are rare in what is painted: the text goes into its first line, narrowed if need be.
  const first = range.getClientRects()[0];
  canvas.fillText(text, first.left - origin.left, first.top + first.height / 2 - origin.top, Math.max(first.width, 1) + 1);
  canvas.restore();
}

function paintLine(canvas, svg, origin) {
  const line = svg.querySelector('polyline');
  const box = svg.getBoundingClientRect();
  const points = (line?.getAttribute('points') ?? '').split(' ').filter(Boolean).map((point) => point.split(',').map(Number));
  canvas.strokeStyle = getComputedStyle(line).stroke;
  canvas.lineWidth = 1.5;
  canvas.beginPath();
  const [left, top] = [box.left - origin.left, box.top - origin.top];
  for (const [x, y] of points) canvas.lineTo(left + x / 60 * box.width, top + y / 16 * box.height);
  canvas.stroke();
}

function paint(canvas, element, origin, above) {
  const style = getComputedStyle(element);
  if (style.display === 'none' || style.visibility === 'hidden' || element.matches('.hidden, .skip, .tools')) return;
  canvas.globalAlpha = above * Number(style.opacity);
  if (element.localName === 'svg') return paintLine(canvas, element, origin);
  paintBox(canvas, element, style, origin);
  for (const child of element.childNodes) {
    canvas.globalAlpha = above * Number(style.opacity);
    if (child.nodeType === Node.TEXT_NODE) paintText(canvas, child, style, origin);
    else if (child.nodeType === Node.ELEMENT_NODE) paint(canvas, child, origin, above * Number(style.opacity));
  }
}

// A PNG of these elements, which are one below the other.
export function pictureOf(elements) {
  const boxes = elements.map((element) => element.getBoundingClientRect());
  const margin = 12;
  const least = (side) => Math.min(...boxes.map((box) => box[side])) - margin;
  const origin = {left: least('left'), top: least('top')};
  const size = {width: Math.max(...boxes.map((box) => box.right)) - origin.left + margin,
    height: Math.max(...boxes.map((box) => box.bottom)) - origin.top + margin};
  const picture = document.createElement('canvas');
  picture.width = Math.ceil(size.width * kScale);
  picture.height = Math.ceil(size.height * kScale);
  const canvas = picture.getContext('2d');
  canvas.scale(kScale, kScale);
  canvas.fillStyle = getComputedStyle(document.body).backgroundColor;
  canvas.fillRect(0, 0, size.width, size.height);
  for (const element of elements) paint(canvas, element, origin, 1);
  return new Promise((resolve, reject) => {
    const failed = new Error('The browser cannot make a picture of this size.');
    picture.toBlob((blob) => (blob ? resolve(blob) : reject(failed)), 'image/png');
  });
}

// Copies the picture or, where the browser does not allow that (a page that is not from this machine), saves it. Tells which.
export async function copyPicture(elements, name) {
  const blob = pictureOf(elements);
  try {
    await navigator.clipboard.write([new ClipboardItem({'image/png': blob})]);
    return 'Copied';
  } catch {
    const address = URL.createObjectURL(await blob);
    const link = document.createElement('a');
    link.href = address;
    link.download = `${name}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    return 'Saved';
  }
}
