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
 * Bytes as they were before they were compressed.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {CompressionFormat} [how]
 */
export const inflated = async (bytes, how = "deflate") => {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(how));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};

/**
 * The text of a document's element, as soon as all of it is there: what is looked at first stands before
 * the script, which begins while the rest of a large file is being read.
 * @param {Document} document
 * @returns {(name: string) => Promise<string | null>} null where there is no such element
 */
export const textIn = (document) => {
  const isRead = () => document.readyState !== "loading";
  const read = isRead() ? null : new Promise((done) => document.addEventListener("DOMContentLoaded", done));
  return async (name) => {
    const found = document.getElementById(name);
    if (!isRead() && !found?.nextElementSibling) await read; // or there would be the beginning of it alone
    return document.getElementById(name)?.textContent ?? null;
  };
};

/**
 * The blocks of a page by their names.
 * @param {(name: string) => Promise<string | null>} textOf the text of one; null where there is no such block
 */
export const blocksOf = (textOf) => {
  const bytes = async (/** @type {string} */ name) => {
    const text = await textOf(name);
    return text === null ? null : bytesOf(text);
  };
  const unpacked = async (/** @type {string} */ name) => {
    const packed = await bytes(name);
    return packed && inflated(packed);
  };
  return {
    /** A file as it is. */
    bytes,
    /** What was deflated. */
    unpacked,
    /** What was gzipped. */
    unzipped: async (/** @type {string} */ name) => {
      const packed = await bytes(name);
      return packed && inflated(packed, "gzip");
    },
    /** Facts in JSON. */
    facts: async (/** @type {string} */ name) => {
      const text = await unpacked(name);
      return text && JSON.parse(new TextDecoder().decode(text));
    },
  };
};
