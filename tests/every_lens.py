"""Every lens, by the networks that it can be asked about."""

from hookviz.lenses.contract.running import list_lenses

OF_TRANSFORMERS = ("attention",)
"""They say of a network without attention that it has none, and nothing else."""
OF_SEGMENTATION = ("segmentation",)
"""They say likewise of a network that segments nothing."""
OF_FEW = (*OF_TRANSFORMERS, *OF_SEGMENTATION)
OF_ANY_NETWORK = tuple(lens for lens in list_lenses() if lens.slug not in OF_FEW)
SLUGS_OF_ANY = tuple(lens.slug for lens in OF_ANY_NETWORK)
OF_PICTURES = ("toaster",)
"""They change the picture that an input was made of, and refuse a tensor."""
SLUGS_OF_TENSORS = tuple(slug for slug in SLUGS_OF_ANY if slug not in OF_PICTURES)
