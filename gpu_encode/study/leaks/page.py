"""A leak report as HTML: as a part of a page for notebooks, or as a page that needs no other file."""

from typing import TYPE_CHECKING

from gpu_encode.study.leaks.scores import LEAVES, Interval
from gpu_encode.study.leaks.verdicts import ColumnReport
from gpu_encode.words.terminal import in_html

if TYPE_CHECKING:
    from gpu_encode.study.leaks.report import LeakReport

# Colours that colour-blind people can tell apart (Okabe and Ito).
OF_TRAINING, OF_NEW = "#d55e00", "#0072b2"
# Classes of verdicts in STYLE: a leak, no leak in the strict sense, and none at all; each colour stands beside words.
SOUND, DOUBTFUL, LEAK = "sound", "doubtful", "leak"
SOUND_VERDICTS = ("no leak", "no target")
# Width of a drawn interval and height of the drawing, in pixels; room for the numbers at the ends of the axis.
WIDTH, HEIGHT, MARGIN = 220, 40, 10
STYLE = """
.gpu-encode-leaks {font-family: system-ui, sans-serif; font-size: 14px; line-height: 1.4; max-width: 72em}
.gpu-encode-leaks .table {overflow-x: auto}
.gpu-encode-leaks table {border-collapse: collapse; margin: 1em 0}
.gpu-encode-leaks th, .gpu-encode-leaks td {text-align: left; vertical-align: top; padding: .35em .7em;
  border-bottom: 1px solid rgba(128, 128, 128, .4)}
.gpu-encode-leaks .verdict {color: #fff; border-radius: .3em; padding: .1em .5em; white-space: nowrap}
.gpu-encode-leaks .sound {background: #1a7340}
.gpu-encode-leaks .doubtful {background: #7a5c00}
.gpu-encode-leaks .leak {background: #b3261e; font-weight: 700}
.gpu-encode-leaks dd {margin: .2em 0 .8em}
@media (max-width: 44em) {
  .gpu-encode-leaks tr:first-child {display: none}
  .gpu-encode-leaks tr {display: block; border-bottom: 1px solid rgba(128, 128, 128, .4); padding: .5em 0}
  .gpu-encode-leaks td {display: block; border: 0; padding: .15em 0}
  .gpu-encode-leaks td::before {content: attr(data-head) ": "; font-weight: 700}
}
""".strip()


def page(report: "LeakReport") -> str:
    """Give one page that needs no other file."""
    title, content = in_html(f"Leak report: {report.encoder}"), body(report, "h1")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n</head>\n<body>\n<main>\n{content}\n</main>\n</body>\n</html>\n"
    )


def body(report: "LeakReport", heading: str = "h2") -> str:
    """Give the report as a part of a page, below a heading of this level."""
    scored = (
        f"Scores are those of trees with {LEAVES} leaves, on rows to which they were not fitted: on training "
        f"encodings and on encodings of new rows; lines are intervals of {1 - report.level:.0%}. 0.5 is chance. If no "
        f"column is predictable, the chance that one is called so is at most {report.level:g}."
    )
    told = {column.verdict: column for column in report.learned}
    leaks = {column.verdict for column in report.learned if column.name in report.leaks}
    lines = [
        f"<style>\n{STYLE}\n</style>",
        '<div class="gpu-encode-leaks">',
        f"<{heading}>Leak report: {in_html(report.encoder)}</{heading}>",
        f"<p><strong>{in_html(report.advice)}</strong></p>",
        *(f"<p>{in_html(risk)}</p>" for risk in report.risks),
        *table(report),
        f"<p>{in_html(report.others)}</p>",
        "<dl>",
        *(f"<dt>{mark(verdict, leaks)}</dt><dd>{in_html(column.words)}</dd>" for verdict, column in told.items()),
        "</dl>",
        f"<p>{report.n_rows:,} rows, {report.n_shuffles} shuffles, {report.n_flips} flips. {scored}</p>",
        "<p>The page Leaks of the guide, docs/leaks.md, explains the report, and what to do.</p>",
        "</div>",
    ]
    return "\n".join(lines)


def table(report: "LeakReport") -> list[str]:
    """Give the table of columns; what no column has is left out."""
    heads = ("column", "verdict", "ROC AUC under shuffled targets", "moved by its own target", "a row sees", "risks")
    rows = [cells(column, column.name in report.leaks) for column in report.learned]
    shown = [number for number in range(len(heads)) if any(row[number] not in ("", "-") for row in rows)]
    lines = ["".join(f"<th>{heads[number]}</th>" for number in shown)]
    lines += ["".join(f'<td data-head="{heads[number]}">{row[number]}</td>' for number in shown) for row in rows]
    return ['<div class="table"><table>', *(f"<tr>{line}</tr>" for line in lines), "</table></div>"] if rows else []


def cells(column: ColumnReport, leaks: bool) -> tuple[str, ...]:
    """Give the cells of a column's row."""
    return (
        in_html(column.name),
        mark(column.verdict, {column.verdict} if leaks else set()),
        draw(column.training, column.new),
        f"{column.own_moved} of {column.flips}" if column.flips else "-",
        in_html(column.sees),
        "<br>".join(map(in_html, column.risks)),
    )


def mark(verdict: str, leaks: set[str]) -> str:
    """Write a verdict on its colour."""
    kind = LEAK if verdict in leaks else SOUND if verdict in SOUND_VERDICTS else DOUBTFUL
    return f'<span class="verdict {kind}">{in_html(verdict)}</span>'


def draw(training: Interval | None, new: Interval | None) -> str:
    """Draw both intervals above an axis from 0 to 1, and write them as text."""
    if training is None or new is None:
        return "-"
    axis, written = HEIGHT - 12, 'font-size="10" fill="currentColor" text-anchor="middle"'
    marks = [f'<path d="M0 {axis}H{WIDTH}M{WIDTH / 2:g} 0V{axis}" stroke="currentColor" opacity=".35"/>']
    marks += [f'<text x="{WIDTH * value:g}" y="{HEIGHT - 1}" {written}>{value:g}</text>' for value in (0, 0.5, 1)]
    words, told = [], []
    for name, y, color, one in (("training", 8, OF_TRAINING, training), ("new", 18, OF_NEW, new)):
        low, high, mean = (WIDTH * value for value in (one.low, one.high, one.mean))
        marks.append(f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{color}" stroke-width="2"/>')
        marks.append(f'<circle cx="{mean:.1f}" cy="{y}" r="3.5" fill="{color}"/>')
        words.append(f"{name} {one.mean:.3f} ({one.low:.3f} to {one.high:.3f})")
        told.append(f'<span style="color:{color}">&#9632;</span> {words[-1]}')
    box = f"{-MARGIN} 0 {WIDTH + 2 * MARGIN} {HEIGHT}"
    return (
        f'<svg width="{WIDTH + 2 * MARGIN}" height="{HEIGHT}" viewBox="{box}" role="img" '
        f'aria-label="{"; ".join(words)}">{"".join(marks)}</svg><br>{"<br>".join(told)}'
    )
