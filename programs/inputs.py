#!/usr/bin/env python3
"""Inputs of the programs in this folder, made from a seed.

usage: inputs.py PROGRAM [SEED]

Writes the files that the program's command names into the current folder. The
same seed gives the same bytes with any Python 3: only random.Random.random()
is drawn from, whose stream is fixed, never shuffle() or choices().
"""

import math
import sys

# No folder of compiled modules beside the sources.
sys.dont_write_bytecode = True

import computing
import science
from draw import Draw, text, write


def plain_text(size):
    return lambda draw: write("text.txt", text(draw, size))


def povray(draw):
    lines = [
        "#version 3.7;",
        "global_settings { assumed_gamma 1.0 max_trace_level 6 }",
        "camera { location <0, 6, -16> look_at <0, 2, 0> }",
        "light_source { <10, 20, -10> color rgb 1 }",
        "light_source { <-15, 12, -6> color rgb 0.4 }",
        "plane { y, 0 pigment { checker color rgb 0.2, color rgb 0.9 } finish { reflection 0.2 } }",
    ]
    for _ in range(60):
        x, y, z = (draw.real() * 12 - 6, draw.real() * 5, draw.real() * 10 - 3)
        r, g, b = (draw.real() for _ in range(3))
        texture = draw.pick(["granite scale 0.4", "wrinkles scale 0.3", "bumps 0.5 scale 0.2"])
        lines.append(
            f"sphere {{ <{x:.3f}, {y:.3f}, {z:.3f}>, {0.3 + draw.real():.3f} "
            f"pigment {{ color rgb <{r:.3f}, {g:.3f}, {b:.3f}> }} "
            f"normal {{ {texture} }} finish {{ phong 0.8 reflection {draw.real() / 2:.3f} }} }}"
        )
    write("scene.pov", "\n".join(lines) + "\n")


def hmmer(draw):
    letters = "ACDEFGHIKLMNPQRSTVWY"
    family = draw.word(letters, 220, 220)

    def relative(change):
        return "".join(draw.pick(letters) if draw.real() < change else x for x in family)

    rows = "".join(f"member{n:02} {relative(0.3)}\n" for n in range(30))
    write("family.sto", "# STOCKHOLM 1.0\n" + rows + "//\n")
    database = []
    for number in range(1500):
        chain = relative(0.6) if number % 25 == 0 else draw.word(letters, 150, 500)
        database.append(f">sequence{number}\n{chain}\n")
    write("database.fa", "".join(database))


def genome(draw):
    bases = "".join(draw.pick("ACGT") for _ in range(400_000))
    write("genome.fa", ">chromosome\n" + bases + "\n")
    reads = []
    for number in range(9000):
        start = draw.below(len(bases) - 120)
        read = list(bases[start : start + 120])
        for _ in range(draw.below(5)):
            read[draw.below(120)] = draw.pick("ACGT")
        reads.append(f"@read{number}\n{''.join(read)}\n+\n{'I' * 120}\n")
    write("reads.fq", "".join(reads))


def linear_program(draw):
    """Capacitated facility location without the integers."""
    sites, users = range(110), range(330)
    cost = {(s, u): 1 + draw.below(1000) for s in sites for u in users}
    goal = " + ".join([f"{200 + draw.below(400)} y{s}" for s in sites])
    goal += "".join(f"\n + {price} x{s}_{u}" for (s, u), price in cost.items())
    lines = ["Minimize", f" cost: {goal}", "Subject To"]
    for u in users:
        lines.append(f" u{u}: " + " + ".join(f"x{s}_{u}" for s in sites) + " = 1")
    for s in sites:
        shares = " + ".join(f"{1 + draw.below(9)} x{s}_{u}" for u in users)
        lines.append(f" s{s}: {shares} - {20 + draw.below(30)} y{s} <= 0")
    lines += ["Bounds"] + [f" y{s} <= 1" for s in sites] + ["End"]
    write("problem.lp", "\n".join(lines) + "\n")


def satisfiability(draw):
    variables, clauses = 230, 1025
    lines = [f"p cnf {variables} {clauses}"]
    for _ in range(clauses):
        chosen = set()
        while len(chosen) < 3:
            chosen.add(1 + draw.below(variables))
        lines.append(" ".join(str(v if draw.real() < 0.5 else -v) for v in sorted(chosen)) + " 0")
    write("problem.cnf", "\n".join(lines) + "\n")


def perl(draw):
    write("text.txt", text(draw, 800_000))
    write(
        "words.pl",
        """use strict;
my (%count, %next, $last);
open my $in, '<', 'text.txt' or die;
while (my $line = <$in>) {
    chomp $line;
    $line =~ s/([aeiou])([^aeiou])/$2$1/g if $line =~ /^[a-m]/;
    for my $word (split /[ .]+/, $line) {
        $count{$word}++;
        push @{ $next{$last} }, $word if defined $last;
        $last = $word;
    }
}
my @sorted = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
my $state = 1;
my @walk = ($sorted[0]);
for (1 .. 150_000) {
    $state = ($state * 1103515245 + 12345) % 2147483648;
    my $choices = $next{ $walk[-1] } || [$sorted[0]];
    push @walk, $choices->[ ($state >> 8) % @$choices ];
}
my $joined = join ' ', @walk;
my $found = () = $joined =~ /\\b(\\w)\\w*\\1\\b/g;
print scalar(@sorted), " $found ", length $joined, "\\n";
""",
    )


