"""`python -m tpr_attention`, and the command `tpr-attention`."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line, if what it needs is installed."""
    try:
        from tpr_attention.cli import main as command  # not before an error can be told
    except ModuleNotFoundError as error:
        sys.stderr.write(f"error: {error.name} is missing; install it with: pip install 'tpr-attention[bench]'\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return command()


if __name__ == "__main__":
    sys.exit(main())
