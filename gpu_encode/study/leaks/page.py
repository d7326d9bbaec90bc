"""A leak report as HTML: as a part of a page for notebooks, or as a page that needs no other file."""

from typing import TYPE_CHECKING

from gpu_encode.study.leaks.scores import LEAVES, Interval
from gpu_encode.study.leaks.verdicts import ColumnReport
from gpu_encode.words.terminal import in_html

if TYPE_CHECKING:
    from gpu_encode.study.leaks.report import LeakReport

# Colours that colour-blind people can tell apart (Okabe and Ito).
OF_TRAINING, OF_NEW = "#d55e00", "#0072b2"
# Width and height of a drawn interval, in pixels.
WIDTH, HEIGHT = 160, 26
STYLE = """
.gpu-encode-leaks {font-family: system-ui, sans-serif; font-size: 14px; line-height: 1.4; max-width: 72em}
.gpu-encode-leaks table {border-collapse: collapse; margin: 1em 0}
.gpu-encode-leaks th, .gpu-encode-leaks td {text-align: left; vertical-align: top; padding: .35em .7em;
  border-bottom: 1px solid rgba(128, 128, 128, .4)}
.gpu-encode-leaks .leak {font-weight: 700}
""".strip()


def page(report: "LeakReport") -> str:
    """Give one page that needs no other file."""
    title = in_html(f"Leak report: {report.encoder}")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n</head>\n<body>\n{body(report)}\n</body>\n</html>\n"
    )


def body(report: "LeakReport") -> str:
    """Give the report as a part of a page."""
    heads = (
        "column",
        "verdict",
        "ROC AUC under shuffled targets",
        "moved by its own target",
        "a row sees",
        "risks",
    )
    scored = (
        f"Scores are those of trees with {LEAVES} leaves, on rows to which they were not fitted: "
        f"<span style='color:{OF_TRAINING}'>&#9632;</span> on training encodings, "
        f"<span style='color:{OF_NEW}'>&#9632;</span> on encodings of new rows; lines are intervals of "
        f"{1 - report.level:.0%}. 0.5 is chance. If no column is predictable, the chance that one is called so is at "
        f"most {report.level:g}."
    )
    told = dict.fromkeys((column.verdict, column.words) for column in report.learned)
    lines = [
        f"<style>\n{STYLE}\n</style>",
        '<div class="gpu-encode-leaks">',
        f"<h2>Leak report: {in_html(report.encoder)}</h2>",
        f"<p><strong>{in_html(report.advice)}</strong></p>",
        *(f"<p>{in_html(risk)}</p>" for risk in report.risks),
        "<table>",
        f"<tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>",
        *(row(column, column.name in report.leaks) for column in report.learned),
        "</table>",
        f"<p>{in_html(report.others)}</p>",
        "<dl>",
        *(f"<dt><strong>{in_html(verdict)}</strong></dt><dd>{in_html(words)}</dd>" for verdict, words in told),
        "</dl>",
        f"<p>{report.n_rows:,} rows, {report.n_shuffles} shuffles, {report.n_flips} flips. {scored}</p>",
        "</div>",
    ]
    return "\n".join(lines)


def row(column: ColumnReport, leaks: bool) -> str:
    """Give a row of the table."""
    verdict = in_html(column.verdict)
    moved = f"{column.own_moved} of {column.flips}" if column.flips else "-"
    cells = (
        in_html(column.name),
        f'<span class="leak">{verdict}</span>' if leaks else verdict,
        draw(column.training, column.new),
        moved,
        in_html(column.sees),
        "<br>".join(map(in_html, column.risks)),
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def draw(training: Interval | None, new: Interval | None) -> str:
    """Draw both intervals on a line from 0 to 1 with a mark at one half, and write them as text."""
    if training is None or new is None:
        return "-"
    marks = [f'<line x1="{WIDTH / 2}" x2="{WIDTH / 2}" y1="0" y2="{HEIGHT}" stroke="currentColor" opacity=".35"/>']
    words = []
    for name, y, color, one in (("training", 8, OF_TRAINING, training), ("new", 18, OF_NEW, new)):
        low, high, mean = (WIDTH * value for value in (one.low, one.high, one.mean))
        marks.append(f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{color}" stroke-width="2"/>')
        marks.append(f'<circle cx="{mean:.1f}" cy="{y}" r="3.5" fill="{color}"/>')
        words.append(f"{name} {one.mean:.3f} ({one.low:.3f} to {one.high:.3f})")
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{"; ".join(words)}">{"".join(marks)}</svg><br>{"<br>".join(words)}'
    )
