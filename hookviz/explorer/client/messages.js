// What comes back for a question: messages one after the other, on a line that cuts them anywhere.

import { factsAndFile } from "./shared.js";

/**
 * Reads messages as they come. `take` gets each whole one: its facts and the bytes of its file.
 * @param {(message: {facts: Facts, data: Uint8Array<ArrayBuffer>}) => void} take
 */
export const messageReader = (take) => {
  let rest = new Uint8Array(0);
  return {
    /** @param {Uint8Array} chunk */
    push: (chunk) => {
      const bytes = new Uint8Array(rest.length + chunk.length);
      bytes.set(rest);
      bytes.set(chunk, rest.length);
      rest = bytes;
      while (rest.length >= 4) {
        const end = 4 + new DataView(rest.buffer, rest.byteOffset).getUint32(0, true);
        if (rest.length < end) return;
        const [facts, data] = factsAndFile(rest.slice(4, end));
        rest = rest.subarray(end);
        take({ facts, data });
      }
    },
    // Bytes of a message that is not whole.
    left: () => rest.length,
  };
};
