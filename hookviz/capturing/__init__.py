"""Record what layers put out for an image, keep it in a session's cache, and export it.

Drawing and explaining what was recorded belongs to the packages above. Imports models, images,
hooking and the top files.
"""
