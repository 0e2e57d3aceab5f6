"""Compute and draw the live parts of lessons, a file each.

A file declares its part as ``PART``: its options, and the facts of the texts beside it.
``show(scene: LessonScene, options: Options, key: str) -> None`` draws it with components of the
explorer; `key` is unique on the page, for the keys of widgets and of ``st.session_state``.
"""
