"""Files changed by somebody who also makes their checksums right."""

import json
from pathlib import Path

from quantail.files import checksum, read_arrays, write_arrays


def put_tensor(run, file, name, array):
    """Replace one tensor in the last checkpoint of a run, and its checksum."""
    checkpoints = Path(run) / "checkpoints"
    folder = checkpoints / (checkpoints / "last").read_text().strip()
    path = folder / f"{file}.safetensors"
    arrays = read_arrays(path)
    assert name in arrays
    write_arrays(path, arrays | {name: array})
    state = json.loads((folder / "state.json").read_text())
    state["checksums"][path.name] = checksum(path)
    (folder / "state.json").write_text(json.dumps(state))
