"""Says clearly when Python is too old; written so that old ones can run it."""

import sys

NEEDED = (3, 11)


def complaint(version):
    if tuple(version[:2]) >= NEEDED:
        return ""
    return "\n".join(
        [
            "Python %d.%d is too old [python-too-old]" % tuple(version[:2]),
            "  why:   Headrace needs %d.%d or newer" % NEEDED,
            "  fix:   install it, or name it: make run PYTHON=/path/to/python3.11",
        ]
    )


if __name__ == "__main__":
    found = complaint(sys.version_info)
    if found:
        sys.stderr.write(found + "\n")
        sys.exit(3)
