// What the explorer has around it in the app, as a whole or as its rows alone: the address, the line to
// the server, the place of its tree, and the keys that came early.

import { forLink } from "../../explorer/client/link.js";
import { isBusy, wire } from "./explorer_wire.js";

/**
 * @param {() => any} current what the page's last run handed over
 * @param {(name: string, value: unknown) => void} tell the page, which runs
 */
export const around = (current, tell) => ({
  ask: wire(current, { run: () => tell("opened", { anew: true }), isBusy }).ask,
  treeElement: window.hookvizTree ?? null,
  early: () => {
    if (!window.hookviz) return [];
    Object.assign(window.hookviz, { ready: true, turns: true });
    return window.hookviz.take();
  },
  /**
   * A choice is one entry in the browser's history.
   * @param {Record<string, string>} view
   * @param {"push" | "replace"} how
   * @param {string[]} words
   */
  changed: (view, how, words) => window.hookvizWrite(forLink(view, words, location.search), how),
});

/**
 * Follow the tree's place on the page; returns what ends it.
 * @param {{tree: (element: HTMLElement | ShadowRoot | null) => void}} mounted
 */
export const followTree = (mounted) => {
  const stand = () => mounted.tree(window.hookvizTree ?? null);
  document.documentElement.addEventListener("hookviz:tree", stand);
  return () => {
    document.documentElement.removeEventListener("hookviz:tree", stand);
    if (window.hookviz) window.hookviz.turns = false;
  };
};
