"""The code of each lens without HookViz, a file a lens, found by the lens's slug.

Each has a function ``code``, from a `LensRecipe` to `LensCode`. It finds ``model`` in eval mode and
``batch``, ``(1, C, H, W)``, and leaves the numbers in variables. Imports the parts above it alone.
"""
