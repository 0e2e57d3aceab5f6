// The bar of a page that follows its teacher, and the question that the class is asked.
// A new state is gone to as the browser's Back goes: the link changes, and the page follows it.

import { frame, make, unpacked } from "../../explorer/client/shared.js";
import { CARD, drawQuestion, saidOf } from "./class_card.js";
import { CAMERA, seesCamera } from "./class_live.js";
import { makeRoom } from "./class_room.js";
import { keepOfClass, keptOfClass, openClass, tellOfLine } from "./class_wire.js";

const followers = new WeakMap(); // bars and what runs on them

const FOLLOWER = `
  <section class="class">
    <div class="bar">
      <span class="sign" aria-hidden="true"></span>
      <span class="says" role="status"></span>
      <button type="button" class="back" hidden></button>
      <button type="button" class="apart" hidden></button>
      <button type="button" class="leave"><span></span></button>
    </div>${CAMERA}
    ${CARD}
  </section>`;

// The link of who follows: the teacher's choices, and of one's own what nobody shares.
const followedLink = (state, { ofOne, ownImages }) => {
  const now = window.hookvizLink();
  const next = new URLSearchParams(state.query);
  for (const name of ofOne) {
    next.delete(name);
    for (const value of now.getAll(name)) next.append(name, value);
  }
  const own = ownImages.includes(now.get("image") ?? "");
  if (own || !state.sample) {
    next.delete("sample");
    for (const value of now.getAll("sample")) next.append("sample", value);
  }
  return next;
};

const alike = (one, other) => {
  const sorted = (query) => [...query].map(String).sort().join("&");
  return sorted(one) === sorted(other);
};

