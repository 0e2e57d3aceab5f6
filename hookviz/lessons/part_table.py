"""The table of live parts in the documents, from what each part declares of itself."""

from hookviz.lessons.known_parts import parts
from hookviz.lessons.part import Part


def part_table() -> str:
    """Markdown: each part with what it shows, and its options with their defaults."""
    rows = "\n".join(
        f"| `{name}` | {part.sentence} | {_options(part)} |" for name, part in parts().items()
    )
    return f"| part | what one sees and can do | options |\n|---|---|---|\n{rows}\n"


def _options(part: Part) -> str:
    options = []
    for option in part.options:
        if option.default is None:
            default = "must be set"
        elif option.default:
            default = f"`{option.default}` without it"
        else:
            default = "nothing without it"
        options.append(f"`{option.name}` ({default}): {option.help}")
    return "<br>".join(options)
