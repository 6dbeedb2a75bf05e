#!/usr/bin/env python3
"""The table of published results in docs/results.md next to ours, and its pictures.

    scripts/figures.py FOLDER... take the values from reports of `symbiont reproduce`,
                                 each figure from the last that has it, and write
                                 docs/figures/ and the page's block anew; papers of which
                                 no report has a figure stay as they are, and the page says so
    scripts/figures.py --check   fail if the page is not what docs/figures/ gives
    scripts/figures.py --ids     print the figures that the report must have
"""

import csv
import hashlib
import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "figures"
DATA = KEPT / "figures.json"
PAGE = ROOT / "docs" / "results.md"
README = ROOT / "README.md"
SCORE = ("<!-- score: begin -->", "<!-- score: end -->")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"

# Figure, what and where, as in its table; the simulated machine.
POWER8, BULLDOZER, POWER7 = "power8-s812l", "opteron-6282se", "power7-755"
XSIM, PENTIUM4 = "xsim", "pentium4-ht"
SYMMETRIC, ASYMMETRIC, XEON = "morad-8-symmetric", "morad-8-asymmetric", "xeon-e5-2620v4"
ROWS = [
    ("feliu-fig5", "mean error, delta", "SMT2", POWER8),
    ("feliu-fig5", "mean error, delta", "SMT4", POWER8),
    ("feliu-sec63", "ours", "symbiotic over random, SMT2, 4 to 10 cores", POWER8),
    ("feliu-sec63", "ours", "symbiotic-numa over OS, SMT2, 6 to 10 cores", POWER8),
    ("feliu-sec63", "ours", "symbiotic-numa over OS, SMT4, 6 to 10 cores", POWER8),
    ("feliu-sec64", "ours", "symbiotic-numa over OS, SMT2, 6 to 8 cores", POWER8),
    ("peternier-fig11", "over suboptimal", "hmmer + povray", BULLDOZER),
    ("peternier-fig12a", "over suboptimal", "h264ref + povray", POWER7),
    ("peternier-fig12a", "over the OS", "gobmk + bwaves", POWER7),
    ("peternier-fig12b", "over suboptimal", "h264ref + povray", POWER7),
    ("peternier-fig13", "over the OS", "SciMark", BULLDOZER),
    ("peternier-fig14a", "over the OS", "SciMark", POWER7),
    ("peternier-fig14b", "over the OS", "SciMark", POWER7),
    ("morad-tab5", "throughput", "symmetric", SYMMETRIC),
    ("morad-tab5", "fairness of single runs", "symmetric", SYMMETRIC),
    ("morad-tab5", "throughput", "asymmetric", ASYMMETRIC),
    ("morad-tab5", "fairness of single runs", "asymmetric", ASYMMETRIC),
    ("navarro-tab1", "pinned over the OS", "mix1-c", XEON),
    ("navarro-fig2", "mean over the mixes", "TopB2M3L", XEON),
    ("settle-tab2", "D-cache use", "all programs", XSIM),
    ("settle-tab4", "kick-outs avoided, L2", "mean", XSIM),
    ("settle-tab4", "IPC", "mean", XSIM),
    ("settle-fig8", "bad", "mean", PENTIUM4),
    ("settle-controls", "activity vectors", "over activity vectors, super-sets elsewhere", XSIM),
]
# docs/queues.md shows the first, the page the others below its table.
PICTURES = ["symbiont-batch", "feliu-sec63", "peternier-fig12a", "navarro-fig2"]
# Simulated figures with verdicts that are counted, though the page shows none of their values.
COUNTED = ["morad-tab4", "navarro-order", "settle-fig11"]
IDS = list(dict.fromkeys([row[0] for row in ROWS] + PICTURES + COUNTED))
FACTS = ["Effort", "Seed", "Version"]
FIGURES = ["agrees", "mixed", "contradicts", "undecided"]
VALUES = ["Agree", "Contradict", "No effect", "Undecided", "Control gains", "Uncertain in the paper"]


