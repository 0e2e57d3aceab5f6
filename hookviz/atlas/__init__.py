"""What excites each channel over many images: one pass over them, kept in a file, and read back.

An atlas belongs to one network and one set of images. Imports capturing, explaining, hooking,
images and the top files; drawing and the screen know it, and not the other way round.
"""
