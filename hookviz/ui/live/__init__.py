"""Show the page while a camera's frames run through the network, and lead to one frame and back.

What is drawn of a frame, and how frames travel, is in `hookviz.live` and `hookviz.ui.serving`.
"""
