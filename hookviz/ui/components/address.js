// What a run of the page says of the address (address.js of the page's head): which view it drew by, what
// it writes, and where it is told what stands there.

import { unpacked } from "../../explorer/client/shared.js";

/** @type {Facts | null} */
let newest = null; // what was said last, in whatever element

/** @type {Draw} */
export default function ({ data, setTriggerValue }) {
  const facts = { ...unpacked(data), tell: (/** @type {unknown} */ said) => setTriggerValue("changed", said) };
  newest = facts;
  window.hookvizServer(facts);
  return () => {
    if (newest === facts) window.hookvizServer(null);
  };
}
