// The tiles as painted: the server's sprite holds every one once, a pixel for a cell; it is cut up and
// painted where the layout says.

import { nearestCell, tileAt } from "./pointing.js";
import { penOf, typeSize } from "./shared.js";
import { inSprite, tilePainter } from "./tiles.js";
import { fit, GAP } from "./tiling.js";

const HAIRLINE = "rgba(128, 128, 128, 0.5)";
const MOST_COVERED = 6; // a number covers one part in so many of a tile at most
const MOST_PIXELS = 24e6; // of the canvas, however far one zooms in

/**
 * The board of a grid. What it is of comes with `show`, where the tiles lie with `layOut`.
 * @param {(selector: string) => any} find in the grid's frame
 * @param {{is: () => string, paint: Function}} faces
 * @param {{numbered: number, smallest?: number, fewest?: number}} sizes of tiles with a number on them, of
 * all tiles at least, and the rows that a phone's page has at least
 */
export const tileBoard = (find, faces, { numbered, ...bounds }) => {
  const [stage, canvas, picture] = [".stage", "canvas", ".picture"].map(find);
  const pen = penOf(canvas);
  const board = penOf(document.createElement("canvas")); // the tiles without frames
  const style = getComputedStyle(stage);
  let painted = ""; // what the board was painted for
  /** @type {any} */
  let facts = null;
  /** @type {Function} */
  let paintTile = () => {};
  const lie = { columns: 1, wide: 1, high: 1, page: 1, first: 0, last: 1 };

  const corner = (at) => [
    ((at - lie.first) % lie.columns) * (lie.wide + GAP),
    Math.floor((at - lie.first) / lie.columns) * (lie.high + GAP),
  ];

  // Whether the picture that is there is the one that the facts are of: it takes a moment to come.
  const isThere = () => facts !== null && picture.dataset.key === facts.key;

  const box = (at, outer, inner) => {
    const [x, y] = corner(at);
    pen.lineWidth = 3;
    pen.strokeStyle = outer;
    pen.strokeRect(x + 1.5, y + 1.5, lie.wide - 3, lie.high - 3);
    pen.lineWidth = 1.5;
    pen.strokeStyle = inner;
    pen.strokeRect(x + 3.5, y + 3.5, lie.wide - 7, lie.high - 7);
  };

  const write = (pen, at, inset) => {
    const isBeforeClass = typeSize(stage, 0) > 0; // which is told each tile by its number, however small
    const size = Math.min(typeSize(stage, Math.max(9, Math.min(12, lie.wide / 8))), lie.wide / 3);
    if (facts.order.length === 1) return;
    pen.font = `${size}px ${style.fontFamily}`;
    const text = String(facts.order[at]);
    const across = pen.measureText(text).width;
    const [wide, high] = [across + 6, Math.max(14, size + 2)]; // of the number's ground
    // On small tiles those that begin a row have theirs, for the others to be counted; the rest are named
    // above the tiles under the pointer.
    const beginsRow = (at - lie.first) % lie.columns === 0;
    if (!beginsRow && wide * high * MOST_COVERED > lie.wide * lie.high) return;
    if (lie.wide < (isBeforeClass || beginsRow ? wide : Math.max(numbered, 1.6 * across))) return;
    const [x, y] = corner(at).map((side) => side + inset);
    pen.fillStyle = "rgba(0, 0, 0, 0.6)";
    pen.fillRect(x, y, wide, high);
    pen.fillStyle = "#fff";
    pen.fillText(text, x + 3, y + Math.max(11, size - 1));
  };

  const paintOne = (pen, at) =>
    faces.paint(paintTile, pen, inSprite(facts.geometry, at), corner(at), [lie.wide, lie.high], devicePixelRatio);

  // Where a map has the page's own colour, one sees where it begins.
  const hairline = (pen, at) => {
    const [[x, y], line] = [corner(at), 1 / devicePixelRatio];
    pen.lineWidth = line;
    pen.strokeStyle = HAIRLINE;
    pen.strokeRect(x + line / 2, y + line / 2, lie.wide - line, lie.high - line);
  };

  // The tiles with their numbers; painted again only where they are others, or lie elsewhere.
  const paintTiles = () => {
    const key = `${facts.key} ${facts.order} ${stage.dataset.layout} ${devicePixelRatio} ${typeSize(stage, 9)} ${faces.is()}`;
    if (painted === key) return;
    painted = key;
    [board.canvas.width, board.canvas.height] = [canvas.width, canvas.height];
    board.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    for (let at = lie.first; at < lie.last; at += 1) {
      paintOne(board, at);
      hairline(board, at);
      write(board, at, 0);
    }
  };

  return {
    lie,
    corner,
    isThere,
    show: (next) => {
      facts = next;
      paintTile = tilePainter(picture, facts.geometry);
    },
    /**
     * Find columns and sizes, so that the page of tiles with `position` is in view.
     * @param {number} room pixels across
     * @param {number} free pixels down
     * @param {number} position
     * @param {number} zoom
     */
    layOut: (room, free, position, zoom) => {
      const [count, tile] = [facts.order.length, facts.geometry.tile];
      const aspect = tile[0] / tile[1];
      const plan = fit(count, aspect, room, free, bounds);
      const { columns, page } = plan;
      const first = Math.floor(position / page) * page;
      const shown = Math.min(count, page);
      const most = Math.sqrt(MOST_PIXELS / ((room * shown * plan.tile * aspect) / columns + 1)) / devicePixelRatio;
      const factor = Math.max(1, Math.min(zoom, most));
      const [wide, high] = [Math.round(plan.tile * factor), Math.round(plan.tile * aspect * factor)];
      Object.assign(lie, { columns, page, first, last: Math.min(count, first + page), wide, high });
      const [across, down] = [columns * (wide + GAP) - GAP, Math.ceil(shown / columns) * (high + GAP) - GAP];
      canvas.style.width = `${across}px`;
      canvas.style.height = `${down}px`;
      canvas.width = Math.round(across * devicePixelRatio);
      canvas.height = Math.round(down * devicePixelRatio);
      pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
      stage.dataset.layout = JSON.stringify({ columns, wide, high, gap: GAP, first, page });
    },
    /**
     * Paint the tiles, and frames about the one under the cursor and the one that is picked; −1 for none.
     * @param {number} cursor
     * @param {number} chosen
     */
    paint: (cursor, chosen) => {
      if (!isThere()) return; // it is of the tiles before, cut otherwise
      paintTiles();
      pen.save();
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, canvas.width, canvas.height);
      pen.drawImage(board.canvas, 0, 0);
      pen.restore();
      if (cursor >= 0) box(cursor, "#000", "#fff");
      if (chosen >= lie.first && chosen < lie.last) {
        paintOne(pen, chosen); // without its number, which the frame covers in part
        box(chosen, "#fff", "#000");
        write(pen, chosen, 5);
      }
      stage.dataset.painted = facts.key;
      stage.dataset.face = faces.is();
    },
    /**
     * The tile and the cell under a point of the window; between two tiles it is the nearest.
     * @param {import("./pointing.js").Point} point
     * @returns {{at: number, cell: number[]} | null}
     */
    under: ({ x, y }) => {
      if (!isThere()) return null;
      const view = canvas.getBoundingClientRect();
      const point = { x: x - view.left, y: y - view.top };
      const at = tileAt(lie, point);
      if (at === null) return null;
      const [left, top] = corner(at);
      const [rows, columns] = facts.geometry.tile;
      return { at, cell: nearestCell({ left, top, width: lie.wide, height: lie.high }, point, rows, columns) };
    },
  };
};
