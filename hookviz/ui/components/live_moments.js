// The best moments of a channel as small pictures, which this tab alone has, and as one picture to save.

import { inSigns, make, number, say } from "../../explorer/client/shared.js";

export const WIDE = 320; // pixels of a moment's picture
const [COLUMNS, GAP, HEAD, FOOT] = [3, 16, 64, 30]; // of the picture that is saved

/**
 * A frame with the light on it, as the mirror shows it.
 * @param {any} frame what can be drawn, with its size
 * @param {HTMLCanvasElement} glow
 * @param {number[] | null} part of the frame that the network sees, in shares of its sides
 * @param {{flip: boolean, strength: number}} look
 * @param {{wide: number, cut: boolean}} as pixels across, and whether what the network does not see is cut off
 */
export const litPicture = (frame, glow, part, { flip, strength }, { wide, cut }) => {
  const [x, y, across, down] = cut && part ? part : [0, 0, 1, 1];
  const seen = [x * frame.width, y * frame.height, across * frame.width, down * frame.height];
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [wide, Math.round((wide * seen[3]) / seen[2])];
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const { width, height } = canvas;
  if (flip) pen.setTransform(-1, 0, 0, 1, width, 0);
  pen.drawImage(frame, seen[0], seen[1], seen[2], seen[3], 0, 0, width, height);
  if (!part) return canvas;
  pen.fillStyle = `rgba(0, 0, 0, ${dimmed(strength)})`;
  pen.fillRect(0, 0, width, height);
  pen.globalCompositeOperation = "screen";
  pen.globalAlpha = strength;
  pen.imageSmoothingEnabled = glow.width > 64;
  const [left, top, ...sides] = cut ? [0, 0, 1, 1] : part;
  pen.drawImage(glow, left * width, top * height, sides[0] * width, sides[1] * height);
  return canvas;
};

// How dark the picture is made, so that light is seen on a white wall too.
export const dimmed = (strength) => 0.5 * strength;

const clock = (at) => new Date(at).toTimeString().slice(0, 8);

export const showMoments = (find, moments) => {
  find(".moments").replaceChildren(
    ...moments.map(({ picture, level, time }) =>
      make("li", {}, picture, make("span", {}, make("b", {}, number(level)), ` ${clock(time)}`)),
    ),
  );
  find(".none").hidden = moments.length > 0;
  for (const name of [".save", ".clear"]) find(name).disabled = !moments.length;
};

// All of them in one picture, with what they are of.
export const saveMoments = (moments, { title, unit, name }) => {
  const [wide, high] = [WIDE, Math.max(...moments.map(({ picture }) => picture.height))];
  const columns = Math.min(COLUMNS, moments.length);
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(640, columns * (wide + GAP) + GAP);
  canvas.height = HEAD + Math.ceil(moments.length / columns) * (high + FOOT + GAP) + GAP;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.fillStyle = "#111";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = "#fff";
  pen.font = "600 22px sans-serif";
  pen.fillText(title, GAP, 30, canvas.width - 2 * GAP);
  pen.font = "15px sans-serif";
  pen.fillText(unit, GAP, 54, canvas.width - 2 * GAP);
  moments.forEach(({ picture, level, time }, at) => {
    const x = GAP + (at % columns) * (wide + GAP);
    const y = HEAD + GAP / 2 + Math.floor(at / columns) * (high + FOOT + GAP);
    pen.drawImage(picture, x, y, wide, picture.height);
    pen.fillText(`${at + 1}.  ${number(level)}  ·  ${clock(time)}`, x, y + high + 20, wide);
  });
  canvas.toBlob((blob) => {
    if (!blob) return;
    const url = URL.createObjectURL(blob);
    make("a", { href: url, download: `${name}.png` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }, "image/png");
};

export const inPercent = (share) => `${inSigns((100 * share).toFixed(share >= 0.1 ? 0 : 1))} %`;

export const likeliest = (scores) =>
  scores.length
    ? say("The network says: {label}, {share}", { label: scores[0][0], share: inPercent(scores[0][1]) })
    : "";
