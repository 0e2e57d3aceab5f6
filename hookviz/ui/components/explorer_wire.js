// The way to the server and back: a question is a request, and what comes back are messages. A line that
// is cut is tried again; a session that is gone is begun anew by the link.

import { messageReader } from "../../explorer/client/messages.js";
import { say } from "../../explorer/client/shared.js";

const FIRST_PAUSE = 500; // milliseconds until a request is tried again, twice as long each time
const LONGEST_PAUSE = 8000;
const PATIENCE = 4000; // milliseconds in which the page hands over another session or subject by itself
const AGAIN = 2000; // milliseconds until a run that did not begin is asked for again
const RELOADED = "hookviz-reloaded"; // in the tab's storage: when the page was last loaded anew for this
const MOST_RESTARTS = 12; // times that a server which is started again is waited for: a minute and a half
const SELDOM = 60000; // milliseconds between two of those
const NOTE = 100; // milliseconds after a choice in which a question would tell of it
const SILENCE = 60000; // milliseconds without a word, after which the line is taken for cut

// A line that says nothing for long is cut, though nobody has told the browser.
const silence = (/** @type {AbortSignal} */ signal) => {
  const ends = new AbortController();
  const end = () => ends.abort();
  signal.addEventListener("abort", end);
  let timer = setTimeout(end, SILENCE);
  return {
    signal: ends.signal,
    heard: () => {
      clearTimeout(timer);
      timer = setTimeout(end, SILENCE);
    },
    over: () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
    },
  };
};

const ABORTED = () => new DOMException("another question is newer", "AbortError");

/**
 * Wait, unless it is aborted.
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 */
const pause = (milliseconds, signal) =>
  new Promise((done, fail) => {
    const stop = () => {
      clearTimeout(timer);
      fail(ABORTED());
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      done(undefined);
    }, milliseconds);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
  });

// Load the page anew by its link, which brings back what was chosen; not again and again.
const reload = () => {
  let last = 0;
  try {
    last = Number(sessionStorage.getItem(RELOADED) ?? 0);
    if (Date.now() - last > SELDOM) {
      sessionStorage.setItem(RELOADED, String(Date.now()));
      location.reload();
      return true;
    }
  } catch {
    /* who keeps nothing loads it by hand */
  }
  return false;
};

const isCut = () => say("The line to the server is cut. Trying again…");

// What the server said in words, or else what it means.
const wordsOf = async (response) => {
  try {
    return (await response.json()).says;
  } catch {
    return say("The server refused this ({status}).", { status: response.status });
  }
};

/**
 * The messages of an answer as they come, and the last one.
 * @param {Response} response
 * @param {(message: any) => void} on
 * @param {() => void} heard that the line is not cut
 */
const read = async (response, on, heard) => {
  /** @type {any} */
  let last = null;
  const reader = messageReader((message) => {
    if (message.facts.kind === "waits" || message.facts.kind === "progress" || message.facts.kind === "partial")
      on(message);
    else last = message;
  });
  const stream = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  for (let part = await stream.read(); !part.done; part = await stream.read()) {
    heard();
    reader.push(part.value);
  }
  if (!last) throw new TypeError("cut off");
  return last;
};

/** Whether the page can't be run now: it runs, or its line is cut. */
export const isBusy = () => {
  const app = /** @type {HTMLElement | null} */ (document.querySelector("[data-testid=stApp]"));
  return app?.dataset.testScriptState === "running" || app?.dataset.testConnectionState !== "CONNECTED";
};

/**
 * Asks the server; `current()` says where, by which token and about which subject, as the page's last
 * run handed them over.
 * @param {() => {path: string, token: string, language: string, subject: string}} current
 * @param {{run: () => void, isBusy: () => boolean, said: () => {fragment: string, number: number}}} page runs
 *   again, unless it runs or has no line, and says what stands in its address
 */
export const wire = (current, page) => {
  let ran = -Infinity; // when the page was last asked to run
  // A run of the page that is on its way brings another token or subject; until then nothing is asked.
  // Where another server took this one's place none is on its way, and the page has its choices still.
  const another = async (before, status, signal) => {
    const same = () => current().token === before.token && current().subject === before.subject;
    for (let idle = 0; same() && idle < PATIENCE; idle = page.isBusy() ? 0 : idle + 100) {
      if (status === 410 && !page.isBusy() && performance.now() - ran > AGAIN) {
        ran = performance.now();
        page.run();
      }
      await pause(100, signal);
    }
    return !same();
  };

  // The server is told with each question what the address says. A choice that asks nothing is told by itself,
  // for the page's menus.
  let [told, timer] = ["", 0];
  const tell = () => {
    const said = page.said();
    told = said.fragment;
    return said;
  };
  /** @param {string} route @param {Facts} facts @param {AbortSignal} [signal] */
  const post = (route, facts, signal) => {
    const { path, token, language } = current();
    return fetch(`${path}${route}?${new URLSearchParams({ token, lang: language })}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ...facts, address: tell() }),
      signal,
    });
  };
  const note = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (page.said().fragment !== told) post("/address", {}).catch(() => {});
    }, NOTE);
  };

  const ask = async (question, { signal, view, subject, on }) => {
    const trouble = (says) => on({ facts: { kind: "trouble", says }, data: new Uint8Array(0) });
    let restarts = 0;
    for (let wait = FIRST_PAUSE; ; wait = Math.min(LONGEST_PAUSE, 2 * wait)) {
      const before = current();
      /** @type {Response} */
      let response;
      const line = silence(signal);
      try {
        response = await post("", { subject, view, question }, line.signal);
        if (response.ok) {
          const { facts, data } = await read(response, on, line.heard);
          if (facts.kind !== "refused") return { facts, data };
          response = Response.json({ says: facts.says }, { status: facts.status });
        }
      } catch (error) {
        if (signal.aborted) throw ABORTED();
        if (!(error instanceof TypeError || line.signal.aborted)) throw error; // what is no line is a bug
        trouble(isCut());
        await pause(wait, signal);
        continue;
      } finally {
        line.over();
      }
      const { status } = response;
      const words = await wordsOf(response);
      if (status === 429) {
        trouble(words);
        await pause(Math.max(wait, 1000 * (Number(response.headers.get("Retry-After")) || 1)), signal);
      } else if ((status === 503 && (restarts += 1) <= MOST_RESTARTS) || status === 502 || status === 504) {
        trouble(status === 503 ? words : isCut()); // the others are a proxy's that has no server now
        await pause(wait, signal);
      } else if (status === 410 || status === 409) {
        if (current().subject !== subject) throw ABORTED(); // it is asked for anew of that one
        trouble(status === 409 ? words : isCut());
        if (await another(before, status, signal)) {
          if (current().subject !== subject) throw ABORTED();
        } else if (reload()) await pause(LONGEST_PAUSE, signal);
        else throw new Error(words);
      } else throw new Error(words);
    }
  };
  return { ask, note };
};
