"""List the networks that there are, and load them with their weights.

Catalog, checkpoints, class names, a person's own networks. What a network computes is
`hookviz.capturing`'s. Imports hooking and the top files.
"""
