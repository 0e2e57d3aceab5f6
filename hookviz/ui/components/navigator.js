// The tree of layers at the side of a page that the server draws.

import { unpacked } from "../../explorer/client/shared.js";
import { layerTree } from "../../explorer/client/tree.js";
import { kept } from "./page.js";

export default function (component) {
  const data = unpacked(component.data);
  const held = kept(component, ({ tell }) =>
    layerTree(component.parentElement, { pick: (name) => tell("picked", name) }),
  );
  held.show(data);
  // The link knows first which layer is looked at: a lens may take long before this tree is drawn anew.
  const mark = () => {
    const asked = new URLSearchParams(location.search).get("layer");
    held.mark(held.has(asked) ? asked : data.chosen);
  };
  mark();
  held.follow(mark);
  return held.leave;
}
