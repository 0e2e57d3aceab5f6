"""The map of a network: a pass followed from layer to layer, its layout, and what a class needs.

Pictures of the map are made by `hookviz.drawing`; its interactive form is `hookviz.explorer`'s.
"""
