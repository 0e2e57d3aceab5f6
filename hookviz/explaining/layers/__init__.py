"""One layer: its call recorded and recomputed, its sums, kernels, inputs, health and description.

What several layers have to do with each other belongs into `network_map` or `receptive_fields`.
"""
