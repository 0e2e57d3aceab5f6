"""Define ShapesViT, the small vision transformer for drawings, and the facts about its weights.

It tells the drawings of `hookviz.models.shapesnet` apart, with patches and attention in the place
of convolutions. `scripts.train_shapesvit` trains it and writes the weights, the figures and the
model card in `assets/`.
"""

import torch
from torch import Tensor, nn

from hookviz.models.shapesnet import CATEGORIES
from hookviz.settings import ASSETS
from hookviz.types import Preprocess

INPUT_SIZE = 64
"""Side in pixels of the images that it was trained on: 8 × 8 patches of 8 × 8 pixels."""

MIN_SIZE = 32
"""The smallest height and width in pixels that the network is meant to take."""

PREPROCESS = Preprocess(
    resize=INPUT_SIZE, crop=INPUT_SIZE, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)
)
WEIGHTS_FILE = ASSETS / "shapesvit.safetensors"
FIGURES_FILE = ASSETS / "shapesvit.json"
"""What `scripts.train_shapesvit` measured; ``"accuracy"`` is top-1 in percent on unseen draws."""


class PatchEmbed(nn.Module):
    """Cut an image into patches and describe each by `width` numbers.

    ``(N, 3, H, W)`` to ``(N, rows, columns, width)``, with rows = H / patch_size, rounded down.
    """

    def __init__(self, width: int, patch_size: int) -> None:
        super().__init__()
        self.patch_size = (patch_size, patch_size)
        self.proj = nn.Conv2d(3, width, patch_size, stride=patch_size)

    def forward(self, images: Tensor) -> Tensor:
        """One description a patch, channels last."""
        described: Tensor = self.proj(images)
        return described.permute(0, 2, 3, 1)


class Attention(nn.Module):
    """Let each token fetch from every other what it looks for: ``(N, tokens, width)`` to the same.

    Multi-head self-attention as in Vaswani et al., "Attention is all you need" (2017), section
    3.2: softmax(QKᵀ/√d) V in each head, d = width / heads.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.num_heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Mix what the heads fetched, ``(N, tokens, width)``."""
        count, length, width = tokens.shape
        parts = self.qkv(tokens).reshape(count, length, 3, self.num_heads, -1)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        fetched = nn.functional.scaled_dot_product_attention(queries, keys, values)
        mixed: Tensor = self.proj(fetched.transpose(1, 2).reshape(count, length, width))
        return mixed


class Mlp(nn.Module):
    """Work on each token by itself, with four times its width in between."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """As many tokens, as wide."""
        worked: Tensor = self.fc2(self.act(self.fc1(tokens)))
        return worked


class Block(nn.Module):
    """Add to the tokens what attention finds, then what each thinks of it.

    With the norm in front, as in Dosovitskiy et al., "An image is worth 16x16 words" (2020),
    figure 1.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """``(N, tokens, width)``, as it came in plus what was found."""
        attended = tokens + self.attn(self.norm1(tokens))
        result: Tensor = attended + self.mlp(self.norm2(attended))
        return result


class ShapesViT(nn.Module):
    """A vision transformer of four blocks for drawn shapes and textures, for any input size.

    ``(N, 3, H, W)``, normalised as `PREPROCESS` says, to one score per class, ``(N, classes)``.
    A class token stands in front of the patches. What is added for their places was learned for
    `side` × `side` patches and is stretched for others.
    """

    num_prefix_tokens = 1

    def __init__(
        self,
        classes: int = len(CATEGORIES),
        *,
        width: int = 96,
        blocks: int = 4,
        heads: int = 4,
        patch_size: int = 8,
        side: int = 8,
    ) -> None:
        super().__init__()
        self.patch_embed = PatchEmbed(width, patch_size)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, side, side, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def tokens(self, images: Tensor) -> Tensor:
        """Return the class token, then the patches row by row: ``(N, 1 + patches, width)``."""
        patches = self.patch_embed(images)
        placed = patches + self._places(patches.shape[1], patches.shape[2])
        start = self.cls_token.expand(len(images), -1, -1)
        return torch.cat([start, placed.flatten(1, 2)], dim=1)

    def forward(self, images: Tensor) -> Tensor:
        """One score per class and image, ``(N, classes)``."""
        tokens: Tensor = self.norm(self.blocks(self.tokens(images)))
        scores: Tensor = self.head(tokens[:, 0])
        return scores

    def _places(self, rows: int, columns: int) -> Tensor:
        """Return the places of a grid of patches, ``(1, rows, columns, width)``."""
        if self.pos_embed.shape[1:3] == (rows, columns):
            return self.pos_embed
        learned = self.pos_embed.permute(0, 3, 1, 2)
        stretched = nn.functional.interpolate(
            learned, (rows, columns), mode="bicubic", align_corners=False
        )
        return stretched.permute(0, 2, 3, 1)
