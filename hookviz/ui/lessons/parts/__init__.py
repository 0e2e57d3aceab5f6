"""Compute and draw the live parts of lessons, a file each.

A file declares ``PART``, with the part's options and the facts for the text beside it, and
``show(scene: LessonScene, options: Options, key: str) -> None``, which draws it; `key` is unique on
the page, for the keys of widgets and of ``st.session_state``.
"""
