// What the page keeps beside its scripts: texts in base64, unpacked when they are needed.

/**
 * The bytes of a text in base64.
 * @param {string} text
 */
export const bytesOf = (text) => {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return bytes;
};

/**
 * Bytes as they were before they were deflated.
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
export const inflated = async (bytes) => {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};

/**
 * The blocks of a page by their names.
 * @param {(name: string) => string | null} textOf the text of one; null where there is no such block
 */
export const blocksOf = (textOf) => {
  const bytes = (/** @type {string} */ name) => {
    const text = textOf(name);
    return text === null ? null : bytesOf(text);
  };
  const unpacked = async (/** @type {string} */ name) => {
    const packed = bytes(name);
    return packed && inflated(packed);
  };
  return {
    /** A file as it is. */
    bytes,
    /** What was deflated. */
    unpacked,
    /** Facts in JSON. */
    facts: async (/** @type {string} */ name) => {
      const text = await unpacked(name);
      return text && JSON.parse(new TextDecoder().decode(text));
    },
  };
};
