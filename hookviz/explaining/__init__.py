"""Where a number comes from: receptive fields, the sum of a cell, gradients, attribution.

Numbers in, numbers out; pictures of them are made by `hookviz.drawing` and the lenses. Imports
capturing, hooking and the top files.
"""
