"""Class scores of a batch, and how they come about or change: votes, ReLUs off, a changed picture.

Attributions of a score belong into `attribution`, changes of a layer's output into `patching`.
"""
