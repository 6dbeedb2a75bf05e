//! The papers' programs, and which of ours stand for them where programs are drawn from a pool.

/// Where a program is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// SPEC CPU2006.
    Cpu2006,
    /// SPEC CPU2017, rate.
    Cpu2017,
    /// SciMark 2.0.
    SciMark,
}

/// Suites that Feliu et al. and Peternier et al. took programs from.
pub const CPU2006: &[Suite] = &[Suite::Cpu2006];
/// Suites that Navarro et al. took programs from.
pub const CPU2006_AND_2017: &[Suite] = &[Suite::Cpu2006, Suite::Cpu2017];

/// A program of the papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// Its name behind the number that its suite gives it: `429.mcf`.
    pub full: &'static str,
    /// Where it is from.
    pub suite: Suite,
    /// Ours that stand for it in pools (`programs/programs.toml` says why).
    pub stand_ins: &'static [&'static str],
}

impl Named {
    /// Its name alone: `mcf`.
    pub fn short(&self) -> &'static str {
        self.full.split_once('.').map_or(self.full, |(_, short)| short)
    }
}

const fn cpu2006(full: &'static str, stand_ins: &'static [&'static str]) -> Named {
    Named { full, suite: Suite::Cpu2006, stand_ins }
}

const fn cpu2017(full: &'static str, stand_ins: &'static [&'static str]) -> Named {
    Named { full, suite: Suite::Cpu2017, stand_ins }
}

const fn scimark(full: &'static str) -> Named {
    Named { full, suite: Suite::SciMark, stand_ins: &[] }
}

/// All that may be given.
pub const NAMED: &[Named] = &[
    cpu2006("400.perlbench", &["perl", "gawk"]),
    cpu2006("401.bzip2", &["bzip2"]),
    cpu2006("403.gcc", &["gcc"]),
    cpu2006("410.bwaves", &["cg"]),
    cpu2006("416.gamess", &[]),
    cpu2006("429.mcf", &["network"]),
    cpu2006("433.milc", &[]),
    cpu2006("434.zeusmp", &["fftw"]),
    cpu2006("435.gromacs", &["gromacs"]),
    cpu2006("436.cactusADM", &[]),
    cpu2006("437.leslie3d", &[]),
    cpu2006("444.namd", &[]),
    cpu2006("445.gobmk", &["gnugo"]),
    cpu2006("447.dealII", &[]),
    cpu2006("450.soplex", &["glpk", "cholmod"]),
    cpu2006("453.povray", &["povray"]),
    cpu2006("454.calculix", &["calculix"]),
    cpu2006("456.hmmer", &["hmmer"]),
    cpu2006("458.sjeng", &[]),
    cpu2006("459.GemsFDTD", &[]),
    cpu2006("462.libquantum", &["stream"]),
    cpu2006("464.h264ref", &["x264"]),
    cpu2006("465.tonto", &[]),
    cpu2006("470.lbm", &["lbm"]),
    cpu2006("471.omnetpp", &["iverilog", "chase"]),
    cpu2006("473.astar", &[]),
    cpu2006("481.wrf", &[]),
    cpu2006("482.sphinx3", &[]),
    cpu2006("483.xalancbmk", &["xalan"]),
    cpu2017("500.perlbench_r", &[]),
    cpu2017("502.gcc_r", &[]),
    cpu2017("503.bwaves_r", &[]),
    cpu2017("505.mcf_r", &[]),
    cpu2017("507.cactuBSSN_r", &[]),
    cpu2017("508.namd_r", &[]),
    cpu2017("510.parest_r", &[]),
    cpu2017("511.povray_r", &[]),
    cpu2017("519.lbm_r", &[]),
    cpu2017("520.omnetpp_r", &[]),
    cpu2017("521.wrf_r", &[]),
    cpu2017("523.xalancbmk_r", &[]),
    cpu2017("525.x264_r", &[]),
    cpu2017("526.blender_r", &[]),
    cpu2017("527.cam4_r", &["fft"]),
    cpu2017("531.deepsjeng_r", &[]),
    cpu2017("538.imagick_r", &["imagemagick"]),
    cpu2017("541.leela_r", &[]),
    cpu2017("544.nab_r", &[]),
    cpu2017("548.exchange2_r", &[]),
    cpu2017("549.fotonik3d_r", &[]),
    cpu2017("554.roms_r", &[]),
    cpu2017("557.xz_r", &["xz", "zstd"]),
    scimark("SciMark.FFT"),
    scimark("SciMark.SOR"),
    scimark("SciMark.MC"),
    scimark("SciMark.MM"),
    scimark("SciMark.LU"),
];

/// Spellings of the papers.
const ALIASES: [(&str, &str); 2] = [("perl", "400.perlbench"), ("cactusBSSN_r", "507.cactuBSSN_r")];

/// The program of a name: in full, without its number, or as a paper spells it.
pub fn find(name: &str) -> Option<&'static Named> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, full)| full);
    NAMED.iter().find(|named| named.full == name || named.short() == name)
}

/// The program of these suites that one of ours stands for in pools.
pub fn stands_for(ours: &str, suites: &[Suite]) -> Option<&'static Named> {
    NAMED.iter().find(|named| suites.contains(&named.suite) && named.stand_ins.contains(&ours))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_program_has_names_and_stand_ins_of_its_own() {
        let (mut names, mut stand_ins) = (BTreeSet::new(), BTreeSet::new());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../profiles");
        for named in NAMED {
            for name in [named.full, named.short()] {
                assert!(names.insert(name), "{name} is there twice");
                assert_eq!(find(name), Some(named));
            }
            for ours in named.stand_ins {
                assert!(stand_ins.insert(ours), "{ours} stands for two");
                let path = format!("{folder}/{ours}.profile");
                assert!(std::path::Path::new(&path).exists(), "{path}");
                assert_eq!(stands_for(ours, CPU2006_AND_2017), Some(named));
            }
        }
        for (alias, full) in ALIASES {
            assert!(names.insert(alias), "{alias} is there twice");
            assert_eq!(find(alias).map(|named| named.full), Some(full));
        }
        assert_eq!(find("network"), None);
        assert_eq!(stands_for("xz", CPU2006), None);
        assert_eq!(stands_for("bwa", CPU2006_AND_2017), None);
    }

    /// What `programs/programs.toml` says a program mirrors is what it stands for, if anything.
    #[test]
    fn stand_ins_are_those_of_the_list_of_programs() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../programs/programs.toml");
        let listed: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        for program in listed["program"].as_array().unwrap() {
            let [name, mirrors] = ["name", "mirrors"].map(|key| program[key].as_str().unwrap());
            let mirrored = mirrors.split(' ').next().and_then(find);
            // Table 1 of Navarro et al. runs this kernel of transforms for a model of the climate.
            let own = if name == "fft" { find("cam4_r") } else { mirrored };
            assert_eq!(stands_for(name, CPU2006_AND_2017), own, "{name}: {mirrors}");
        }
    }
}
