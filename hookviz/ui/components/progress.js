// What of the lessons was done, kept in this browser alone: of each the steps that were seen and the
// questions that were answered. It is put before the components that show it.

const PROGRESS = "hookviz-lessons";

export const progressOf = (slug) => {
  try {
    const kept = JSON.parse(localStorage.getItem(PROGRESS) ?? "{}")[slug] ?? {};
    return { seen: new Set(kept.seen ?? []), answered: new Set(kept.answered ?? []) };
  } catch {
    return { seen: new Set(), answered: new Set() }; // who keeps nothing begins anew each time
  }
};

export const keepProgress = (slug, { seen, answered }) => {
  try {
    const kept = JSON.parse(localStorage.getItem(PROGRESS) ?? "{}");
    kept[slug] = { seen: [...seen], answered: [...answered] };
    localStorage.setItem(PROGRESS, JSON.stringify(kept));
  } catch {
    /* as above */
  }
};

const ANSWERS = "hookviz-answers";

const answers = () => {
  try {
    return JSON.parse(localStorage.getItem(ANSWERS) ?? "{}");
  } catch {
    return {};
  }
};

// The position of the answer that was picked last, of a question by its key.
export const answerOf = (question) => answers()[question];

export const keepAnswer = (question, position) => {
  try {
    localStorage.setItem(ANSWERS, JSON.stringify({ ...answers(), [question]: position }));
  } catch {
    /* as above */
  }
};
