"""Tools for developers of Quantail. They are not part of the package."""
