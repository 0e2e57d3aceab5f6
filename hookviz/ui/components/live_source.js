// Where frames come from: the camera, or a video file that this browser plays. Both have
//   picture()     what can be drawn now, or null; its size is (width, height)
//   count         how many different pictures there have been
//   onpicture     called at each
//   player        null of a camera; else { length, at, paused, unit, toggle, seek, step }
//   stop()        lets go of the camera, or of the file

import { openAnimation } from "./live_animation.js";
import { CAMERA_TROUBLES, Trouble } from "./live_words.js";

const SHARP = 1280; // pixels across of a camera that fills the window

const followVideo = (video, source) => {
  let on = true;
  let last = 0;
  const seen = (/** @type {any} */ _now = 0, /** @type {any} */ meta = null) => {
    if (!on) return;
    const gap = meta ? meta.mediaTime - last : 0;
    if (gap > 0.004 && gap < 0.2) source.gap = gap; // of two frames that follow each other
    last = meta?.mediaTime ?? last;
    source.count += 1;
    source.onpicture?.();
    wait();
  };
  const wait = () =>
    video.requestVideoFrameCallback
      ? video.requestVideoFrameCallback(seen)
      : setTimeout(() => (video.readyState >= 2 && !video.paused ? seen() : on && wait()), 33);
  wait();
  source.picture = () => (video.readyState >= 2 && video.videoWidth ? video : null);
  Object.defineProperty(source, "width", { get: () => video.videoWidth });
  Object.defineProperty(source, "height", { get: () => video.videoHeight });
  return () => (on = false);
};

export const openCamera = async (video, device, pixels) => {
  if (!navigator.mediaDevices?.getUserMedia) throw new Trouble("insecure");
  const which = device ? { deviceId: { exact: device } } : { facingMode: "user" };
  const size = { width: { ideal: pixels }, frameRate: { ideal: 30 } };
  const ask = (wanted) => navigator.mediaDevices.getUserMedia({ video: { ...wanted, ...size } });
  let stream;
  try {
    stream = await ask(which);
  } catch (error) {
    const { name, message } = /** @type {Error} */ (error);
    const gone = device && ["NotFoundError", "OverconstrainedError"].includes(name);
    stream = gone ? await ask({ facingMode: "user" }).catch(() => null) : null;
    if (!stream) throw new Trouble(CAMERA_TROUBLES[name] ?? "broken", message);
  }
  const source = { count: 0, player: null };
  const [track] = stream.getVideoTracks();
  track.onended = () => source.onend?.();
  source.device = track.getSettings().deviceId;
  const leave = followVideo(video, source);
  source.stop = () => {
    leave();
    track.onended = null;
    for (const each of stream.getTracks()) each.stop();
    if (video.srcObject === stream) video.srcObject = null;
  };
  // More pixels where the picture is as large as the window; a camera that has none goes on as it is.
  source.sharpen = (on) => track.applyConstraints({ ...size, width: { ideal: on ? SHARP : pixels } }).catch(() => {});
  video.srcObject = stream;
  video.play().catch(() => {}); // where another one takes its place meanwhile
  return source;
};

const openVideo = async (video, file, start = 0) => {
  const url = URL.createObjectURL(file);
  const source = { count: 0, gap: 1 / 30 };
  const happened = (name) =>
    new Promise((done, fail) => {
      video.addEventListener(name, done, { once: true });
      video.addEventListener("error", () => fail(new Trouble("video", video.error?.message)), {
        once: true,
      });
    });
  video.srcObject = null;
  const ready = happened("loadeddata");
  video.src = url;
  video.loop = true;
  try {
    await ready;
    if (!video.videoWidth) throw new Trouble("video"); // a film without a picture
  } catch (error) {
    video.removeAttribute("src");
    URL.revokeObjectURL(url);
    throw error;
  }
  if (!Number.isFinite(video.duration)) {
    // as MediaRecorder writes them: the end has to be looked for
    const found = happened("seeked");
    video.currentTime = 1e7;
    await found;
  }
  if (video.currentTime !== start) {
    const there = happened("seeked");
    video.currentTime = start;
    await there;
  }
  const leave = followVideo(video, source);
  source.player = {
    unit: "s",
    get length() {
      return Number.isFinite(video.duration) ? video.duration : video.currentTime;
    },
    get at() {
      return video.currentTime;
    },
    get paused() {
      return video.paused;
    },
    toggle: () => (video.paused ? video.play().catch(() => {}) : video.pause()),
    seek: (to) => (video.currentTime = Math.max(0, Math.min(source.player.length, to))),
    step: (by) => {
      video.pause();
      source.player.seek(video.currentTime + by * source.gap);
    },
  };
  source.stop = () => {
    leave();
    video.pause();
    video.removeAttribute("src");
    video.load();
    URL.revokeObjectURL(url);
  };
  video.play().catch(() => {});
  return source;
};

export const openFile = (video, file, at) =>
  file.type === "image/gif" || /\.gif$/i.test(file.name) ? openAnimation(file, at) : openVideo(video, file, at);
