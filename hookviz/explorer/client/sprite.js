// The picture that holds every tile, as it comes.

import { say } from "./shared.js";

/**
 * Load a sprite into the grid's picture, if it is another.
 * @param {HTMLImageElement} picture
 * @param {string} key
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {{there: () => void, failed: (words: string) => void}} heard once it is there, if it is still
 * wanted, or why it can't be shown: then the same one may be tried again
 */
export const loadSprite = (picture, key, bytes, heard) => {
  if (picture.dataset.wanted === key) return;
  picture.dataset.wanted = key;
  const url = URL.createObjectURL(new Blob([bytes], { type: "image/png" }));
  const isWanted = () => picture.dataset.wanted === key;
  const next = new Image();
  next.src = url;
  next.decode().then(
    () => {
      if (!isWanted()) return URL.revokeObjectURL(url); // a newer one is on its way
      URL.revokeObjectURL(picture.src);
      picture.src = url;
      const done = () => {
        if (!isWanted()) return;
        picture.dataset.key = key;
        heard.there();
      };
      picture.decode().then(done, done);
    },
    () => {
      URL.revokeObjectURL(url);
      if (!isWanted()) return;
      delete picture.dataset.wanted;
      heard.failed(say("The browser can't show the picture of the tiles."));
    },
  );
};

/**
 * Nothing of a picture is wanted any more.
 * @param {HTMLImageElement} picture
 */
export const leaveSprite = (picture) => {
  delete picture.dataset.wanted;
  URL.revokeObjectURL(picture.src);
};
