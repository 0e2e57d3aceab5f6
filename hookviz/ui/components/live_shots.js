// A picture of the source as the file that is sent and the pixels that are painted, at the side that
// the network's own steps would shrink it to: nothing larger travels.

const QUALITY = 0.85;

// At once, for a blob would come by way of another thread, which waits for a core as all of them do.
export const shooter = () => {
  const [canvas, copy] = [document.createElement("canvas"), new OffscreenCanvas(1, 1)];
  const options = { alpha: false, willReadFrequently: true };
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", options));
  const second = /** @type {OffscreenCanvasRenderingContext2D} */ (copy.getContext("2d", options));
  return (source, side) => {
    const picture = source.picture();
    const shrunk = Math.min(1, side / Math.min(source.width, source.height));
    const [wide, high] = [source.width, source.height].map((each) => Math.max(1, Math.round(each * shrunk)));
    for (const each of [canvas, copy]) {
      if (each.width !== wide || each.height !== high) [each.width, each.height] = [wide, high];
    }
    pen.imageSmoothingQuality = "medium";
    pen.drawImage(picture, 0, 0, wide, high);
    const at = performance.now();
    const file = canvas.toDataURL("image/jpeg", QUALITY).split(",")[1];
    second.drawImage(canvas, 0, 0);
    const bitmap = copy.transferToImageBitmap();
    return {
      at,
      file,
      bitmap,
      /** @type {ImageBitmap | null} a larger copy, where one is wanted */
      large: null,
      close() {
        this.bitmap.close();
        this.large?.close();
      },
      bytes: Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0)),
    };
  };
};
