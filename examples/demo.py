"""The tour that `make demo` runs: a lake in a folder, with no Spark and no Java."""

from frazil.cli.demo import run_demo

if __name__ == "__main__":
    run_demo(print)
