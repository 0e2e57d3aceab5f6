// A GIF as a source of frames, see live_source.js: taken apart by the browser's own ImageDecoder.

import { Trouble } from "./live_words.js";

const SHORTEST = 20; // milliseconds that browsers show a frame at least; 0 means as many as these
const USUAL = 100;

export const openAnimation = async (file, start = 0) => {
  if (!("ImageDecoder" in window)) throw new Trouble("animation");
  const decoder = new ImageDecoder({ data: await file.arrayBuffer(), type: "image/gif" });
  await Promise.all([decoder.tracks.ready, decoder.completed]).catch(() => {}); // decoding says it
  const frames = decoder.tracks.selectedTrack?.frameCount ?? 0;
  /** @type {any} */
  const source = { count: 0 };
  /** @type {VideoFrame | null} */
  let shown = null;
  /** @type {number | undefined} */
  let timer;
  let [at, paused, on] = [0, false, true];
  const show = async (wanted) => {
    clearTimeout(timer);
    at = wanted;
    const { image } = await decoder.decode({ frameIndex: at });
    if (!on || at !== wanted) return image.close(); // another one was asked for meanwhile
    shown?.close();
    shown = image;
    source.count += 1;
    source.onpicture?.();
    const lasts = (image.duration ?? 0) / 1000;
    if (!paused && frames > 1) timer = setTimeout(next, lasts >= SHORTEST ? lasts : USUAL);
  };
  const next = () => show((at + 1) % frames).catch(() => on && source.onend?.());
  source.picture = () => shown;
  Object.defineProperty(source, "width", { get: () => shown?.displayWidth ?? 0 });
  Object.defineProperty(source, "height", { get: () => shown?.displayHeight ?? 0 });
  source.player = {
    unit: "frames",
    length: Math.max(0, frames - 1),
    get at() {
      return at;
    },
    get paused() {
      return paused;
    },
    toggle: () => {
      paused = !paused;
      if (paused) clearTimeout(timer);
      else next();
    },
    seek: (to) => show(Math.max(0, Math.min(frames - 1, Math.round(to)))).catch(() => on && source.onend?.()),
    step: (by) => {
      paused = true;
      source.player.seek((at + by + frames) % frames);
    },
  };
  source.stop = () => {
    on = false;
    clearTimeout(timer);
    shown?.close();
    shown = null;
    decoder.close();
  };
  try {
    if (!frames) throw new Trouble("video");
    await show(Math.min(start, frames - 1));
  } catch (error) {
    source.stop();
    throw new Trouble("video", /** @type {Error} */ (error).message);
  }
  return source;
};
