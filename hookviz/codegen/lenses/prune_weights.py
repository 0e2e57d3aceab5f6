"""Prune weights: conv weights or whole channels set to 0, more and more of them."""

from hookviz.codegen.lens_facts import LensRecipe
from hookviz.codegen.lens_parts import SCORES_WITHOUT, LensCode, constants, in_order


def code(recipe: LensRecipe) -> LensCode:
    """The scores at growing shares of pruned weights, and a layer's maps at the share to keep."""
    method = recipe.chosen["method"]
    asked = constants(recipe, most="percent of the weights", step="percent", keep="percent")
    lines = [asked, constants(recipe, layer="whose maps are kept")]
    if method.startswith("random"):
        lines.append(constants(recipe, seed="of what is drawn"))
    of_channels = "channels" in method
    goes = of_channels and recipe.chosen["biases"] == "go too"
    kinds = "(nn.Conv1d, nn.Conv2d, nn.Conv3d)" if of_channels else "nn.modules.conv._ConvNd"
    lines.append((_NOTE_NORMS if goes else _NOTE).format(kinds=kinds) + _UNIQUE)
    if recipe.chosen["where"] == "this layer alone":
        lines.append("convs = [model.get_submodule(LAYER)]")
    lines += [_WHOLE, _MASKS[method]]
    lines += [_SHIFTS if goes else "", _PRUNE.format(write=_WITH_SHIFTS if goes else _WEIGHTS)]
    return in_order(*lines), {
        "shares": "shares",
        "removed": "np.array(removed[:-1])",
        "logits": "logits.numpy()",
        "top": "logits.argmax(1).numpy()",
        "top_probability": "chances.max(1).values.numpy()",
        "logit": "logits[:, first].numpy()",
        "probability": "chances[:, first].numpy()",
        "kept_share": "np.array(KEEP / 100)",
        "kept_removed": "np.array(removed[-1])",
        "kept_logits": "scores[-1][0].numpy()",
    } | {
        name: f"maps[{place}][0].numpy()"
        for name, place in (("before", 0), ("after", -1))
        if name in recipe.values
    }


_NOTE = """\
convs = []


def note(module, inputs, output):
    if isinstance(module, {kinds}):
        convs.append(module)  # those that run, in the order in which they do
"""
_NOTE_NORMS = '''\
convs, norms, made = [], {{}}, {{}}
# What these put out is 0 in a channel in which they are given 0.
KEEP_ZERO = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.SiLU, nn.GELU, nn.Hardswish, nn.Tanh)
KEEP_ZERO += (nn.Identity, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Dropout)


def note(module, inputs, output):
    """The convolutions that run, and the batch norms that are given what one of them puts out."""
    conv, _, version = made.get(id(inputs[0]), (None, None, None))
    if inputs[0]._version != version:
        conv = None  # something was written over it, such as a shortcut's sum
    if isinstance(module, {kinds}):
        convs.append(module)
        made[id(output)] = module, output, output._version
    elif isinstance(module, nn.modules.batchnorm._BatchNorm):
        norms.setdefault(module, set()).add(conv)
    elif isinstance(module, KEEP_ZERO):
        made[id(output)] = conv, output, output._version
'''
_UNIQUE = """

for module in model.modules():
    if not any(module.children()):
        module.register_forward_hook(note)
with torch.no_grad():
    first = model(batch)[0].argmax().item()  # what the whole network predicts
for module in model.modules():
    module._forward_hooks.clear()
# Those with weights of their own, each weight once, whichever layers share it.
own = [conv for conv in convs if isinstance(conv.weight, nn.Parameter)]
convs = [c for at, c in enumerate(own) if all(c.weight is not o.weight for o in own[:at])]"""
_WHOLE = "whole = [conv.weight.detach().clone() for conv in convs]"

