"""The live parts of lessons, a file each: what can be set, and the facts that a text can name.

How a part looks on the page is in the file of the same name in `hookviz.ui.lessons.parts`.
"""
