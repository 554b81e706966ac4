"""Runs the tests of a module that needs no test framework."""


def run(namespace):
    """Calls all functions of the namespace whose names begin with test_, in the order of names."""
    tests = [value for name, value in sorted(namespace.items()) if name.startswith("test_")]
    for test in tests:
        test()
    print(f"{len(tests)} tests")
