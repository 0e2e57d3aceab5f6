"""Compare two of a kind: maps, captures, and networks over many images.

Numbers in, numbers out; pictures of them are made by `hookviz.drawing`. Imports drawing,
capturing, hooking and the top files. What one activation alone tells belongs into `explaining`.
"""
