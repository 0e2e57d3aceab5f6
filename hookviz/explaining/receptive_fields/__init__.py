"""Receptive fields: which pixels of the input a layer's cells depend on.

`receptive_field` traces a pass for the fields of a network's layers, by the `rules` of torch's
functions on each `extent`. How a field is drawn does not belong here.
"""
