"""`python -m lockstep`: the same as `lockstep`, for an environment whose scripts are not on PATH."""

from lockstep.cli import main

main()
