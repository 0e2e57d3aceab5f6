"""How each live part of `hookviz.lessons.parts` looks: a file of the same name with ``show``.

``show(scene: Scene, options: Options, key: str) -> None`` draws it with the explorer's components;
`key` is unique on the page, for the keys of widgets and of ``st.session_state``.
"""