_SMALLEST = """
sizes = np.sort(torch.cat([weight.abs().flatten() for weight in whole]).numpy())


def masks(share):
    \"\"\"What stays: weights larger than so many of them all.\"\"\"
    count = round(float(share) * len(sizes))
    limit = float(sizes[count - 1]) if count else -1.0
    return [weight.abs() > limit for weight in whole]
"""
_RANDOM = """
def masks(share):
    \"\"\"What stays when weights of all layers together are drawn to go.\"\"\"
    torch.manual_seed(SEED)
    together = torch.cat([weight.flatten() for weight in whole])
    drawn = prune.RandomUnstructured(float(share)).compute_mask(together, together * 0 + 1)
    parts = drawn.bool().split([weight.numel() for weight in whole])
    return [part.view_as(weight) for part, weight in zip(parts, whole, strict=True)]
"""
_STRUCTURED = """
def masks(share):
    \"\"\"What stays of each layer's weights when the same share of channels goes in each.\"\"\"
    {before}how = prune.{how}
    return [how.compute_mask({each}, torch.ones_like({each})).bool() for {each} in {layers}]
"""
_EFFECTS = """
# How far all scores move without a channel: a pass for each.
importance = []
for conv, weight in zip(convs, whole, strict=True):
    moved = [(scores_without(conv, c) - before).norm() for c in range(conv.out_channels)]
    importance.append(torch.stack(moved).view(-1, *[1] * (weight.ndim - 1)).expand_as(weight))
"""
_BY_NORM = {"each": "weight", "layers": "whole"}
_MASKS = {
    "smallest weights": _SMALLEST,
    "random weights": _RANDOM,
    "channels by L1 norm": _STRUCTURED.format(
        before="", how="LnStructured(float(share), n=1, dim=0)", **_BY_NORM
    ),
    "channels by L2 norm": _STRUCTURED.format(
        before="", how="LnStructured(float(share), n=2, dim=0)", **_BY_NORM
    ),
    "random channels": _STRUCTURED.format(
        before="torch.manual_seed(SEED)\n    ",
        how="RandomStructured(float(share), dim=0)",
        **_BY_NORM,
    ),
    "channels by effect": SCORES_WITHOUT
    + _EFFECTS.lstrip("\n")
    + "\n"
    + _STRUCTURED.format(
        before="",
        how="LnStructured(float(share), n=1, dim=0)",
        each="size",
        layers="importance",
    ),
}

_SHIFTS = """
def shifts(conv):
    \"\"\"What makes something of a channel of zeros: its bias, and the batch norm behind it.\"\"\"
    tensors = [conv.bias]
    for norm in [norm for norm, given in norms.items() if given == {conv}]:
        tensors += [norm.weight, norm.bias] if norm.affine else [norm.running_mean]
    return [(tensor, tensor.detach().clone()) for tensor in tensors if tensor is not None]


others = [shifts(conv) for conv in convs]
"""
_PRUNE = """\
shares = np.array([*np.arange(0, MOST, STEP), MOST]) / 100
removed, scores, maps = [], [], []


def keep_map(module, inputs, output):
    maps.append(output.clone())  # a copy: the next layer may work in place


model.get_submodule(LAYER).register_forward_hook(keep_map)
for share in (*shares, KEEP / 100):
    stays = masks(share)
    count = sum(mask.numel() for mask in stays)
    removed.append((count - sum(mask.sum().item() for mask in stays)) / count)
    maps = maps[:1]  # of the whole network, which is the first share
    with torch.no_grad():
{write}
        scores.append(model(batch))
logits = torch.cat(scores[:-1])  # before the softmax, (shares, classes)
chances = logits.softmax(1)"""

_WEIGHTS = """\
        for conv, weight, mask in zip(convs, whole, stays, strict=True):
            conv.weight.copy_(weight.masked_fill(~mask, 0))"""
_WITH_SHIFTS = """\
        for conv, weight, mask, with_it in zip(convs, whole, stays, others, strict=True):
            conv.weight.copy_(weight.masked_fill(~mask, 0))
            for tensor, values in with_it:
                tensor.copy_(values.masked_fill(~mask.flatten(1).any(1), 0))"""
