// A grid of channels on a page that the server draws.

import { unpacked } from "../../explorer/client/shared.js";
import { tileGrid } from "../../explorer/client/tile_grid.js";
import { counted, kept, scrollUp } from "./page.js";

export default function (component) {
  const data = unpacked(component.data);
  const held = kept(component, ({ tell }) =>
    tileGrid(component.parentElement, {
      pick: (channel, cell) => {
        scrollUp();
        tell("picked", { channel, cell });
      },
      room: () => data.height, // of one place on the page it is always the same
    }),
  );
  held.tell = counted(component, data.taken);
  held.show(data, data.picture, data.chosen);
  return held.leave;
}
