"""`python -m headrace`: the command line, also where no script was installed."""

from headrace.cli.main import main

main()
