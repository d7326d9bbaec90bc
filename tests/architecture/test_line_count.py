from tests.architecture.line_count import count_lines

SOURCE = '''"""A module.

With two paragraphs.
"""

# A comment.
TEXT = """
# not a comment
"""  # code with a comment


def double(x):
    """Twice x."""
    return 2 * x
'''


def test_lines_are_counted_in_three_ways():
    # The line that looks like a comment inside of a text is the price of a simple rule.
    assert count_lines(SOURCE) == {"lines": 14, "code": 4, "scored": 3}
