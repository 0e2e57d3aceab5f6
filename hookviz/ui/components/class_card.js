// The card of a question to the class: what is asked, the bars of the answers, what is right. It
// is the same on the screens of all; a pupil's has the buttons to answer, the teacher's those to go on.

import { make } from "../../explorer/client/shared.js";

export const CARD = `
  <section class="card" hidden><details open>
    <summary></summary>
    <div class="asked">
      <div class="riddle" hidden>
        <div class="patches" role="img"></div>
        <figure class="map" hidden><img alt=""><figcaption></figcaption></figure>
      </div>
      <div class="replies">
        <div class="answers" role="group"></div>
        <form class="guess" hidden><input type="text" maxlength="40" autocomplete="off"><button></button></form>
        <ol class="tally"></ol>
        <p class="voted" role="status"></p>
        <p class="points" role="status"></p>
        <div class="end"></div>
      </div>
    </div>
  </details></section>`;

// A sentence with its facts in place of the names in braces.
export const filled = (sentence, facts) => sentence.replace(/\{(\w+)\}/g, (whole, name) => facts[name] ?? whole);

const percent = (share, language) => share.toLocaleString(language, { style: "percent" });

// Which answers are right, by what is told of it: nothing before that.
const isRight = (question, index) => question.right === index;

// The names of a riddle, as this screen says them.
export const saidOf =
  (question, { names }) =>
  (answer) =>
    (question.game && names[answer]) || answer;

const row = (words, right, mine, texts, track) => {
  const said = make("span", {}, words);
  if (mine) said.append(make("i", {}, texts.mine));
  const item = make("li", { className: right ? "right" : "" }, said, ...track);
  if (right) said.prepend(make("span", { className: "sign-right", role: "img", ariaLabel: texts.right }, "✓"));
  return item;
};

const bars = (question, data, shows) => {
  const texts = data.words;
  const said = saidOf(question, data);
  const most = Math.max(1, ...question.tally);
  return question.answers.map((answer, index) => {
    const count = question.tally[index];
    if (!shows) return row(said(answer), false, false, texts, [make("span"), make("b")]);
    const bar = make("span", { className: "part", style: `width: ${(100 * count) / most}%` });
    const track = make("span", { className: "track" }, bar);
    const mine = question.mine === index;
    return row(said(answer), isRight(question, index), mine, texts, [track, make("b", {}, String(count))]);
  });
};

const written = (question, texts, onMark) =>
  question.texts.map(([text, count, right]) => {
    const number = make("b", {}, String(count));
    if (!onMark || question.phase !== "closed") return row(text, right, false, texts, [make("span"), number]);
    const onclick = () => onMark(text);
    const button = make("button", { type: "button", className: "pick", "aria-pressed": right, onclick }, text);
    return make("li", {}, button, make("span"), number);
  });

// Pictures come once, apart from what changes with each vote.
const showPictures = (find, question, pictures, data) => {
  const theirs = question.game && pictures?.number === question.number ? pictures : null;
  find(".riddle").hidden = !theirs;
  if (!theirs) return find(".patches").replaceChildren();
  const patches = find(".patches");
  patches.setAttribute("aria-label", data.words.patches);
  if (patches.dataset.number !== String(question.number)) {
    patches.dataset.number = question.number;
    patches.replaceChildren(...theirs.patches.map((src) => make("img", { src, alt: "" })));
  }
  const where = question.where;
  find(".map").hidden = !(theirs.map && where);
  if (!theirs.map || !where) return;
  const colours = data.words.colours;
  const facts = { ...where, above: colours[where.above], below: colours[where.below] };
  const said = filled(where.signed ? data.words.signed : data.words.where, facts);
  find(".map img").src = theirs.map;
  find(".map img").alt = said;
  find(".map figcaption").textContent = said;
};

/**
 * Draws a question as it stands.
 * @param {(selector: string) => any} find
 * @param {any} question
 * @param {{data: any, pictures: any, points: any, share: number | null, shows?: boolean, onMark?: (text: string) => void}} around
 *   words and language; pictures; a pupil's points; the class's share; whether votes are shown that come in;
 *   what marks an answer in somebody's own words as right
 */
export const drawQuestion = (find, question, { data, pictures, points, share, shows = true, onMark }) => {
  const { words, language } = data;
  find(".card").classList.toggle("game", question.game);
  find(".card").dataset.phase = question.phase;
  find("summary").textContent = question.game ? filled(words.guess, question) : question.words;
  showPictures(find, question, pictures, data);
  const isOpen = question.phase === "open";
  const tally = question.tally ? bars(question, data, shows) : [];
  find(".tally").replaceChildren(...tally, ...(question.texts ? written(question, words, onMark) : []));
  find(".tally").hidden = !find(".tally").children.length;
  const scores = [];
  if (question.game && !isOpen && points?.answered) scores.push(filled(words.you, points));
  if (question.game && question.phase === "revealed" && share !== null && share !== undefined) {
    scores.push(filled(words.all, { share: percent(share, language) }));
  }
  find(".points").textContent = scores.join(words.and);
};
