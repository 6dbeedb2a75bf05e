#!/usr/bin/env python3
"""README's table of published results beside ours, and its pictures.

    scripts/figures.py FOLDER    take the values from a report of `symbiont reproduce`,
                                 and write docs/figures/ and README's block anew
    scripts/figures.py --check   fail if README is not what docs/figures/ gives
"""

import csv
import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "figures"
DATA = KEPT / "figures.json"
README = ROOT / "README.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"

# Figure, what and where, as in its table.
ROWS = [
    ("feliu-fig5", "mean error, linear", "SMT2"),
    ("feliu-sec63", "ours", "symbiotic (published) over random, SMT2, 7 cores"),
    ("feliu-sec63", "ours", "symbiotic-numa (published) over OS, SMT2, 6 to 10 cores"),
    ("feliu-sec63", "ours", "symbiotic-numa (published) over OS, SMT4, 6 to 10 cores"),
    ("feliu-sec64", "ours", "symbiotic-numa (published) over OS, SMT2, 6 to 8 cores"),
    ("peternier-fig11", "over suboptimal", "hmmer + povray"),
    ("peternier-fig12a", "over suboptimal", "gobmk + bwaves"),
    ("peternier-fig12a", "over the OS", "gobmk + bwaves"),
    ("peternier-fig12b", "over suboptimal", "gobmk + bwaves"),
    ("peternier-fig13", "over the OS", "SciMark"),
    ("morad-tab5", "throughput", "symmetric"),
    ("morad-tab5", "fairness of single runs", "symmetric"),
    ("morad-tab5", "throughput", "asymmetric"),
    ("morad-tab5", "fairness of single runs", "asymmetric"),
    ("navarro-tab1", "pinned over the OS", "mix1-c"),
    ("navarro-fig2", "mean over the mixes", "TopB2M3L"),
]
PICTURES = ["feliu-sec63", "peternier-fig12a"]
FACTS = ["Effort", "Seed", "Version"]


def take(folder):
    """What is kept of a report."""
    report = json.loads((folder / "report.json").read_text())["report"]
    facts = dict(report["facts"])
    with open(folder / "figures.csv", newline="") as file:
        figures = {row["Figure"]: row for row in csv.DictReader(file)}
    rows = []
    for figure, what, where in ROWS:
        with open(folder / f"{figure}-values.csv", newline="") as file:
            header, *lines = csv.reader(file)
        found = [line for line in lines if line[:2] == [what, where]]
        if len(found) != 1:
            sys.exit(f"figures: {figure} has no value of '{what}', '{where}': mend ROWS")
        value = dict(zip(header[2:], found[0][2:]))
        number = lambda name: float(value[name]) if value.get(name) else None
        unit = next(name for name in value if name.startswith("Ours"))[len("Ours"):].strip(" ()")
        rows.append({
            "figure": figure,
            "place": figures[figure]["Published in"],
            "title": figures[figure]["What it shows"],
            "what": what,
            "where": where,
            "unit": unit,
            "published": number(f"Published ({unit})" if unit else "Published"),
            "ours": number(f"Ours ({unit})" if unit else "Ours"),
            "interval": [number("Ours low"), number("Ours high")],
            "verdict": value["Verdict"],
        })
    for name in PICTURES:
        shutil.copyfile(folder / f"{name}.svg", KEPT / f"{name}.svg")
    kept = {"facts": {fact: facts[fact] for fact in FACTS if fact in facts}, "rows": rows}
    DATA.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def shown(number):
    return f"{number:.1f}".replace("-", "−")


def block():
    """README's block, from what is kept."""
    kept = json.loads(DATA.read_text())
    how = "; ".join(f"{name.lower()}: {text}" for name, text in kept["facts"].items())
    lines = [
        BEGIN,
        "Made by `symbiont reproduce`, with 95 % intervals",
        f"({how}).",
        "Programs are other ones than the papers', and machines are simulated: what is called agreement",
        "is that of the direction of a change, not of its size.",
        "",
        "| Figure | What | Published | Ours | Direction |",
        "|---|---|---:|---:|---|",
    ]
    for row in kept["rows"]:
        unit = f" {row['unit']}" if row["unit"] else ""
        low, high = row["interval"]
        interval = "" if low is None else f" [{shown(low)}, {shown(high)}]"
        what = "" if row["what"] == "ours" else f"{row['what']}, "
        place = row["place"][0].upper() + row["place"][1:]
        title = row["title"].removesuffix(", simulated")
        lines.append(
            f"| {place} (`{row['figure']}`) | {title}: {what}{row['where']}"
            f" | {shown(row['published'])}{unit} | {shown(row['ours'])}{interval}{unit}"
            f" | {row['verdict'] or '–'} |"
        )
    lines.append("")
    lines += [f"![{name}](docs/figures/{name}.svg)" for name in PICTURES]
    return "\n".join(lines + [END])


def main():
    text = README.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    match sys.argv[1:]:
        case ["--check"]:
            if before + block() + after != text:
                sys.exit("figures: README's table is not what docs/figures gives: run `make figures`")
            for name in PICTURES:
                if not (KEPT / f"{name}.svg").exists():
                    sys.exit(f"figures: docs/figures/{name}.svg is missing: run `make figures`")
        case [folder]:
            KEPT.mkdir(parents=True, exist_ok=True)
            take(Path(folder))
            README.write_text(before + block() + after)
        case _:
            sys.exit(__doc__)


main()
