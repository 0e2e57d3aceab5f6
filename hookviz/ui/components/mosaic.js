// A grid of channels on a page that the server draws.

import { unpacked } from "../../explorer/client/shared.js";
import { tileGrid } from "../../explorer/client/tile_grid.js";
import { kept, scrollUp } from "./page.js";

export default function (component) {
  const data = unpacked(component.data);
  const held = kept(component, ({ tell }) => {
    /** @type {{number: number, channel: number, cell: number[] | null}[]} */
    let picks = []; // that the server has not taken yet, as far as is known here
    let number = 0;
    const grid = tileGrid(component.parentElement, {
      pick: (channel, cell) => {
        scrollUp();
        number = Math.max(number + 1, Date.now()); // above those of an earlier part in this place
        picks.push({ number, channel, cell });
        tell("picked", picks);
      },
      room: () => data.height, // of one place on the page it is always the same
    });
    /** @param {number} last */
    const forget = (last) => {
      picks = picks.filter((pick) => pick.number > last);
    };
    return { ...grid, forget };
  });
  held.forget(data.taken);
  held.show(data, data.picture, data.chosen);
  return held.leave;
}
