"""The figures of the docs: one module each, with a function `draw(folder, dark)` that writes its files."""
