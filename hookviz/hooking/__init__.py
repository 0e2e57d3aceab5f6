"""See or change one pass of a network, on a private replica: the one home of hooks.

What is done with what a hook sees belongs to the rooms above. Imports the top files.
"""
