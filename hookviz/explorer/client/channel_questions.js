// Buttons that lead from the channel that is picked up to whatever answers a question about it.

/**
 * @typedef {object} ChannelQuestion
 * @property {string} says
 * @property {string} hint
 * @property {boolean} needsWeights whether it can be asked of a convolution's or a linear layer's channel alone
 * @property {Record<string, string>} link words of the link that lead there, with {layer} and {channel}
 */

/**
 * A question's link about one channel.
 * @param {Record<string, string>} link
 * @param {Record<string, unknown>} about
 * @returns {Record<string, string>}
 */
export const linkAbout = (link, about) =>
  Object.fromEntries(
    Object.entries(link).map(([word, text]) => [
      word,
      text.replace(/\{(layer|channel)\}/g, (_, name) => String(about[name])),
    ]),
  );

/**
 * What goes out of a link where another channel is picked up: those that were named in a lens before. The
 * newest choice counts, and where none are named the lens takes the one that is picked up.
 * @param {Pick<ChannelQuestion, "link">[]} questions an empty word of theirs is left to that channel
 * @param {string | URLSearchParams} query
 * @returns {Record<string, null>}
 */
export const namedBefore = (questions, query) => {
  const now = new URLSearchParams(query);
  const left = questions.flatMap(({ link }) => Object.keys(link).filter((word) => !link[word] && now.has(word)));
  return Object.fromEntries(left.map((word) => [word, null]));
};

/**
 * @param {HTMLElement} place
 * @param {ChannelQuestion[]} questions
 * @param {(words: Record<string, string>) => void} go
 */
export const channelQuestions = (place, questions, go) => {
  let about = /** @type {Record<string, any>} */ ({});
  const buttons = questions.map(({ says, hint, link }) => {
    const button = document.createElement("button");
    button.type = "button";
    [button.textContent, button.title] = [says, hint];
    button.onclick = () => go(linkAbout(link, about));
    return button;
  });
  place.replaceChildren(...buttons);
  return {
    show: (/** @type {Record<string, any>} */ next) => {
      about = next;
      questions.forEach(({ needsWeights }, at) => {
        buttons[at].hidden = needsWeights && !about.hasWeights;
      });
    },
  };
};
