"""Attribution: which parts of an input or of a layer a target depends on.

`target` is what is explained. `gradients` has its gradients, `batched_passes` its value on many
inputs; the other modules are methods. Changes of a network's own parts belong into `patching`.
"""
