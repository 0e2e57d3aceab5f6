"""Draw each live part of `hookviz.lessons.parts`, in a file of the same name with ``show``.

``show(scene: LessonScene, options: Options, key: str) -> None`` draws it with components of the
explorer; `key` is unique on the page, for the keys of widgets and of ``st.session_state``.
"""
