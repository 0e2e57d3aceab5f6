// The way to the kernel and back: a question is a message over the widget's comm, and so is each word about
// it. While a cell runs the kernel hears nothing, and one that was started anew never answers.

import { say } from "../explorer/client/shared.js";

const PATIENCE = 1000; // milliseconds without a word after which the kernel is busy
const NOTHING = new Uint8Array(0);

const bytesOf = (/** @type {DataView[]} */ [file]) =>
  file ? new Uint8Array(file.buffer, file.byteOffset, file.byteLength) : NOTHING;

/**
 * Asks the kernel; the subject of a question is its colours, a space and the widget's key.
 * @param {{send: (message: any) => void, on: (event: string, heard: any) => void,
 *   off: (event: string, heard: any) => void}} model the widget's other half, as anywidget hands it over
 * @param {(words: string) => void} notice shows once what keeps every question from its answer; nothing any more
 */
export const kernelWire = (model, notice) => {
  const mine = Math.random().toString(36).slice(2); // a widget can be seen twice, over one comm
  let count = 0;
  let isGone = false;
  /** @type {Map<string, (kind: string, facts: Facts, data: Uint8Array<ArrayBuffer>) => void>} */
  const open = new Map();
  const gone = (/** @type {boolean} */ is) => {
    isGone = is;
    notice(is ? say("The kernel was restarted: run this cell again to go on.") : "");
  };

  // What the kernel answered before it was asked, of the newest key: so a loop that trains is seen while it runs.
  /** @type {Map<string, {facts: Facts, data: Uint8Array<ArrayBuffer>}>} */
  const ahead = new Map();
  let aheadOf = "";

  const heard = (/** @type {any} */ message, /** @type {DataView[]} */ buffers) => {
    if (isGone) gone(false);
    if (message.kind === "ahead") {
      const { question, view, subject, theme, facts } = message;
      if (subject !== aheadOf) ahead.clear();
      aheadOf = subject;
      const answer = { facts, data: /** @type {any} */ (bytesOf(buffers)) };
      ahead.set(JSON.stringify([question, view, subject, theme]), answer);
    }
    open.get(message.number)?.(message.kind, message.facts, /** @type {any} */ (bytesOf(buffers)));
  };
  const cut = () => gone(true);
  const tell = (/** @type {any} */ message) => {
    try {
      model.send(message);
      return true;
    } catch {
      return false; // its comm is closed
    }
  };
  model.on("msg:custom", heard);
  model.on("comm_live_update", cut);

  /** @type {import("../explorer/client/explorer.js").Surroundings["ask"]} */
  const ask = (question, { signal, view, subject, on }) =>
    new Promise((done, fail) => {
      const number = `${mine}-${count++}`;
      const [theme, key] = subject.split(" ");
      const trouble = () => {
        if (isGone) return;
        const says = say("The kernel is busy: this is answered when its cell has run.");
        on({ facts: { kind: "trouble", says }, data: NOTHING });
      };
      const timer = setTimeout(trouble, PATIENCE);
      const over = () => {
        clearTimeout(timer);
        open.delete(number);
        signal.removeEventListener("abort", leave);
      };
      // Nobody says why: another question is newer, or the notice says it for all of them.
      const end = () => {
        over();
        fail(new DOMException("no answer is waited for", "AbortError"));
      };
      const leave = () => {
        tell({ leave: number });
        end();
      };
      if (signal.aborted) return leave();
      const known = ahead.get(JSON.stringify([question, view, key, theme]));
      if (known) {
        over();
        return done(known);
      }
      signal.addEventListener("abort", leave);
      open.set(number, (kind, facts, data) => {
        clearTimeout(timer);
        if (kind === "answer" || kind === "refused") over();
        if (kind === "answer") done({ facts, data });
        else if (kind === "refused") fail(new Error(facts.says));
        else if (kind === "heard")
          on({ facts: { kind: "waits", says: "" }, data: NOTHING }); // no more
        else on({ facts: { ...facts, kind }, data });
      });
      if (tell({ ask: number, question, view, subject: key, theme })) return;
      gone(true);
      end();
    });

  return {
    ask,
    end: () => {
      model.off("msg:custom", heard);
      model.off("comm_live_update", cut);
    },
  };
};
