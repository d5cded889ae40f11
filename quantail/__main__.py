"""`python -m quantail`; `quantail.startup` has taken the working folder off the search path by now."""

from quantail.cli.main import main

main()
