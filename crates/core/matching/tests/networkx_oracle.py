"""Least weights of perfect matchings, by networkx.

Reads an instance from each line of standard input: rows of a symmetric matrix of
integers, separated by semicolons. Prints the version of networkx, then a line
with the least weight for each instance.
"""

import sys

import networkx

print(networkx.__version__)
for line in sys.stdin:
    rows = [[int(cell) for cell in row.split()] for row in line.split(";")]
    graph = networkx.Graph()
    for i, row in enumerate(rows):
        for j in range(i + 1, len(rows)):
            # Without negations inside networkx, which would round large ones.
            graph.add_edge(i, j, weight=-row[j])
    pairs = networkx.max_weight_matching(graph, maxcardinality=True)
    assert 2 * len(pairs) == len(rows)
    print(sum(rows[i][j] for i, j in pairs), flush=True)
