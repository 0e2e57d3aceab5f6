"""Explain where a number comes from: receptive fields, the sum behind a cell, gradients, ablations.

Numbers in, numbers out; pictures of them are made by `hookviz.drawing` and the lenses. Imports
capturing, hooking and the top files.

- Attribution: `attribution_target` is what is explained; `gradient_pass` and `attribution` compute
  its gradients; `cam`, `score_cam`, `integrated_gradients` and `occlusion` are methods, with
  `baselines` for what is hidden and `batched_passes` for many inputs.
- Receptive fields: `receptive_field`; the rule of a torch function is in `receptive_conv_pool` or
  `receptive_reshape`, and is chosen in `receptive_rules`.
- Ablation and pruning: `channel_ablation`, `channel_mask`; `pruning` chooses weights,
  `pruned_network` sets them to 0, `compacted_model` removes channels by `pruning_groups`.
- Patching: `patching` puts activations of one image into a pass over another, part by part
  (`layer_parts`), and `attribution_patching` estimates it; `part_changes` runs the passes, and
  those of ablation.
- One layer: `layer_recorder` and `cell_sum` (its arithmetic), `norm_call`, `layer_io`,
  `layer_facts`, `layer_description`, `layer_health`, `ranking` of its input channels,
  `linear_probe`.
- One pass: `execution_trace`, `recomputation`, `weight_gradients`.
"""
