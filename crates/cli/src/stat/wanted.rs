//! Which formulas are shown, in which tables.

use symbiont_counters::catalogue::{Catalogue, Quantity, Unit};

/// Formulas that stand in one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Names of formulas.
    pub formulas: Vec<String>,
}

/// The formulas that the user named, or the most informative ones: IPC and CPI
/// stack, Top-Down, units, misses, as far as the catalogue has them; all it
/// has if none of these.
///
/// # Errors
/// When the user named a formula that the catalogue has not.
pub fn sections(catalogue: &Catalogue, named: &[String]) -> anyhow::Result<Vec<Section>> {
    if !named.is_empty() {
        if let Some(unknown) = named.iter().find(|name| catalogue.formula(name).is_none()) {
            let known: Vec<_> = catalogue.formulas().iter().map(|f| f.name.as_str()).collect();
            anyhow::bail!(
                "the catalogue {} has no formula '{unknown}'; it has: {}",
                catalogue.name(),
                known.join(", ")
            );
        }
        return Ok(vec![Section { title: "Formulas".to_owned(), formulas: named.to_vec() }]);
    }
    let known = |names: &[&str]| -> Vec<String> {
        let there = names.iter().filter(|name| catalogue.formula(name).is_some());
        there.map(|name| (*name).to_owned()).collect()
    };
    let mut cycles = known(&["ipc", "cpi"]);
    if let Some(stack) = catalogue.sums().iter().find(|sum| sum.name == "cpi_stack") {
        cycles.extend(stack.parts.iter().cloned());
    }
    // The level that splits the back end is most informative for its width.
    let lists = catalogue.categories().iter().filter(|list| list.name.starts_with("Top"));
    let list = lists.clone().find(|list| list.name == "TopB2L").or_else(|| lists.clone().next());
    let top_down = list.map(|list| list.members.clone()).unwrap_or_default();
    let units = known(&["fpu_usage", "l1d_bandwidth"]);
    let misses = known(&["l2_miss_rate", "llc_miss_rate", "memory_request_rate"]);
    let usual = [
        ("IPC and CPI stack", cycles),
        ("Top-Down", top_down),
        ("Units and memory", [units, misses].concat()),
    ];
    let usual = usual.map(|(title, formulas)| Section { title: title.to_owned(), formulas });
    let mut sections: Vec<Section> = usual.into_iter().filter(|s| !s.formulas.is_empty()).collect();
    if sections.is_empty() {
        // CPU time has a column of its own.
        let is_shown = |unit: Unit| unit != Unit::Of(Quantity::Nanoseconds);
        let all = catalogue.formulas().iter().filter(|formula| is_shown(formula.unit));
        let formulas = all.map(|formula| formula.name.clone()).collect();
        sections.push(Section { title: catalogue.title().to_owned(), formulas });
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, formulas: &[&str]) -> anyhow::Result<Vec<Section>> {
        let formulas: Vec<String> = formulas.iter().map(|&name| name.to_owned()).collect();
        sections(&Catalogue::named(name).unwrap().unwrap(), &formulas)
    }

    #[test]
    fn every_catalogue_has_something_to_show() {
        for (name, _) in Catalogue::builtin() {
            let catalogue = Catalogue::named(name).unwrap().unwrap();
            let found = named(name, &[]).unwrap();
            let formulas: Vec<_> = found.iter().flat_map(|section| &section.formulas).collect();
            assert!(!formulas.is_empty(), "{name}");
            assert!(formulas.iter().all(|formula| catalogue.formula(formula).is_some()), "{name}");
        }
        let titles: Vec<_> = named("zen4", &[]).unwrap().into_iter().map(|s| s.title).collect();
        assert_eq!(titles, ["IPC and CPI stack", "Top-Down", "Units and memory"]);
        assert!(named("software", &[]).unwrap()[0].formulas.contains(&"fault_rate".to_owned()));
    }

    #[test]
    fn formulas_can_be_named_and_unknown_ones_are_refused() {
        let one = named("power8", &["ipc"]).unwrap();
        assert_eq!(one[0].formulas, ["ipc"]);
        let said = named("power8", &["ipcs"]).unwrap_err().to_string();
        assert!(said.contains("no formula 'ipcs'") && said.contains("cpi_stall"), "{said}");
    }
}
