"""`python -m quantail`"""

from quantail.cli.main import main

main()
