// What is said where a stream does not run: what is wrong, and what to do about it.

import { say } from "../../explorer/client/shared.js";

// Marked for the catalogs; `showTrouble` says it.
const mark = (text) => text;

export const TROUBLES = {
  insecure: [
    mark("The camera needs https"),
    mark(
      "A browser opens the camera only for pages that come over https, or from this very machine (localhost). Open this page by its https address. A video file plays here all the same.",
    ),
  ],
  refused: [
    mark("The camera was not allowed"),
    mark(
      "This page has no permission for the camera. Allow it by the sign beside the address, or in the browser's settings for this site, and try again. Or play a video file.",
    ),
  ],
  none: [
    mark("There is no camera"),
    mark("This browser finds no camera. Plug one in and try again, or play a video file."),
  ],
  busy: [
    mark("The camera is in use"),
    mark("Another program or another tab has the camera, or it does not answer. Close what uses it, and try again."),
  ],
  ended: [
    mark("The camera stopped"),
    mark("It was unplugged, or the permission was taken back. Plug it in or allow it again, and try again."),
  ],
  video: [
    mark("This file can't be played"),
    mark(
      "This browser can't decode it. MP4 with H.264 and WebM play nearly everywhere; convert it to one of these, and choose it again.",
    ),
  ],
  animation: [
    mark("This browser can't take a GIF apart"),
    mark(
      "It has no ImageDecoder. Chrome, Edge and Opera have one, and so have new versions of Firefox and Safari. Or convert the GIF to MP4 or WebM.",
    ),
  ],
  // What the server says comes before these.
  4401: [mark("The stream is not known any more"), mark("Try again; if that does not help, load the page anew.")],
  4403: [
    mark("The server does not take a stream from this address"),
    mark("Open the page by the address that you were given."),
  ],
  4404: [mark("Live is switched off here"), mark("Take a photograph with Camera instead, or upload an image.")],
  4408: [mark("The stream ended for want of frames"), mark("Try again, and it goes on.")],
  4413: [mark("A frame was too large"), mark("Choose a smaller input size in the sidebar, and try again.")],
  4429: [mark("Too much at once"), mark("Try again in a minute.")],
  gone: [
    mark("The server can't be reached"),
    mark("It is being started anew, or the network between is down. Try again in a moment."),
  ],
  broken: [mark("The stream stopped"), mark("Something went wrong in the browser. Try again.")],
};

// What keeps the camera from us, by the name of what the browser throws.
export const CAMERA_TROUBLES = {
  NotAllowedError: "refused",
  SecurityError: "refused",
  NotFoundError: "none",
  OverconstrainedError: "none",
  NotReadableError: "busy",
  AbortError: "busy",
  TypeError: "insecure",
};

// `kind` is one of TROUBLES, or null where there is none any more; `words` are the server's own.
export const showTrouble = (find, kind, words = "") => {
  find(".trouble").hidden = kind === null;
  find(".live").classList.toggle("troubled", kind !== null);
  if (kind === null) return;
  const [title, advice] = TROUBLES[kind] ?? TROUBLES.broken;
  find(".trouble h4").textContent = say(title);
  const both = { text: words, sentence: say(advice) };
  find(".trouble p").textContent = words ? say("{text} {sentence}", both) : both.sentence;
};

export class Trouble extends Error {
  constructor(kind, words = "") {
    super(words);
    this.kind = kind;
  }
}