def database(draw):
    rows = [
        "CREATE TABLE sale(id INTEGER PRIMARY KEY, shop INT, item INT, amount REAL, note TEXT);",
        "BEGIN;",
    ]
    for number in range(36_000):
        note = draw.word("abcdefghij", 4, 20)
        rows.append(
            f"INSERT INTO sale VALUES({number},{draw.below(200)},{draw.below(3000)},"
            f"{draw.below(100000) / 100},'{note}');"
        )
    rows += [
        "COMMIT;",
        "CREATE INDEX by_item ON sale(item);",
        "SELECT shop, count(*), sum(amount) FROM sale GROUP BY shop ORDER BY 3 DESC LIMIT 5;",
        "SELECT count(*) FROM sale a JOIN sale b ON a.item = b.item WHERE a.shop < b.shop;",
        "SELECT note, count(*) FROM sale WHERE note LIKE '%abc%' GROUP BY note ORDER BY 2 LIMIT 5;",
        "SELECT count(DISTINCT substr(note, 1, 3)) FROM sale;",
    ]
    write("queries.sql", "\n".join(rows) + "\n")


def c_source(draw):
    """Preprocessed C: loops over arrays, branches and calls."""
    parts = ["double table[4096]; int index_of[4096];\n"]
    for number in range(50):
        names = ["a", "b", "c", "d"]
        body = []
        for _ in range(14):
            x, y, z = draw.pick(names), draw.pick(names), draw.pick(names)
            op = draw.pick(["+", "-", "*", "^", "&"])
            body.append(f"    {x} = {y} {op} ({z} >> {1 + draw.below(7)});")
            if draw.below(3) == 0:
                body.append(f"    if ({x} > {draw.below(999)}) {y} += index_of[{z} & 4095];")
            if draw.below(4) == 0:
                body.append(
                    f"    for (int i = 0; i < {8 << draw.below(5)}; i++)"
                    f" table[(i + {x}) & 4095] += table[(i * 3 + {y}) & 4095] * {draw.real():.4f};"
                )
        call = f"    d += f{draw.below(number)}(a, b, c, d);\n" if number else ""
        parts.append(
            f"int f{number}(int a, int b, int c, int d) {{\n"
            + "\n".join(body)
            + f"\n{call}    return a + b + c + d;\n}}\n"
        )
    write("module.i", "".join(parts))


def video(draw):
    width, height, frames = 640, 352, 14
    balls = [
        (draw.real(), draw.real(), draw.real() * 8 - 4, draw.real() * 6 - 3, 8 + draw.below(24))
        for _ in range(7)
    ]
    noise = [draw.below(24) for _ in range(width * height)]
    with open("video.yuv", "wb") as file:
        for frame in range(frames):
            luma = bytearray(
                (96 + (x + frame) // 8 % 32 + noise[(y * width + x + 3 * frame) % len(noise)])
                for y in range(height)
                for x in range(width)
            )
            for left, top, across, down, size in balls:
                x0 = int(left * width + across * frame)
                y0 = int(top * height + down * frame)
                for y in range(max(0, y0 - size), min(height, y0 + size)):
                    half = int(math.sqrt(size * size - (y - y0) ** 2))
                    for x in range(max(0, x0 - half), min(width, x0 + half)):
                        luma[y * width + x] = 200 - (x - x0 + y - y0) // 2 % 60
            file.write(luma)
            file.write(bytes([120]) * (width * height // 4))
            file.write(bytes([136]) * (width * height // 4))


def beam(draw):
    """A cantilever of eight-node bricks under a random load on its end."""
    nx, ny, nz = 60, 12, 12
    node = lambda x, y, z: 1 + x + (nx + 1) * (y + (ny + 1) * z)
    lines = ["*NODE, NSET=ALL"]
    for z in range(nz + 1):
        for y in range(ny + 1):
            for x in range(nx + 1):
                lines.append(f"{node(x, y, z)}, {x * 0.1:.2f}, {y * 0.1:.2f}, {z * 0.1:.2f}")
    lines.append("*ELEMENT, TYPE=C3D8, ELSET=BEAM")
    number = 0
    for z in range(nz):
        for y in range(ny):
            for x in range(nx):
                number += 1
                corners = [
                    node(x + dx, y + dy, z + dz)
                    for dz in (0, 1)
                    for dx, dy in ((0, 0), (1, 0), (1, 1), (0, 1))
                ]
                lines.append(f"{number}, " + ", ".join(map(str, corners)))
    lines += ["*MATERIAL, NAME=STEEL", "*ELASTIC", "210000, 0.3"]
    lines += ["*SOLID SECTION, ELSET=BEAM, MATERIAL=STEEL", "*BOUNDARY"]
    lines += [f"{node(0, y, z)}, 1, 3" for z in range(nz + 1) for y in range(ny + 1)]
    lines += ["*STEP", "*STATIC, SOLVER=ITERATIVE CHOLESKY", "*CLOAD"]
    for z in range(nz + 1):
        for y in range(ny + 1):
            lines.append(f"{node(nx, y, z)}, 3, {-1 - draw.real():.4f}")
    lines += ["*NODE PRINT, NSET=ALL, TOTALS=ONLY", "RF", "*END STEP"]
    write("beam.inp", "\n".join(lines) + "\n")


INPUTS = {
    "bzip2": plain_text(6_000_000),
    "xz": plain_text(800_000),
    "zstd": plain_text(1_000_000),
    "gzip": plain_text(6_000_000),
    "openssl": plain_text(64_000),
    "povray": povray,
    "hmmer": hmmer,
    "bwa": genome,
    "glpk": linear_program,
    "minisat": satisfiability,
    "perl": perl,
    "sqlite": database,
    "gcc": c_source,
    "x264": video,
    "calculix": beam,
    **computing.INPUTS,
    **science.INPUTS,
}


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in INPUTS:
        sys.exit(f"{__doc__}\nprograms: {', '.join(INPUTS)}")
    INPUTS[sys.argv[1]](Draw(int(sys.argv[2]) if len(sys.argv) == 3 else 1))


if __name__ == "__main__":
    main()
