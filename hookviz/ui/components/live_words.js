// What is said where a stream does not run: what is wrong, and what to do about it.

const TROUBLES = {
  insecure: [
    "The camera needs https",
    "A browser opens the camera only for pages that come over https, or from this very machine (localhost). Open this page by its https address. A video file plays here all the same.",
  ],
  refused: [
    "The camera was not allowed",
    "This page has no permission for the camera. Allow it by the sign beside the address, or in the browser's settings for this site, and try again. Or play a video file.",
  ],
  none: [
    "There is no camera",
    "This browser finds no camera. Plug one in and try again, or play a video file.",
  ],
  busy: [
    "The camera is in use",
    "Another program or another tab has the camera, or it does not answer. Close what uses it, and try again.",
  ],
  ended: [
    "The camera stopped",
    "It was unplugged, or the permission was taken back. Plug it in or allow it again, and try again.",
  ],
  video: [
    "This file can't be played",
    "This browser can't decode it. MP4 with H.264 and WebM play nearly everywhere; convert it to one of these, and choose it again.",
  ],
  animation: [
    "This browser can't take a GIF apart",
    "It has no ImageDecoder. Chrome, Edge and Opera have one, and so have new versions of Firefox and Safari. Or convert the GIF to MP4 or WebM.",
  ],
  // What the server says comes before these.
  4401: ["The stream is not known any more", "Try again; if that does not help, load the page anew."],
  4403: [
    "The server does not take a stream from this address",
    "Open the page by the address that you were given.",
  ],
  4404: ["Live is switched off here", "Take a photograph with Camera instead, or upload an image."],
  4408: ["The stream ended for want of frames", "Try again, and it goes on."],
  4413: ["A frame was too large", "Choose a smaller input size in the sidebar, and try again."],
  4429: ["Too much at once", "Try again in a minute."],
  gone: [
    "The server can't be reached",
    "It is being started anew, or the network between is down. Try again in a moment.",
  ],
  broken: ["The stream stopped", "Something went wrong in the browser. Try again."],
};

// What keeps the camera from us, by the name of what the browser throws.
const CAMERA_TROUBLES = {
  NotAllowedError: "refused",
  SecurityError: "refused",
  NotFoundError: "none",
  OverconstrainedError: "none",
  NotReadableError: "busy",
  AbortError: "busy",
  TypeError: "insecure",
};

// `kind` is one of TROUBLES, or null where there is none any more; `words` are the server's own.
const showTrouble = (find, kind, words = "") => {
  find(".trouble").hidden = kind === null;
  find(".live").classList.toggle("troubled", kind !== null);
  if (kind === null) return;
  const [title, advice] = TROUBLES[kind] ?? TROUBLES.broken;
  find(".trouble h4").textContent = title;
  find(".trouble p").textContent = [words, advice].filter(Boolean).join(" ");
};

class Trouble extends Error {
  constructor(kind, words = "") {
    super(words);
    this.kind = kind;
  }
}
