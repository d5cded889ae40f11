"""Change files and correct their checksums."""

from pathlib import Path

from quantail.files import checksum, read_arrays, write_arrays
from tests.helpers.sealed import editing


def put_tensor(run, file, name, array):
    """Replace one tensor in the last checkpoint of a run, and its checksum."""
    checkpoints = Path(run) / "checkpoints"
    folder = checkpoints / (checkpoints / "last").read_text().strip()
    path = folder / f"{file}.safetensors"
    arrays = read_arrays(path)
    assert name in arrays
    write_arrays(path, arrays | {name: array})
    with editing(folder / "state.json") as state:
        state["checksums"][path.name] = checksum(path)