def take(folders):
    """What is kept of reports."""
    facts, machines, figures, place_of = {}, set(), {}, {}
    for folder in folders:
        own = json.loads((folder / "report.json").read_text())["report"]["facts"]
        machines |= {name.rpartition("Simulated machine ")[2] for name, _ in own}
        kept = {name: text for name, text in own if name in FACTS}
        if facts and kept != facts:
            sys.exit(f"figures: {folder} has other facts: {kept}, not {facts}")
        facts = kept
        with open(folder / "figures.csv", newline="") as file:
            for row in csv.DictReader(file):
                figures[row["Figure"]], place_of[row["Figure"]] = row, folder
    if not facts.get("Effort", "").startswith("full"):
        sys.exit("figures: a quick report gives no verdicts; the page shows the full form")
    before = json.loads(DATA.read_text())
    if before["facts"] != facts:
        before = {"papers": {}, "rows": [], "pictures": {}, "older": []}
    anew = {paper(figure) for figure in figures}
    stays = lambda figure: paper(figure) not in anew and before["rows"]
    missing = [figure for figure in IDS if figure not in figures and not stays(figure)]
    if missing:
        sys.exit(f"figures: the reports have no {', '.join(missing)}: see --ids, or mend ROWS")
    rows = []
    for figure, what, where, machine in ROWS:
        if stays(figure):
            rows += [row for row in before["rows"] if (row["figure"], row["what"], row["where"]) == (figure, what, where)]
            continue
        if machine not in machines:
            sys.exit(f"figures: nothing ran on the simulated machine {machine}: mend ROWS")
        with open(place_of[figure] / f"{figure}-values.csv", newline="") as file:
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
            "machine": machine,
            "unit": unit,
            "published": number(f"Published ({unit})" if unit else "Published"),
            "ours": number(f"Ours ({unit})" if unit else "Ours"),
            "interval": [number("Ours low"), number("Ours high")],
            "controls": value["Negative controls"],
            "verdict": value["Verdict"],
        })
    for old in KEPT.glob("*.svg"):
        if old.stem not in PICTURES or not stays(old.stem):
            old.unlink()
    for name in PICTURES:
        if not stays(name):
            shutil.copyfile(place_of[name] / f"{name}.svg", KEPT / f"{name}.svg")
    titles = {name: picture["title"] for name, picture in before["pictures"].items()}
    titles |= {name: figures[name]["What it shows"] for name in PICTURES if not stays(name)}
    older = [name for name in before.get("older", map(paper, IDS)) if name not in anew]
    kept = {
        "facts": facts,
        "papers": before["papers"] | papers(figures.values()),
        "older": list(dict.fromkeys(older)),
        "reports": len(folders) + len(older),
        "rows": rows,
        "pictures": {name: {"title": titles[name], "sha256": digest(name)} for name in PICTURES},
    }
    DATA.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def paper(figure):
    """The paper of a figure, as its name begins."""
    return figure.partition("-")[0]


def papers(figures):
    """Figures and values of each paper by verdict, also of figures that the page does not show."""
    papers = {}
    for row in figures:
        if row["Verdict"] not in FIGURES:
            continue
        of = papers.setdefault(row["Published in"].split(",")[0], {
            "figures": dict.fromkeys(FIGURES, 0), "values": dict.fromkeys(VALUES, 0)})
        of["figures"][row["Verdict"]] += 1
        for name in VALUES:
            of["values"][name] += int(row[name])
    return papers


def digest(picture):
    path = KEPT / f"{picture}.svg"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


def shown(number):
    return "–" if number is None else f"{number:.1f}".replace("-", "−")


def part(row):
    """Ours in parts of what was published."""
    if row["published"] is None:
        return "–"
    parts = [None if end is None else end / row["published"] for end in [row["ours"], *row["interval"]]]
    value, low, high = parts[0], *(parts[1:] if row["published"] > 0 else reversed(parts[1:]))
    show = lambda number: f"{number:.2f}".replace("-", "−")
    return show(value) + ("" if low is None else f" [{show(low)}, {show(high)}]")


def line(row):
    """A row of the page's table."""
    unit = f" {row['unit']}" if row["unit"] else ""
    low, high = row["interval"]
    interval = "" if low is None else f" [{shown(low)}, {shown(high)}]"
    what = "" if row["what"] == "ours" else f"{row['what']}, "
    place = row["place"][0].upper() + row["place"][1:]
    title = row["title"].removesuffix(", simulated")
    return (
        f"| {place} (`{row['figure']}`) | {title}: {what}{row['where']}"
        f" | {shown(row['published'])}{unit if row['published'] is not None else ''}"
        f" | {shown(row['ours'])}{interval}{unit}"
        f" | {part(row)} | {row['verdict'] or '–'} | `{row['machine']}` |"
    )


def counted(paper):
    """A sentence on a paper."""
    name, of = paper
    figures = ", ".join(f"{count} {verdict}" for verdict, count in of["figures"].items() if count)
    values = ", ".join(f"{count} {verdict.lower()}" for verdict, count in of["values"].items() if count)
    return f"{name.capitalize()}: figures {figures}; values {values}."


def dated(older):
    """A sentence on papers that were not run anew."""
    names = [name.capitalize() for name in older if name != "symbiont"]
    listed = " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
    return [f"The rows of {listed} are of an earlier run; policies have changed since then."] if names else []


