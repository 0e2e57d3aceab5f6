"""Find the max-activating images of each channel: one pass over all, kept in a file, read back.

An atlas belongs to one network and one set of images. Imports capturing, explaining, hooking,
images and the top files; drawing and the screen know it, and not the other way round.
"""
