"""Pruning: which weights are set to 0, the network with them, and a smaller one without them.

Channels that are masked for one look belong into `patching`.
"""
