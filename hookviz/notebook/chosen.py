"""Traits of what is chosen in a widget: a view as a link has it, and a cell."""

from collections.abc import Mapping
from typing import Any

import traitlets

from hookviz.errors import one_of
from hookviz.explorer.view import View, choices
from hookviz.language.saying import say


class ViewTrait(traitlets.TraitType[View, View | Mapping[str, object]]):
    """A `View`; given as one, or as the words of a link: ``{"layer": "conv1", "sort": "mean"}``."""

    default_value = View()
    info_text = "a View, or the words of a link"

    def validate(self, obj: Any, value: Any) -> View:
        """Return the view.

        Raises:
            SettingError: a word is none that a link has; the message has the nearest.
            TraitError: it is neither a view nor words.
        """
        if not isinstance(value, View | Mapping):
            self.error(obj, value)
        return as_view(value)


def as_view(given: View | Mapping[str, object]) -> View:
    """Return a view, or that of a link's words, whose values may be numbers, too.

    Raises:
        SettingError: a word is none that a link has, or none of its values; it has the nearest.
    """
    if isinstance(given, View):
        return given
    words = {choice.word: choice for choice in choices().values() if not choice.is_page}
    link = {}
    for word, value in given.items():
        values = words[one_of(say("choice"), word, words)].values
        if value is None:
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        link[word] = text if values is None else one_of(word, text, values)
    return View.of_link(link)


def to_client(view: View, _widget: object) -> dict[str, str]:
    """Write a view as its client has it: a link's words, without those of a page around."""
    pages = {choice.word for choice in choices().values() if choice.is_page}
    return {word: text for word, text in view.link().items() if word not in pages}


def from_client(words: Any, _widget: object) -> View:
    """Read a view of the client's, which can be anything."""
    if not isinstance(words, Mapping):
        return View()
    return View.of_link({str(word): text for word, text in words.items() if isinstance(text, str)})