def block(kept):
    """the page's block, from what is kept."""
    facts = kept["facts"]
    form, _, why = facts["Effort"].partition(": ")
    return "\n".join([
        BEGIN,
        f"Made by `symbiont reproduce` {facts['Version']} with seed {facts['Seed']}, in the {form} form"
        + (f":\n{why}." if why else "."),
        "All of it is simulated, with other programs than the papers'; `symbiont machines NAME` describes",
        "a machine. Brackets hold 95 % intervals. The table is a selection; the counts are of all values that are judged.",
        "All figures were made by one build." if kept["reports"] == 1 else
        "Each figure is kept from the run in which it was last made, and code has changed between these runs.",
        "[Reproducing](reproducing.md#where-ours-contradicts-and-why) says what was found where ours contradict.",
        "",
        "A direction *agrees* if the published value and the whole interval of ours lie on the same side",
        "of no change and it certainly gains more than its negative controls, which gain nothing; it *contradicts*",
        "if they lie on different sides; there is *no effect* if all of the interval is less than a twentieth of what",
        "was published; else it is *undecided*, also where a *control gains*, too. *Uncertain in the paper* is a",
        "published change that is less than two of its own standard errors, as far as the paper lets them be known.",
        "*Ours / published* is 1 where ours is as large, and 0 where there is nothing.",
        "",
        *map(counted, kept["papers"].items()),
        *dated(kept["older"]),
        "",
        "STP is throughput; of ANTT, the mean slowdown, less is better. *Delta* is the model's form",
        "in the paper; *symbiotic-online* and *phases-online* are ours. *Suboptimal* is the placement that keeps",
        "programs of one kind together. A row without a published value is a negative control: *super-sets",
        "elsewhere* are the same scores with the regions of each job's caches in a drawn order.",
        "",
        "| Figure | What | Published | Ours | Ours / published | Verdict | Simulated machine |",
        "|---|---|---:|---:|---:|---|---|",
        *map(line, kept["rows"]),
        "",
        *(f"![{picture['title']}](figures/{name}.svg)\n"
          for name, picture in list(kept["pictures"].items())[1:]),
        END,
    ])


def score(kept):
    """One sentence on the values of all papers, and of each."""
    def counts(values):
        still = values["Undecided"] + values["Control gains"]
        return tuple(values[name] for name in VALUES if name not in ["Undecided", "Control gains"]) + (still,)
    of = {name: counts(paper["values"]) for name, paper in kept["papers"].items()}
    agree, contradict, none, uncertain, still = map(sum, zip(*of.values()))
    each = ", ".join(f"{name.capitalize()} {'/'.join(map(str, values))}" for name, values in of.items())
    return (f"of {agree + contradict + none + uncertain + still} published values {agree} agree in direction, "
            f"{contradict} contradict, {none} have no effect,\n{uncertain} are uncertain in the paper itself and "
            f"{still} stay open\n(in this order: {each}).")


def scored(kept):
    """README with that sentence."""
    before, rest = README.read_text().split(SCORE[0])
    return before + SCORE[0] + "\n" + score(kept) + "\n" + SCORE[1] + rest.split(SCORE[1])[1]


def check(kept, text, wanted):
    """Why the page or a picture is not current; none if all are."""
    if text != wanted:
        return "the page's block is not what docs/figures/figures.json gives"
    if README.read_text() != scored(kept):
        return "README's sentence on the score is not what docs/figures/figures.json gives"
    rows = [(row["figure"], row["what"], row["where"], row["machine"]) for row in kept["rows"]]
    if rows != ROWS or list(kept["pictures"]) != PICTURES:
        return "docs/figures/figures.json has other rows or pictures than scripts/figures.py names"
    if {path.stem for path in KEPT.glob("*.svg")} != set(PICTURES):
        return "docs/figures has other pictures than scripts/figures.py names"
    for name, picture in kept["pictures"].items():
        if digest(name) != picture["sha256"]:
            return f"docs/figures/{name}.svg is not that of docs/figures/figures.json"
    return None


def main():
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    if len(sys.argv) < 2 or options and sys.argv[1:] not in (["--check"], ["--ids"]):
        sys.exit(__doc__)
    if sys.argv[1] == "--ids":
        print(*IDS)
        return
    text = PAGE.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit(f"figures: docs/results.md needs one line {BEGIN} and one line {END}")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    if sys.argv[1] != "--check":
        KEPT.mkdir(parents=True, exist_ok=True)
        take([Path(folder) for folder in sys.argv[1:]])
    kept = json.loads(DATA.read_text())
    wanted = before + block(kept) + after
    if sys.argv[1] != "--check":
        PAGE.write_text(wanted)
        README.write_text(scored(kept))
    elif wrong := check(kept, text, wanted):
        sys.exit(f"figures: {wrong}: run `make figures`")


main()
