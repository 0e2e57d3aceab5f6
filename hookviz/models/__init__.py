"""Which networks there are, and with which weights they are loaded.

Catalog, checkpoints, class names, a person's own networks. What a network computes is
`hookviz.capturing`'s. Imports hooking and the top files.
"""
