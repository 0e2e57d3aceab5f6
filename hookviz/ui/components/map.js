// One map, large, as a lesson has it; its parts are the explorer's.

import { channelMap } from "../../explorer/client/channel_map.js";
import { decoded } from "../../explorer/client/pictures.js";
import { floats, unpacked } from "../../explorer/client/shared.js";

const latest = new WeakMap(); // the picture that a place on the page is to show

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const data = unpacked(bytes);
  const values = data.values && floats(data.values);
  const map = channelMap(parentElement, (cell) => setTriggerValue("picked", cell));
  const facts = /** @type {any} */ ({ ...data, values, picture: null });
  map.show(facts);
  latest.set(parentElement, data.picture);
  decoded(data.picture).then((picture) => {
    if (latest.get(parentElement) === data.picture) map.show({ ...facts, picture });
  });
}
