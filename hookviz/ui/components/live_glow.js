// The picked channel's map as light: what is above zero glows, from ember to white.

const FINE = 512; // pixels of the longer side up to which a map is drawn smoothly

// The colour of a share of the brightest: black, red, orange, white, as of something that is heated.
const ember = (share) => {
  const heat = Math.max(0, Math.min(1, share)) ** 0.85;
  return [2 * heat, 1.6 * heat - 0.25, 2 * heat - 1].map((part) => 255 * Math.max(0, Math.min(1, part)));
};

/**
 * The pixels of a map that came as a byte a cell.
 * @param {Uint8Array} levels
 * @param {{low: number, high: number}} ends what 0 and 255 stand for
 * @param {number} brightest the value that glows as brightly as can be
 */
export const glowPixels = (levels, { low, high }, brightest) => {
  const step = (high - low) / 255;
  const colours = Array.from({ length: 256 }, (_, level) =>
    ember(brightest > 0 ? (low + step * level) / brightest : 0),
  );
  const pixels = new Uint8ClampedArray(4 * levels.length);
  for (let at = 0; at < levels.length; at += 1) {
    pixels.set(colours[levels[at]], 4 * at);
    pixels[4 * at + 3] = 255;
  }
  return pixels;
};

// Paints maps into a canvas: a pixel a cell, or smoothly between the cells' middles.
export const glowPainter = (canvas) => {
  const cells = new OffscreenCanvas(1, 1);
  const exactPen = /** @type {OffscreenCanvasRenderingContext2D} */ (cells.getContext("2d"));
  const pen = canvas.getContext("2d");
  return (levels, { rows, columns, low, high }, brightest, isExact) => {
    if (cells.width !== columns || cells.height !== rows) [cells.width, cells.height] = [columns, rows];
    exactPen.putImageData(new ImageData(glowPixels(levels, { low, high }, brightest), columns, rows), 0, 0);
    const times = isExact ? 1 : Math.max(1, Math.min(8, Math.floor(FINE / Math.max(rows, columns))));
    const [wide, high_] = [columns * times, rows * times];
    if (canvas.width !== wide || canvas.height !== high_) [canvas.width, canvas.height] = [wide, high_];
    pen.imageSmoothingEnabled = times > 1;
    pen.imageSmoothingQuality = "high";
    pen.drawImage(cells, 0, 0, wide, high_);
  };
};
