// Numbers as they were kept: float16 by a power of two, or float32 as they are; of each number the
// first bytes of all stand before the second ones.

/** Bytes that stood apart, together again. */
const together = (/** @type {Uint8Array} */ bytes, /** @type {number} */ size) => {
  const count = bytes.length / size;
  const joined = new Uint8Array(bytes.length);
  for (let part = 0; part < size; part += 1) {
    for (let at = 0; at < count; at += 1) joined[at * size + part] = bytes[part * count + at];
  }
  return joined;
};

/**
 * The number that 16 bits stand for.
 * @param {number} bits
 */
export const half = (bits) => {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction ? Number.NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : (fraction / 1024) * 2 ** -14);
};

/** @type {Float64Array | undefined} */
let every; // number by its bits

/**
 * Values that were kept as float16.
 * @param {Uint8Array} bytes
 * @param {number} power of two by which they were multiplied
 */
export const halves = (bytes, power) => {
  every ??= Float64Array.from({ length: 1 << 16 }, (_, bits) => half(bits));
  const [count, factor] = [bytes.length / 2, 2 ** -power];
  const values = new Float32Array(count);
  for (let at = 0; at < count; at += 1) values[at] = every[bytes[at] | (bytes[count + at] << 8)] * factor;
  return values;
};

/**
 * Values that were kept as float32.
 * @param {Uint8Array} bytes
 */
export const wholeFloats = (bytes) => new Float32Array(together(bytes, 4).buffer);

/**
 * float32 values as base64, as the explorer's questions are answered.
 * @param {Float32Array} values
 */
export const float32Text = (values) => {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  let letters = "";
  const step = 1 << 15; // arguments of one call
  for (let at = 0; at < bytes.length; at += step) letters += String.fromCharCode(...bytes.subarray(at, at + step));
  return btoa(letters);
};
