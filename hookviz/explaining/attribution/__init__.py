"""Attribution: which parts of an input or of a layer a target depends on.

`target` is the number that is explained. `gradients` has its gradients, `batched_passes` its value
on many inputs, `methods` the formulas. Changes of a network's own parts belong into `patching`.
"""
