"""What a layer's vectors tell: classes by a linear probe, and an image's nearest neighbours.

The vectors themselves are computed in `hookviz.capturing`.
"""
