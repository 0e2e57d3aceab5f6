// A picture of palette indices as a PNG file, not compressed: it goes from here to the browser's own
// decoder and nowhere else, and every colour comes back exactly.

const SIGNATURE = [137, 80, 78, 71, 13, 10, 26, 10];
const MOST = 65535; // bytes of a block that is stored

const ROUNDS = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** @param {Uint8Array} bytes */
const crc = (bytes) => {
  let value = 0xffffffff;
  for (const byte of bytes) value = (value >>> 8) ^ ROUNDS[(value ^ byte) & 255];
  return ~value >>> 0;
};

/** @param {Uint8Array} bytes */
const adler = (bytes) => {
  let [low, high] = [1, 0];
  for (let from = 0; from < bytes.length; from += 5552) {
    const end = Math.min(bytes.length, from + 5552); // as far as no sum is too large
    for (let at = from; at < end; at += 1) {
      low += bytes[at];
      high += low;
    }
    low %= 65521;
    high %= 65521;
  }
  return ((high << 16) | low) >>> 0;
};

const chunk = (/** @type {string} */ kind, /** @type {Uint8Array} */ data) => {
  const bytes = new Uint8Array(12 + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  for (let at = 0; at < 4; at += 1) bytes[4 + at] = kind.charCodeAt(at);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, crc(bytes.subarray(4, 8 + data.length)));
  return bytes;
};

/** Bytes as zlib has them, in blocks that are stored as they are. */
const stored = (/** @type {Uint8Array} */ data) => {
  const count = Math.max(1, Math.ceil(data.length / MOST));
  const bytes = new Uint8Array(2 + count * 5 + data.length + 4);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, 0x7801);
  let to = 2;
  for (let block = 0; block < count; block += 1) {
    const part = data.subarray(block * MOST, (block + 1) * MOST);
    view.setUint8(to, block === count - 1 ? 1 : 0);
    view.setUint16(to + 1, part.length, true);
    view.setUint16(to + 3, ~part.length & 0xffff, true);
    bytes.set(part, to + 5);
    to += 5 + part.length;
  }
  view.setUint32(to, adler(data));
  return bytes;
};

/**
 * The file of a picture.
 * @param {Uint8Array} levels a palette's index for each pixel, row by row
 * @param {number} width
 * @param {Uint8Array} palette red, green, blue and alpha of each index
 * @returns {Uint8Array<ArrayBuffer>}
 */
export const indexedPng = (levels, width, palette) => {
  const height = levels.length / width;
  const head = new Uint8Array(13);
  const view = new DataView(head.buffer);
  view.setUint32(0, width);
  view.setUint32(4, height);
  head.set([8, 3], 8); // bits of an index; a picture with a palette
  const rows = new Uint8Array(height * (width + 1)); // before each row that it is not filtered
  for (let row = 0; row < height; row += 1) {
    rows.set(levels.subarray(row * width, (row + 1) * width), row * (width + 1) + 1);
  }
  const of = (/** @type {(at: number) => boolean} */ wanted) => palette.filter((_, at) => wanted(at));
  const chunks = [
    new Uint8Array(SIGNATURE),
    chunk("IHDR", head),
    chunk(
      "PLTE",
      of((at) => at % 4 < 3),
    ),
    chunk(
      "tRNS",
      of((at) => at % 4 === 3),
    ),
    chunk("IDAT", stored(rows)),
    chunk("IEND", new Uint8Array(0)),
  ];
  const file = new Uint8Array(chunks.reduce((size, each) => size + each.length, 0));
  let to = 0;
  for (const each of chunks) {
    file.set(each, to);
    to += each.length;
  }
  return file;
};
