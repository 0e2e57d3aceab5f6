// The screen of a stream: where everything lies, and what of an answer is shown. It knows neither
// where frames come from nor how they travel.

import { tileAt } from "../../explorer/client/pointing.js";
import { colourBar, inSigns, number, say } from "../../explorer/client/shared.js";
import { inSprite } from "../../explorer/client/tiles.js";
import { fit, GAP, onPhone } from "../../explorer/client/tiling.js";
import { LASTS, paintHistory } from "./live_history.js";
import { outline, paintMap, paintNumbers, paintOver, paintPhoto, paintTiles, sized } from "./live_paint.js";

const CALM = 120; // milliseconds between changes of text, which nobody reads faster

export const watch = (find, root) => {
  const [board, marks, stage, side] = [".board", ".marks", ".stage", ".side"].map(find);
  const style = getComputedStyle(root);
  /** @type {any} what is shown of the last answer, the channel picked, and maxima of some seconds */
  const screen = { shown: null, picked: null, columns: 1, moments: [] };
  let [wide, high, key, written, late] = [1, 1, "", 0, 0];

  const corner = (at) => [(at % screen.columns) * (wide + GAP), Math.floor(at / screen.columns) * (high + GAP)];

  const layOut = () => {
    if (!screen.shown) return;
    const { grid } = screen.shown.answer;
    const room = stage.parentElement.clientWidth;
    if (!room) return;
    const main = document.querySelector("[data-testid='stMain']");
    const top = stage.getBoundingClientRect().top + (main ? main.scrollTop : 0);
    const free = Math.max(200, window.innerHeight - top - 16);
    const count = grid.order.length;
    const aspect = grid.geometry.tile[0] / grid.geometry.tile[1];
    const plan = fit(count, aspect, room, free);
    [screen.columns, wide, high] = [plan.columns, plan.tile, Math.max(1, Math.round(plan.tile * aspect))];
    const size = [screen.columns * (wide + GAP) - GAP, Math.ceil(count / screen.columns) * (high + GAP) - GAP];
    sized(board, ...size);
    const pen = sized(marks, ...size);
    pen.clearRect(0, 0, ...size);
    paintNumbers(pen, grid.order, corner, wide, style.fontFamily);
    const at = grid.order.indexOf(screen.picked);
    if (at >= 0) outline(pen, corner(at)[0] + 1.5, corner(at)[1] + 1.5, wide - 3, high - 3);
    stage.dataset.layout = JSON.stringify({ columns: screen.columns, wide, high, gap: GAP, count });
    stage.setAttribute("aria-valuemax", count - 1);
    stage.setAttribute("aria-valuenow", Math.max(0, at));
    stage.setAttribute(
      "aria-valuetext",
      at >= 0 ? say("channel {channel}", { channel: screen.picked }) : say("no channel picked"),
    );
  };

  // The picked channel's map in the sprite, or by itself where it is not among those shown.
  const mapOf = ({ answer, sprite, map }) => {
    const { geometry, order } = answer.grid;
    const at = order.indexOf(screen.picked);
    if (at >= 0) {
      const [left, top] = inSprite(geometry, at);
      return { picture: sprite, left, top, rows: geometry.tile[0], columns: geometry.tile[1] };
    }
    return map && { picture: map, left: 0, top: 0, rows: map.height, columns: map.width };
  };

  const paintPicked = (seen) => {
    const { answer, frame } = screen.shown;
    const picked = answer.picked?.channel === screen.picked ? answer.picked : null;
    const map = mapOf(screen.shown);
    const room = find(".pair").clientWidth;
    if (!map || !room) return;
    const laid = seen !== null;
    find(".laid").hidden = !laid;
    const column = laid ? (room - 12) / 2 : Math.min(room, 260);
    const most = Math.max(90, window.innerHeight * 0.34); // high, so that the strip is in the window too
    const fitted = (ratio) => Math.round(Math.min(column, most / ratio));
    paintMap(find(".map"), map, picked?.cell, fitted(map.rows / map.columns));
    if (laid)
      paintOver(
        find(".over"),
        frame.bitmap,
        map,
        picked?.frame_box,
        seen,
        fitted(frame.bitmap.height / frame.bitmap.width),
      );
    paintHistory(find(".history"), screen.moments, screen.picked, performance.now(), room, onPhone() ? 64 : 96, style);
  };

  const write = () => {
    const { answer } = screen.shown;
    const { grid, scores } = answer;
    const list = find(".scores");
    while (list.children.length > scores.length) list.lastChild.remove();
    scores.forEach(([label, share], at) => {
      let row = list.children[at];
      if (!row) {
        row = document.createElement("div");
        row.setAttribute("role", "listitem");
        row.innerHTML = `<span class="label"></span><span class="track"><span class="bar"></span></span><span class="share"></span>`;
        list.append(row);
      }
      const percent = 100 * share;
      row.children[0].textContent = row.title = label;
      row.children[1].firstChild.style.width = `${percent.toFixed(2)}%`;
      row.children[2].textContent = `${inSigns(percent.toFixed(percent >= 10 ? 0 : 1))} %`;
    });
    const bar = `${grid.bar} ${grid.ticks}`;
    if (find(".scale").dataset.bar !== bar) {
      find(".scale").dataset.bar = bar;
      colourBar(find, grid.bar, grid.ticks);
    }
    const at = grid.order.indexOf(screen.picked);
    const picked = answer.picked?.channel === screen.picked ? answer.picked : null;
    const numbers = [];
    if (picked) {
      numbers.push(say("min {value}", { value: number(picked.min) }));
      if (at >= 0) numbers.push(say("mean {value}", { value: number(grid.stats.mean[at]) }));
      numbers.push(say("max {value}", { value: number(picked.max) }));
      if (picked.cell)
        numbers.push(
          say("strongest at row {row}, column {column}", {
            row: picked.cell[0],
            column: picked.cell[1],
          }),
        );
    }
    find(".numbers").textContent = numbers.join(" · ");
  };

  // An answer: { answer, sprite, map, frame }; the bitmaps of the one before are let go of.
  screen.show = (shown, seen) => {
    const before = screen.shown;
    screen.shown = shown;
    const { grid, maxima } = shown.answer;
    const now = performance.now();
    if (screen.moments.length && screen.moments[0].maxima.length !== maxima.length) screen.moments = [];
    screen.moments.push({ at: now, maxima });
    while (screen.moments[0].at < now - LASTS) screen.moments.shift();
    const lies = `${grid.order} ${grid.geometry.tile} ${screen.picked}`;
    if (key !== lies) layOut();
    key = lies;
    const pen = board.getContext("2d");
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    paintTiles(pen, shown.sprite, grid.geometry, grid.order.length, corner, wide, high);
    paintPhoto(find(".photo"), shown.frame.bitmap, seen, onPhone() ? 56 : 84);
    if (screen.picked !== null) paintPicked(seen);
    clearTimeout(late);
    if (now - written > CALM || !before) {
      write();
      written = now;
    } else late = setTimeout(write, CALM); // of a video that stands still this one may be the last
    for (const [old, new_] of before
      ? [
          [before.sprite, shown.sprite],
          [before.map, shown.map],
          [before.frame.bitmap, shown.frame.bitmap],
        ]
      : []) {
      if (old !== new_) old?.close();
    }
    stage.dataset.painted = grid.key;
    stage.dataset.frame = shown.answer.frame;
  };

  screen.pick = (channel, seen) => {
    screen.picked = channel;
    find(".hint").hidden = channel !== null;
    find(".picked").hidden = channel === null;
    side.classList.toggle("empty", channel === null);
    if (channel !== null) {
      find("h3").textContent = say("Channel {channel}", { channel });
      find(".map").setAttribute(
        "aria-label",
        say("The map of channel {channel}, its strongest cell framed", { channel }),
      );
      find(".over").setAttribute("aria-label", say("The map of channel {channel} on the frame", { channel }));
      find(".history").setAttribute(
        "aria-label",
        say("The maximum of channel {channel} in the last ten seconds", { channel }),
      );
    }
    if (!screen.shown) return;
    layOut();
    screen.again(seen);
  };

  // The last answer once more, as after a change of the window.
  screen.again = (seen) => {
    if (!screen.shown) return;
    layOut();
    const { grid } = screen.shown.answer;
    const pen = board.getContext("2d");
    paintTiles(pen, screen.shown.sprite, grid.geometry, grid.order.length, corner, wide, high);
    if (screen.picked !== null) paintPicked(seen);
    write();
  };

  // The channel of the tile under the pointer; between two it is the nearest.
  screen.under = (event) => {
    if (!screen.shown) return null;
    const { order } = screen.shown.answer.grid;
    const box = board.getBoundingClientRect();
    const at = tileAt(
      { columns: screen.columns, wide, high, first: 0, last: order.length },
      { x: event.clientX - box.left, y: event.clientY - box.top },
    );
    return at === null ? null : order[at];
  };

  // The channel that many tiles to the right of the picked one, or below it; the first where none is.
  screen.neighbour = (across, down) => {
    const order = screen.shown?.answer.grid.order ?? [];
    const at = order.indexOf(screen.picked);
    return order[at < 0 ? 0 : at + across + down * screen.columns] ?? null;
  };
  return screen;
};
