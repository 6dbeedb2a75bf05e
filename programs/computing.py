"""Inputs of interpreters, solvers, tools and codecs."""

from draw import write


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


INPUTS = {
    "xalan": xalan,
}
