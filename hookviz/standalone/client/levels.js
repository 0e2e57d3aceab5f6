// Values as colours: which index of a palette each has, as Python's `quantise` says, and all channels in
// one picture, as its `mosaic` lays them.

/**
 * What the colours of a layer's tiles mean.
 * @typedef {object} Scale
 * @property {{low: number[], high: number[]}} limits of each channel
 * @property {number} levels from the low end to the high one
 * @property {number} nan the index of what is no number
 * @property {number} infinity
 */

/**
 * The palette's index of each value.
 * @param {Float32Array} values of all channels, one after the other
 * @param {Scale} scale
 */
export const quantised = (values, { limits: { low, high }, levels, nan, infinity }) => {
  const indices = new Uint8Array(values.length);
  const cells = values.length / low.length;
  for (let channel = 0; channel < low.length; channel += 1) {
    const least = low[channel];
    const span = high[channel] - least;
    const factor = span > 0 ? levels / span : 0;
    for (let at = channel * cells; at < (channel + 1) * cells; at += 1) {
      const value = values[at];
      if (Number.isNaN(value)) indices[at] = nan;
      else if (!Number.isFinite(value)) indices[at] = infinity;
      else indices[at] = Math.min(levels - 1, Math.max(0, Math.floor((value - least) * factor)));
    }
  }
  return indices;
};

/**
 * All channels in one picture.
 * @param {Uint8Array} indices of all channels, one after the other
 * @param {{columns: number, tile: [number, number], pitch: [number, number], width: number, height: number}} geometry
 * @param {number} gap the index of what lies between
 */
export const mosaic = (indices, { columns, tile: [rows, across], pitch, width, height }, gap) => {
  const picture = new Uint8Array(width * height).fill(gap);
  const count = indices.length / (rows * across);
  for (let channel = 0; channel < count; channel += 1) {
    const corner = Math.floor(channel / columns) * pitch[0] * width + (channel % columns) * pitch[1];
    for (let row = 0; row < rows; row += 1) {
      const from = (channel * rows + row) * across;
      picture.set(indices.subarray(from, from + across), corner + row * width);
    }
  }
  return picture;
};
