"""Inputs of scientific programs."""

import itertools
import math

from draw import write


def points(draw):
    """Points near a sphere of four dimensions."""
    lines = ["4", "18000"]
    for _ in range(18000):
        x = [draw.real() - 0.5 for _ in range(4)]
        size = math.sqrt(sum(v * v for v in x)) or 1
        scale = (0.97 + 0.03 * draw.real()) / size
        lines.append(" ".join(f"{v * scale:.6f}" for v in x))
    write("points.txt", "\n".join(lines) + "\n")


MOLTEN = """\
[ defaults ]
; Lennard-Jones, Lorentz-Berthelot
1 2 no 1.0 1.0

[ atomtypes ]
; name, mass, charge, kind, sigma (nm), epsilon (kJ/mol): Joung and Cheatham, 2008
Na 22.990 1.0 A 0.2439 0.3658
Cl 35.453 -1.0 A 0.4478 0.1489

[ moleculetype ]
Na 1
[ atoms ]
1 Na 1 Na Na 1 1.0

[ moleculetype ]
Cl 1
[ atoms ]
1 Cl 1 Cl Cl 1 -1.0

[ system ]
molten salt
[ molecules ]
"""

# Electrostatics by particle mesh Ewald; 1500 K.
STEPS = """\
integrator = md
dt = 0.001
nsteps = 800
nstlist = 10
coulombtype = PME
rcoulomb = 1.0
rvdw = 1.0
fourierspacing = 0.12
tcoupl = v-rescale
tc-grps = System
tau-t = 0.1
ref-t = 1500
gen-vel = yes
gen-temp = 1500
gen-seed = 1
ld-seed = 1
nstenergy = 0
nstlog = 0
nstcalcenergy = 10
"""


def molten_salt(draw):
    """A thousand ions of sodium chloride, near a lattice, for gromacs."""
    side, apart = 10, 0.32
    kinds = {"Na": [], "Cl": []}
    for x, y, z in itertools.product(range(side), repeat=3):
        kind = "Na" if (x + y + z) % 2 == 0 else "Cl"
        place = [apart * at + 0.04 * (draw.real() - 0.5) for at in (x, y, z)]
        kinds[kind].append("".join(f"{at:8.3f}" for at in place))
    ions = [(kind, place) for kind, places in kinds.items() for place in places]
    lines = ["molten salt", str(len(ions))]
    for number, (kind, place) in enumerate(ions, 1):
        lines.append(f"{number:5}{kind:5}{kind:>5}{number:5}{place}")
    lines.append(" ".join([f"{side * apart:.5f}"] * 3))
    write("conf.gro", "\n".join(lines) + "\n")
    counts = "".join(f"{kind} {len(places)}\n" for kind, places in kinds.items())
    write("topol.top", MOLTEN + counts)
    write("grompp.mdp", STEPS)


INPUTS = {
    "gromacs": molten_salt,
    "qhull": points,
}
