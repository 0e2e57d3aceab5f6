"""Mark the glossary's words where they stand on the page, so that their sentence is a hover away.

A marked word is dotted underlined, reached by Tab, its sentence shown on hover and on focus by
``terms.js``, and read out as its description.
"""

from html import escape

from hookviz.explorer.glossary import WORDS, pieces
from hookviz.language.saying import say
from hookviz.ui.state import plain


def term(word: str, written: str | None = None) -> str:
    """Return HTML for a word that is explained where it stands, for Markdown that allows it.

    Raises:
        KeyError: the glossary has no such word.
    """
    sentence = escape(say(WORDS[word]))
    return (
        f'<span class="hv-term" tabindex="0" role="term" aria-description="{sentence}">'
        f"{escape(written or say(word))}</span>"
    )


def marked(text: str) -> str:
    """Explain the glossary's words in `text`, for Markdown that allows HTML."""
    return "".join(term(word, part) if word else plain(part) for part, word in pieces(text))


def document() -> str:
    """Return the glossary as a page of the documents."""
    rows = "\n".join(f"| {word} | {sentence} |" for word, sentence in WORDS.items())
    return f"# Words\n\nWhat the page says of them where they stand.\n\n| | |\n|---|---|\n{rows}\n"