const followTeacher = (root, find) => {
  /** @type {any} what the server said last, what calls it, the line to the class, and its news */
  let data, trigger, wire, state, question;
  /** @type {any} what of a question comes apart from it */
  let [pictures, points, share] = [null, null, null];
  let [apart, astray, acted] = [false, false, false];
  let lost = ""; // or the word for why
  const [card, answers] = [find(".card"), find(".answers")];

  const camera = seesCamera(find);

  const words = (name) => data.words[name];
  const show = () => {
    const says = apart ? "alone" : "follows";
    find(".says").textContent = words(lost || says);
    root.dataset.state = lost ? "lost" : says;
    tellOfLine(lost !== "");
    if (question) find(".voted").textContent = told();
    find(".back").hidden = !(apart || astray);
    find(".apart").hidden = apart;
  };

  const go = () => {
    astray = acted = false;
    if (!state) return;
    const next = followedLink(state, data);
    if (alike(next, window.hookvizLink())) return;
    window.hookvizGo(next.toString(), "replace");
  };

  // A new question, whose buttons stay while it is open: a vote must not take the focus from them.
  const ask = () => {
    find("details").open = true;
    const offered = question.phase === "open" ? question.answers.map(saidOf(question, data)) : [];
    answers.setAttribute("aria-label", question.game ? words("guess") : question.words);
    answers.replaceChildren(
      ...offered.map((answer, index) => {
        const onclick = () => wire?.say({ vote: index, question: question.number });
        return make("button", { type: "button", onclick }, answer);
      }),
    );
    answers.hidden = !offered.length;
    const form = find("form");
    form.hidden = question.phase !== "open" || question.answers.length > 0;
    form.firstElementChild.value = typeof question.mine === "string" ? question.mine : "";
  };

  const told = () => {
    if (lost) return words(lost);
    const answered = question.mine !== null;
    if (question.phase === "open") {
      if (!question.answers.length) return words(answered ? "sent" : "write");
      return words(answered ? "chosen" : "choose");
    }
    if (question.phase === "closed") return words("closed");
    if (!answered) return words(question.right === null && !question.texts ? "over" : "none");
    if (question.texts) {
      const alike = question.texts.some(([text]) => text.toLowerCase() === question.mine.toLowerCase());
      return words(alike ? "won" : "missed");
    }
    if (question.right === null) return words("over");
    return words(question.mine === question.right ? "won" : "missed");
  };

  const mark = () => {
    for (const [index, button] of [...answers.children].entries()) {
      button.setAttribute("aria-pressed", String(question.mine === index));
    }
    find(".voted").textContent = told();
    drawQuestion(find, question, { data, pictures, points, share });
  };

  const showQuestion = (before) => {
    card.hidden = !question;
    if (question) {
      if (before?.number !== question.number || before?.phase !== question.phase) ask();
      mark();
    }
    makeRoom(question ? card : null);
  };

  const news = (view) => {
    const before = question;
    if ("pictures" in view) pictures = view.pictures;
    if ("points" in view) points = view.points;
    if ("class" in view) share = view.class;
    if ("question" in view) question = view.question;
    if (["question", "pictures", "points", "class"].some((name) => name in view)) showQuestion(before);
    if ("live" in view) camera.kind(view.live);
    if ("state" in view) {
      // What the teacher goes on to once all is revealed, its channel at large, is not covered by it.
      const goesOn = state && view.state && state.query !== view.state.query;
      if (goesOn && question?.game && question.phase === "revealed") find("details").open = false;
      state = view.state;
      if (!apart) go();
    }
    show();
  };

  // What the page says of itself to be counted: whether it shows what the teacher shows.
  const here = () => (document.hidden ? "away" : apart ? "alone" : "follows");

  // A page that was loaded again has another pass, and its vote goes with it.
  const connect = () => {
    const kept = keptOfClass(data.code);
    const before = kept.token === data.token ? "" : (kept.token ?? "");
    keepOfClass({ code: data.code, token: data.token, apart });
    wire = openClass(
      { ...data, before },
      {
        news,
        here,
        frame: camera.frame,
        state: (now, why) => {
          lost = { lost: "lost", full: "full", over: "gone" }[now] ?? "";
          if (now === "over") {
            keepOfClass(null);
            trigger("over", why);
          }
          show();
        },
      },
    );
  };

  const goApart = (chosen) => {
    apart = chosen;
    camera.apart(apart);
    keepOfClass({ code: data.code, token: data.token, apart });
    wire?.say({ here: here() });
    if (!apart) go();
    show();
    find(apart ? ".back" : ".apart").focus();
  };

  // What a pupil does by hand while following: the way back is offered until the teacher goes on.
  const strayed = () => {
    if (!state || apart) return;
    const next = followedLink(state, data);
    astray = acted && !alike(next, window.hookvizLink());
    show();
  };
  const act = (event) => {
    if (!event.composedPath().includes(root)) acted = true;
  };
  const acts = ["pointerdown", "keydown"];

  find("form").onsubmit = (event) => {
    event.preventDefault();
    const text = find("form input").value.trim();
    if (text) wire?.say({ guess: text, question: question.number });
  };
  find(".apart").onclick = () => goApart(true);
  find(".back").onclick = () => goApart(false);
  find(".leave").onclick = () => {
    keepOfClass(null);
    trigger("over", "left");
  };

  // On a phone the menu in which the code was typed lies over all that the class is shown.
  const showThePage = () => {
    if (innerWidth > 768) return;
    /** @type {HTMLElement | null} */
    const close = document.querySelector("[data-testid=stSidebarCollapseButton] [aria-expanded=true]");
    close?.click();
  };

  const stop = () => {
    wire?.close();
    camera.stop();
    makeRoom(null);
    tellOfLine(false);
    removeEventListener("hookviz:link", strayed);
    for (const kind of acts) removeEventListener(kind, act, true);
    followers.delete(root);
  };

  const update = (newest, setTriggerValue) => {
    const other = data && (newest.code !== data.code || newest.token !== data.token);
    const first = !data;
    [data, trigger] = [newest, setTriggerValue];
    if (first) {
      apart = keptOfClass(data.code).apart === true;
      camera.apart(apart);
      addEventListener("hookviz:link", strayed);
      for (const kind of acts) addEventListener(kind, act, true);
      showThePage();
    }
    for (const name of ["apart", "back", "leave span"]) find(`.${name}`).textContent = words(name.split(" ")[0]);
    find(".leave").title = words("leave");
    card.setAttribute("aria-label", words("question"));
    find("form input").setAttribute("aria-label", words("write"));
    find("form input").placeholder = words("write");
    find("form button").textContent = words("send");
    if (other) wire.close();
    if (first || other) connect();
    show();
  };
  return { update, stop };
};

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const find = frame(parentElement, FOLLOWER);
  const root = find(".class");
  let follower = followers.get(root);
  if (!follower) followers.set(root, (follower = followTeacher(root, find)));
  follower.update(unpacked(bytes), setTriggerValue);
  return follower.stop;
}
