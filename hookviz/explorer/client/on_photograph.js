// A channel's map over the photograph, as strongly as a person likes, and a frame around what the
// chosen cell sees.

import { around, over } from "./boxes.js";
import { explain, frame, penOf, say } from "./shared.js";

const OPACITY = 60; // percent
const FRAME = `
  <figure class="onto">
    <div class="ground" role="img">
      <img class="photo" alt=""><canvas class="laid"></canvas><div class="sees" hidden></div>
    </div>
    <input class="opacity" type="range" min="0" max="100" step="1" value="${OPACITY}"
      title="Opacity of the map" aria-label="Opacity of the map">
    <figcaption></figcaption>
  </figure>`;

/** @param {HTMLElement} parent */
export function onPhotograph(parent) {
  const find = frame(parent, FRAME);
  const [ground, photo, laid, sees, slider, caption] = [
    ".ground",
    ".photo",
    ".laid",
    ".sees",
    ".opacity",
    "figcaption",
  ].map(find);
  const fade = () => {
    laid.style.opacity = String(slider.value / 100);
  };
  slider.oninput = fade;
  fade();
  return {
    /**
     * The photograph; the part of it that the network sees is a share of it, or not known.
     * @param {Facts} photograph the answer to the question of that name
     * @param {string} url
     */
    of({ width, height, crop, missing }, url) {
      ground.hidden = slider.hidden = !crop;
      if (!crop) {
        caption.textContent = missing || say("Where this lies on the image is not known.");
        return;
      }
      ground.style.aspectRatio = `${width} / ${height}`;
      if (photo.src !== url) photo.src = url;
      Object.assign(laid.style, over(crop));
    },
    /**
     * The map, a pixel for each cell.
     * @param {CanvasImageSource} picture
     * @param {number} rows
     * @param {number} columns
     * @param {string} label
     */
    lay(picture, rows, columns, label) {
      [laid.width, laid.height] = [columns, rows];
      penOf(laid).drawImage(picture, 0, 0, columns, rows);
      ground.setAttribute("aria-label", label);
    },
    /**
     * @param {import("./boxes.js").Box | null} box what the cell sees
     * @param {[string, string][]} [parts] what is said of it
     */
    frame(box, parts) {
      sees.hidden = !box;
      if (box) Object.assign(sees.style, around(box));
      if (!ground.hidden) explain(caption, parts ?? [[say("on the image"), ""]]);
    },
  };
}
