"""Declare the live parts of lessons, a file each: their options, and the facts of their texts.

How a part looks on the page is in the file of the same name in `hookviz.ui.lessons.parts`.
"""
