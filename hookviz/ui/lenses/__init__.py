"""Show a lens on the page: its controls made from its declaration, its run, its panels.

No lens is named here: all of them are shown by what they declare.
"""
