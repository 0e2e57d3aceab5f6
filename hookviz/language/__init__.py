"""Translate what people read: sentences are marked in the code, each language is a PO file.

`hookviz.language.saying.say` gives a sentence in the language of whoever it is for, and ``mark``
marks one that is said later; `hookviz.language.naming` says what classes are called. Here belong
the marking, the catalogs and how they are read; not how numbers and sizes are written
(`hookviz.wording`), nor who chooses a language (`hookviz.ui.languages`).
"""
