"""Inputs of interpreters, solvers, tools and codecs."""

from draw import text, write


def xalan(draw):
    """An order book, which is sorted, grouped and searched."""
    rows = ["<?xml version='1.0'?>", "<orders>"]
    for number in range(2500):
        lines = "".join(
            f"<line item='{draw.below(400)}' count='{1 + draw.below(9)}'>"
            f"{draw.word('abcdefgh', 3, 12)}</line>"
            for _ in range(1 + draw.below(6))
        )
        rows.append(f"<order id='{number}' client='{draw.below(300)}'>{lines}</order>")
    write("orders.xml", "\n".join(rows + ["</orders>", ""]))
    write(
        "report.xsl",
        """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:key name="by-item" match="line" use="@item"/>
<xsl:template match="/"><report>
<xsl:for-each select="orders/order"><xsl:sort select="sum(line/@count)" data-type="number"/>
<xsl:sort select="@client"/><o id="{@id}"><xsl:apply-templates select="line"/></o></xsl:for-each>
<xsl:for-each select="orders/order[position() &lt; 700]">
<more n="{count(preceding-sibling::order[@client = current()/@client])}"/></xsl:for-each>
</report></xsl:template>
<xsl:template match="line"><l same="{count(key('by-item', @item)[@count &gt; 4])}">
<xsl:if test="contains(., 'ab') or starts-with(., 'c')"><xsl:value-of
select="translate(., 'abc', 'xyz')"/></xsl:if></l></xsl:template>
</xsl:stylesheet>
""",
    )


def verilog(draw):
    """Gates and registers that were drawn, simulated event by event."""
    gates, registers = 2600, 900
    lines = ["`timescale 1ns/1ns", "module top; reg clock = 0; integer i;"]
    source = lambda n: f"w{draw.below(n)}" if n and draw.below(2) else f"r{draw.below(registers)}"
    lines += [f"reg r{n} = {draw.below(2)};" for n in range(registers)]
    for n in range(gates):
        kind = draw.pick(["nand", "nor", "xor", "and", "or"])
        lines.append(f"wire w{n}; {kind} #{1 + draw.below(4)} (w{n}, {source(n)}, {source(n)});")
    lines.append("initial begin for (i = 0; i < 130; i = i + 1)")
    lines.append('begin #60 clock = 1; #60 clock = 0; end $display("%b", r0); $finish; end')
    lines.append("always @(posedge clock) begin")
    lines += [f"r{n} <= w{draw.below(gates)} ^ r{draw.below(registers)};" for n in range(registers)]
    write("gates.v", "\n".join(lines + ["end", "endmodule", ""]))


def awk(draw):
    write("text.txt", text(draw, 1_200_000))
    write(
        "count.awk",
        """{
    for (i = 1; i <= NF; i++) {
        word = $i; sub(/[.]$/, "", word)
        count[word]++; pair[last, word] += length(word)
        if (word ~ /^[a-m].*[aeiou]$/) total += index($0, word) % 7
        last = word
    }
}
END {
    for (key in pair) { split(key, parts, SUBSEP); by[parts[1]] += pair[key] * count[parts[2]] }
    for (word in by) if (by[word] > best) { best = by[word]; which = word }
    print which, best, total, length(pair)
}
""",
    )


def lines_to_sort(draw):
    write("lines.txt", "".join(
        f"{draw.word('abcdefghijklmnop', 4, 10)} {draw.below(100000)} {draw.word('xyz', 5, 25)}\n"
        for _ in range(270_000)
    ))


INPUTS = {
    "xalan": xalan,
    "iverilog": verilog,
    "gawk": awk,
    "sort": lines_to_sort,
}
