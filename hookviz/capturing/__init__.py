"""One recorded run: what layers put out for an image, kept in a session's cache, and exported.

Drawing and explaining what was recorded belongs to the rooms above. Imports models, images,
hooking and the top files.
"""
