// What the answers of a page share: which language and theme they are in, palettes and colour bars.

import { indexedPng } from "./png.js";

const BAR = [256, 12]; // pixels of a colour bar

/**
 * What a page says of its language, its theme and its image, which is what its questions are about.
 * @param {number} language
 * @param {number} theme
 * @param {string} [image]
 */
export const subjectOf = (language, theme, image = "") => `${language} ${theme} ${image}`;

/**
 * The language and the theme that a question is about.
 * @param {string} subject
 */
export const wantedOf = (subject) => {
  const [language, theme] = subject.split(" ").map(Number);
  return { ".language": language, ".theme": theme };
};

/** @param {Uint8Array} png */
const pictureUrl = (png) => {
  let letters = "";
  for (const byte of png) letters += String.fromCharCode(byte);
  return `data:image/png;base64,${btoa(letters)}`;
};

/**
 * The palettes of a page, in the forms that its answers have.
 * @param {Record<string, string>} texts of RGBA in base64, 256 levels each, by the colormaps' names
 * @param {(text: string) => Uint8Array} bytesOf base64
 */
export const palettesOf = (texts, bytesOf) => {
  const palettes = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, bytesOf(text)]));
  /** @type {Map<string, string>} */
  const bars = new Map();
  return {
    has: (/** @type {string} */ name) => name in palettes,
    /** RGBA of each level. */
    bytes: (/** @type {string} */ name) => palettes[name],
    /** The colour of each level as a number. */
    numbers: (/** @type {string} */ name) =>
      Array.from({ length: 255 }, (_, index) => {
        const [red, green, blue] = palettes[name].subarray(4 * index, 4 * index + 3);
        return (red << 16) | (green << 8) | blue;
      }),
    /** The address of a picture of its colour bar. */
    bar: (/** @type {string} */ name, /** @type {number} */ levels) => {
      const key = `${name} ${levels}`;
      const [width, height] = BAR;
      const pixels = Uint8Array.from({ length: width * height }, (_, at) =>
        Math.floor(((at % width) * levels) / width),
      );
      const bar = bars.get(key) ?? pictureUrl(indexedPng(pixels, width, palettes[name]));
      bars.set(key, bar);
      return bar;
    },
  };
};
