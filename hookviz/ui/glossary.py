"""The field's words with a plain sentence each, and how one is explained where it stands.

The page marks a word with `term` or `marked`: dotted underlined, reached by Tab, its sentence shown
on hover and on focus by ``terms.js``, and read out as its description.
"""

import re
from functools import cache
from html import escape

from hookviz.ui.state import plain

WORDS = {
    "activation": "What a layer puts out for one image: numbers, a map of them for each channel.",
    "activation function": "A function of single numbers between layers, such as ReLU; without it "
    "all layers together would be no more than one.",
    "batch norm": "It shifts and scales each channel, by a mean and a variance from training, so "
    "that its values stay near zero and about as large as those of the others.",
    "bias": "One learned number for each channel, added to the sum of products in every cell.",
    "cell": "One number of a feature map: a channel's answer at one place of the image.",
    "channel": "One of a layer's detectors; its feature map says where in the image it answers, "
    "and how strongly.",
    "conv layer": "A layer that slides small kernels over its input and puts out a feature map "
    "for each.",
    "dead channel": "A channel whose map has the same value everywhere, so that it says nothing "
    "about this image.",
    "depthwise": "Each channel has one input of its own, instead of a sum over all of them.",
    "dilation": "How far apart the kernel's weights touch the input; 1 is side by side.",
    "feature map": "A channel's answers at every place of the image, as a picture.",
    "groups": "The channels are split into so many parts, and each sees its own part of the input.",
    "kernel": "The small grid of learned weights that slides over the input; where the input looks "
    "like it, the answer is large.",
    "max pooling": "It keeps the largest of each small patch of a map, which gets smaller by it.",
    "multiply-adds": "How many multiplications, each with an addition, it takes for one image.",
    "norm": "How large weights are all together: the root of the sum of their squares.",
    "padding": "What is put around the input, mostly zeros, so that the kernel can reach its edge.",
    "receptive field": "The part of the image that one cell sees; it grows from layer to layer.",
    "ReLU": "It keeps what is above zero and turns everything below into zero.",
    "stride": "How many cells the kernel moves at each step; with 2 the map gets half as wide.",
    "top-5 probability": "How sure the network is of its five likeliest classes; over all classes "
    "the shares add up to 100 %.",
    "weights": "The numbers that a network has learned in training.",
}
"""Each word, in the order of the alphabet, and what it means."""

_WRITTEN = {
    "batch norm": r"batch norm|BatchNorm\dd",
    "channel": "channels?",
    "conv layer": "conv layers?|convolution",
    "max pooling": r"max pooling|MaxPool\dd",
    "multiply-adds": "multiply-adds",
    "receptive field": "receptive field|sees (?:the whole image|[\\d×]+ px)|what the cell sees",
    "kernel": "kernel",
}
"""How a word is written on the page, where not as it stands."""


def term(word: str, written: str | None = None) -> str:
    """HTML for a word that is explained where it stands, for Markdown that allows it.

    Raises:
        KeyError: the glossary has no such word.
    """
    return (
        f'<span class="hv-term" tabindex="0" role="term" aria-description="{escape(WORDS[word])}">'
        f"{escape(written or word)}</span>"
    )


def pieces(text: str) -> list[tuple[str, str]]:
    """`text` cut up into (part, word): the first time that a word stands in it, and ``""`` between.

    >>> pieces("bias 0.5, and a bias")
    [('bias', 'bias'), (' 0.5, and a bias', '')]
    """
    parts, start, met = list[tuple[str, str]](), 0, set[str]()
    for found in _pattern().finditer(text):
        word = _longest_first()[(found.lastindex or 1) - 1]
        if word in met:
            continue
        met.add(word)
        parts += [(text[start : found.start()], ""), (found[0], word)]
        start = found.end()
    return [part for part in (*parts, (text[start:], "")) if part[0]]


def marked(text: str) -> str:
    """`text` as it stands, for Markdown that allows HTML, with the glossary's words explained."""
    return "".join(term(word, part) if word else plain(part) for part, word in pieces(text))


def document() -> str:
    """The glossary as a page of the documents."""
    rows = "\n".join(f"| {word} | {sentence} |" for word, sentence in WORDS.items())
    return f"# Words\n\nWhat the page says of them where they stand.\n\n| | |\n|---|---|\n{rows}\n"


@cache
def _pattern() -> re.Pattern[str]:
    """A group for each word in turn."""
    groups = [f"({_WRITTEN.get(word, re.escape(word))})" for word in _longest_first()]
    return re.compile(rf"(?<!\w)(?:{'|'.join(groups)})(?!\w)", re.IGNORECASE)


@cache
def _longest_first() -> list[str]:
    return sorted(WORDS, key=len, reverse=True)
