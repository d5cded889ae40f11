"""The figures of the docs: a module each, with a function `draw(folder, dark)` that writes its files."""
