// What is painted of an answer: the frame, every channel, and the one picked up.

import { typeSize } from "../../explorer/client/shared.js";
import { inSprite } from "../../explorer/client/tiles.js";

const NUMBERED = 40; // pixels from which a tile has room for its number
const OPACITY = 0.6; // of the map on the frame

// A canvas as large as it is shown, in the screen's own pixels; its pen paints in CSS pixels.
export const sized = (canvas, wide, high) => {
  const [across, down] = [wide, high].map((side) => Math.max(1, Math.round(side * devicePixelRatio)));
  if (canvas.width !== across || canvas.height !== down) {
    [canvas.width, canvas.height] = [across, down];
    [canvas.style.width, canvas.style.height] = [`${wide}px`, `${high}px`];
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  return pen;
};

// A frame seen on anything: white in black, both thin.
export const outline = (pen, x, y, wide, high) => {
  pen.lineWidth = 3;
  pen.strokeStyle = "#000";
  pen.strokeRect(x, y, wide, high);
  pen.lineWidth = 1.5;
  pen.strokeStyle = "#fff";
  pen.strokeRect(x, y, wide, high);
};

// The part of a frame that the network sees, as [x, y, wide, high]; null where that is not known.
const seenPart = (share, wide, high) => {
  if (share === null) return null;
  if (share === 0) return [0, 0, wide, high];
  const side = share * Math.min(wide, high);
  return [(wide - side) / 2, (high - side) / 2, side, side];
};

export const paintPhoto = (canvas, bitmap, seen, high) => {
  const wide = Math.round((high * bitmap.width) / bitmap.height);
  const pen = sized(canvas, wide, high);
  pen.drawImage(bitmap, 0, 0, wide, high);
  const part = seenPart(seen, wide, high);
  if (!part) return;
  const [x, y, across, down] = part;
  pen.fillStyle = "rgba(0, 0, 0, 0.45)"; // what it does not see
  if (across < wide) for (const left of [0, x + across]) pen.fillRect(left, 0, x, high);
  if (down < high) for (const top of [0, y + down]) pen.fillRect(0, top, wide, y);
};

// Every tile, without enlarging it in two steps as the grid that stands still does.
export const paintTiles = (pen, picture, sprite, count, corner, wide, high) => {
  const [rows, columns] = sprite.tile;
  pen.imageSmoothingEnabled = wide * devicePixelRatio < columns;
  for (let at = 0; at < count; at += 1) {
    pen.drawImage(picture, ...inSprite(sprite, at), columns, rows, ...corner(at), wide, high);
  }
};

export const paintNumbers = (pen, order, corner, wide, family) => {
  const size = typeSize(pen.canvas, Math.max(9, Math.min(12, wide / 8)));
  if (wide < Math.max(NUMBERED, 4 * size) || order.length === 1) return;
  pen.font = `${size}px ${family}`;
  order.forEach((channel, at) => {
    const [x, y] = corner(at);
    const text = String(channel);
    pen.fillStyle = "rgba(0, 0, 0, 0.6)";
    pen.fillRect(x, y, pen.measureText(text).width + 6, Math.max(14, size + 2));
    pen.fillStyle = "#fff";
    pen.fillText(text, x + 3, y + Math.max(11, size - 1));
  });
};

// A channel's map, every cell a square, with its strongest cell framed.
export const paintMap = (canvas, map, cell, wide) => {
  const high = Math.round((wide * map.rows) / map.columns);
  const pen = sized(canvas, wide, high);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(map.picture, map.left, map.top, map.columns, map.rows, 0, 0, wide, high);
  if (cell) frameCell(pen, cell, map, [0, 0, wide, high]);
};

const frameCell = (pen, [row, column], { rows, columns }, [x, y, wide, high]) => {
  const [across, down] = [wide / columns, high / rows];
  const grown = Math.max(0, 6 - Math.min(across, down)) / 2; // a cell of a pixel would not be seen
  outline(pen, x + column * across - grown, y + row * down - grown, across + 2 * grown, down + 2 * grown);
};

// The map on the frame, and what its strongest cell sees as [top, left, bottom, right] in the frame.
export const paintOver = (canvas, bitmap, map, box, seen, wide) => {
  const high = Math.round((wide * bitmap.height) / bitmap.width);
  const pen = sized(canvas, wide, high);
  pen.drawImage(bitmap, 0, 0, wide, high);
  const part = seenPart(seen, wide, high);
  if (!part) return;
  pen.save();
  pen.globalAlpha = OPACITY;
  pen.imageSmoothingEnabled = false;
  pen.drawImage(map.picture, map.left, map.top, map.columns, map.rows, ...part);
  pen.restore();
  if (!box) return;
  const [top, left, bottom, right] = box.map((each) => (each * wide) / bitmap.width);
  outline(pen, left, top, right - left, bottom - top);
};
