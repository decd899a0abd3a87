"""Model names: shipped names, folders, Hub ids. Answers at once, since it imports no torch and looks at no
weights.
"""

from pathlib import Path

SHIPPED = Path(__file__).resolve().parent.parent / "assets" / "models"


def shipped() -> list[str]:
    """Names of the models that come with the project."""
    return sorted(folder.name for folder in SHIPPED.iterdir() if (folder / "config.json").exists())


def locate(name: str) -> tuple[str, str | None]:
    """(folder or Hub id, revision) for a model's name. Raises ValueError with one sentence if there is no
    such thing.
    """
    if (SHIPPED / name / "config.json").exists() and "/" not in name:
        return str(SHIPPED / name), None
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").exists():
            raise ValueError(
                f"The folder {name!r} holds no config.json; name one with config, safetensors and tokenizer."
            )
        if not list(folder.glob("*.safetensors")):
            raise ValueError(
                f"The folder {name!r} holds no .safetensors weights; only safetensors are loaded."
            )
        return str(folder), None
    identifier, _, revision = name.partition("@")
    if name.startswith((".", "/", "~")) or identifier.count("/") != 1:
        raise ValueError(
            f"There is no model {name!r}; use one of {', '.join(shipped())}, a folder, or a Hub id such as "
            "owner/model."
        )
    return identifier, revision or None
