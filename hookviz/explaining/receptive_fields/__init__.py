"""Receptive fields: which pixels of the input a layer's cells depend on.

`receptive_field` has the fields of a network's layers, and `effective_field` the part of a field
that a cell makes use of. The rest traces a pass: `tracer` by `rules`. How a field is drawn does not
belong here.
"""
