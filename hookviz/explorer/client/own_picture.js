// What a channel looks for: a picture that excites it, seen while the network makes it. The link says
// how many steps and which seed, as long as such pictures are wanted.

import { urls } from "./pictures.js";
import { rich } from "./rich.js";
import { frame, say } from "./shared.js";
import { sign } from "./signs.js";

const STEPS = 256; // of a picture, and as many more at a time
const MOST = 2048; // steps in all
const SIDE_BY_SIDE = 16; // channels

const FRAME = `
  <div class="own-picture">
    <button type="button" class="plain make" data-sign="looks"
      title="A picture that excites this channel, made by the network itself in seconds">What does the channel look for?</button>
    <div class="made" hidden>
      <p class="heading"></p>
      <div class="two">
        <div class="place"><img alt=""></div>
        <div>
          <p class="small line-of-it"></p>
          <button type="button" class="stop" data-sign="stop">Stop</button>
          <div class="column offers" hidden>
            <button type="button" class="plain more" data-sign="more" title="Go on from here">More steps</button>
            <button type="button" class="plain another" data-sign="another" title="A picture from another seed">Another</button>
            <button type="button" class="plain random" data-sign="beside"
              title="The same beside it for a network that was never trained, and more settings">Random weights</button>
            <button type="button" class="plain others" data-sign="across"
              title="Pictures of channels as the grid begins, made together"><span></span></button>
            <button type="button" class="plain none" data-sign="close"
              title="Make none for the channels that are picked up">No picture</button>
          </div>
        </div>
      </div>
    </div>
  </div>`;

/**
 * Steps and seed of a link; null where it asks for no picture, or for nonsense.
 * @param {string | null | undefined} text
 * @returns {{steps: number, seed: number} | null}
 */
export const requested = (text) => {
  const found = /^(\d{1,4})-(\d{1,9})$/.exec(text ?? "");
  if (!found || Number(found[1]) < 1 || Number(found[1]) > MOST) return null;
  return { steps: Number(found[1]), seed: Number(found[2]) };
};

/**
 * @param {HTMLElement} parent
 * @param {{
 *   questions: ReturnType<typeof import("./asking.js").newest>,
 *   ask: (question: Facts) => Promise<{facts: Facts}>,
 *   change: (made: string | null) => void,
 *   lens: (link: Record<string, string>) => void,
 * }} heard what asks, what writes the link's word, and what goes to a lens with settings
 */
export function ownPicture(parent, heard) {
  const find = frame(parent, FRAME);
  const [make, made, image, line, stop, offers] = [".make", ".made", "img", ".line-of-it", ".stop", ".offers"].map(
    find,
  );
  const url = urls("image/jpeg");
  let request = { steps: STEPS, seed: 0 };
  let [channel, shown] = [-1, ""];
  /** @type {number[]} */
  let others = [];

  for (const button of parent.querySelectorAll("[data-sign]")) {
    button.insertAdjacentHTML("afterbegin", sign(/** @type {any} */ (button).dataset.sign));
  }
  rich(find(".heading"), [[say("**What the channel looks for**"), ""]]);

  // A button that goes leaves the focus to the one that comes in its place.
  const keepFocus = () => {
    const focused = /** @type {ShadowRoot} */ (parent.getRootNode()).activeElement;
    if (!focused || !parent.contains(focused) || !focused.closest("[hidden]")) return;
    const buttons = /** @type {HTMLButtonElement[]} */ ([stop, find(".more"), find(".another"), make]);
    buttons.find((button) => !button.closest("[hidden]") && !button.disabled)?.focus({ preventScroll: true });
  };
  const ends = (/** @type {boolean} */ isRunning) => {
    stop.hidden = !isRunning;
    offers.hidden = isRunning;
    keepFocus();
  };
  const draw = (/** @type {Facts} */ facts, data) => {
    [image.src, image.alt, image.hidden] = [url.of(data), facts.alt, false];
    [line.textContent, line.title] = [facts.says, facts.how];
  };
  const fails = (/** @type {string} */ words) => {
    stop.hidden = offers.hidden = true;
    line.textContent = words;
  };

  make.onclick = () => heard.change(`${STEPS}-0`);
  find(".none").onclick = () => heard.change(null);
  find(".another").onclick = () => heard.change(`${STEPS}-${request.seed + 1}`);
  find(".more").onclick = () => heard.change(`${Math.min(request.steps + STEPS, MOST)}-${request.seed}`);
  find(".random").onclick = () => closer({ beside_random: "true" });
  find(".others").onclick = () => closer({ of: "channels side by side", channels: others.join(", ") });
  stop.onclick = async () => {
    const [of, { seed }] = [shown, request];
    const isStill = () => shown === of; // what is looked at: another picture goes on
    if (stop.getAttribute("aria-disabled") === "true") return;
    stop.setAttribute("aria-disabled", "true"); // and it keeps the focus
    heard.questions.leave("own_picture");
    try {
      const { facts } = await heard.ask({ name: "stopped", channel, seed });
      if (isStill()) heard.change(facts.steps ? `${facts.steps}-${seed}` : null);
    } catch (error) {
      if (isStill() && /** @type {Error} */ (error).name !== "AbortError") fails(/** @type {Error} */ (error).message);
    }
    stop.removeAttribute("aria-disabled");
  };
  const closer = (/** @type {Record<string, string>} */ settings) =>
    heard.lens({ channel: String(channel), steps: String(request.steps), seed: String(request.seed), ...settings });

  return {
    /**
     * @param {number} picked the channel
     * @param {string | null | undefined} link what the link says of a picture
     * @param {number[]} order the channels as the grid shows them
     * @param {unknown} about what else the picture depends on
     */
    show(picked, link, order, about) {
      const asked = requested(link);
      make.hidden = Boolean(asked);
      made.hidden = !asked;
      others = order.slice(0, SIDE_BY_SIDE);
      find(".others > span").textContent = say("{count} side by side", { count: others.length });
      if (!asked) {
        heard.questions.leave("own_picture");
        shown = "";
        keepFocus();
        return;
      }
      const key = JSON.stringify([picked, asked.seed, about]);
      if (key !== shown) {
        image.hidden = true;
        image.removeAttribute("alt");
        line.textContent = "";
      }
      [request, channel, shown] = [asked, picked, key];
      find(".more").disabled = asked.steps >= MOST;
      ends(true);
      heard.questions.ask({ name: "own_picture", channel, ...asked, others }, about, {
        on: (message) => {
          const facts = message.facts ?? message;
          if (facts.running && message.data?.length) draw(facts, message.data);
          else if (facts.says && !message.data?.length) line.textContent = facts.says; // it waits in the queue
        },
        answered: ({ facts, data }) => {
          if (facts.missing) return fails(facts.missing);
          draw(facts, data);
          ends(false);
        },
        failed: fails,
      });
    },
    end: () => url.end(),
  };
}
