"""Examples of every built-in risk measure, by its name."""

RISKS = {
    "neutral": ("neutral",),
    "cpw": ("cpw:0.71", "cpw:3"),
    "wang": ("wang:-0.75", "wang:1"),
    "pow": ("pow:-2", "pow:3"),
    "cvar": ("cvar:0.25", "cvar:1"),
    "norm": ("norm:1", "norm:3"),
    "mean-std": ("mean-std:1", "mean-std:-0.5"),
    "entropic": ("entropic:1", "entropic:-2", "entropic:0"),
    "exp-utility": ("exp-utility:1", "exp-utility:0"),
    "prospect": ("prospect", "prospect:1,0.5"),
}
