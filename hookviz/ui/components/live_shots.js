// A picture of the source as the file that is sent and the pixels that are painted, at the side that
// the network's own steps would shrink it to: nothing larger travels.

const QUALITY = 0.85;

const shooter = () => {
  const canvas = new OffscreenCanvas(1, 1);
  const pen = canvas.getContext("2d", { alpha: false });
  return async (source, side) => {
    const picture = source.picture();
    const shrunk = Math.min(1, side / Math.min(source.width, source.height));
    const [wide, high] = [source.width, source.height].map((each) => Math.max(1, Math.round(each * shrunk)));
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    pen.imageSmoothingQuality = "medium";
    pen.drawImage(picture, 0, 0, wide, high);
    const at = performance.now();
    const [bitmap, file] = await Promise.all([
      createImageBitmap(canvas),
      canvas.convertToBlob({ type: "image/jpeg", quality: QUALITY }),
    ]);
    return { at, bitmap, bytes: await file.arrayBuffer() };
  };
};

// Bytes as text that JSON can carry.
const base64 = (bytes) => {
  let letters = "";
  for (const byte of new Uint8Array(bytes)) letters += String.fromCharCode(byte);
  return btoa(letters);
};
