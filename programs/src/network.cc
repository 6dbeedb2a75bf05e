// Minimum-cost flow by LEMON's network simplex on a random network.
#include <cstdint>
#include <cstdio>
#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

int main() {
    using namespace lemon;
    const int nodes = 16000, arcs = 110000;
    uint64_t state = 88172645463325252u;
    auto draw = [&](uint64_t limit) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return static_cast<int>(state % limit);
    };
    SmartDigraph graph;
    graph.reserveNode(nodes);
    graph.reserveArc(arcs + nodes);
    for (int i = 0; i < nodes; i++) graph.addNode();
    SmartDigraph::ArcMap<int> capacity(graph), cost(graph);
    SmartDigraph::NodeMap<int> supply(graph, 0);
    auto join = [&](int from, int to, int room, int price) {
        auto arc = graph.addArc(graph.nodeFromId(from), graph.nodeFromId(to));
        capacity[arc] = room;
        cost[arc] = price;
    };
    for (int i = 0; i < nodes; i++) join(i, (i + 1) % nodes, 1000000, 5000);
    for (int i = 0; i < arcs; i++) join(draw(nodes), draw(nodes), 1 + draw(400), 1 + draw(1000));
    for (int i = 0; i < nodes / 4; i++) {
        int amount = 1 + draw(60);
        supply[graph.nodeFromId(draw(nodes))] += amount;
        supply[graph.nodeFromId(draw(nodes))] -= amount;
    }
    NetworkSimplex<SmartDigraph> solver(graph);
    solver.upperMap(capacity).costMap(cost).supplyMap(supply);
    if (solver.run() != NetworkSimplex<SmartDigraph>::OPTIMAL) return 1;
    std::printf("%lld\n", static_cast<long long>(solver.totalCost<long long>()));
}
