// Paints what stands at the two ends of a network's map: the photograph, and the classes with their bars.

import { onScreen } from "./map_camera.js";

/** @typedef {import("./map_camera.js").Box} Box */

/** @param {CanvasRenderingContext2D} pen */
export const mapEnds =
  (pen) =>
  /**
   * @param {import("./map_painter.js").Scene} scene
   * @param {{text: string, line: string, accent: string, font: string}} colours
   * @param {(box: Box) => boolean} seen
   * @param {(words: string, x: number, y: number, most: number) => void} write
   */
  (scene, colours, seen, write) => {
    const photograph = () => {
      const box = onScreen(scene.camera, scene.photographBox);
      const { photograph: picture, sees } = scene;
      if (!picture || !seen(box)) return;
      pen.imageSmoothingEnabled = true;
      pen.drawImage(picture, box.left, box.top, box.width, box.height);
      pen.imageSmoothingEnabled = false;
      if (!sees) return;
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 2;
      const within = (/** @type {number} */ share) => Math.min(1, Math.max(0, share));
      const [left, top] = [within(sees.left) * box.width, within(sees.top) * box.height];
      pen.strokeRect(
        box.left + left,
        box.top + top,
        Math.max(2, within(sees.right) * box.width - left),
        Math.max(2, within(sees.bottom) * box.height - top),
      );
      pen.lineWidth = 1;
    };

    const classes = () => {
      const box = onScreen(scene.camera, scene.classesBox);
      if (!seen(box) || scene.classes.length === 0) return;
      const high = box.height / scene.classes.length;
      const type = Math.min(high * 0.42, 18);
      if (type < 5) return;
      pen.globalAlpha = scene.reached < scene.root.last ? 0.25 : 1;
      pen.font = `${type}px ${colours.font}`;
      pen.textAlign = "left";
      for (const [at, each] of scene.classes.entries()) {
        const top = box.top + at * high;
        pen.fillStyle = colours.text;
        pen.textBaseline = "bottom";
        write(`${each.name} ${each.says}`, box.left, top + high * 0.6, box.width);
        pen.fillStyle = !scene.lit || scene.lit.class === each.number ? colours.accent : colours.line;
        pen.fillRect(box.left, top + high * 0.64, Math.max(1, box.width * each.share), high * 0.18);
      }
      pen.globalAlpha = 1;
    };

    photograph();
    classes();
  };
