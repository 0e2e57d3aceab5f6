"""Attention: the weights of the layers that attend, and where on the image their tokens lie.

How calls of attention are observed in a pass is in `hookviz.hooking`.
"""
