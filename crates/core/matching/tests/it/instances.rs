//! Seeded costs as an interference model makes them; also used by the bench.
//!
//! The generator is written out, so that a seed means the same with any
//! version of any library, on any machine.

/// SplitMix64 (Steele, Lea, Flood, 2014).
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// In 0..limit.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }
}

/// Components of a CPI stack.
const COMPONENTS: usize = 6;

/// CPI stacks of threads (each sums to 1), and a forward model of how
/// components grow together: α + β x + (γ + δ x) × (sum of the others' x), as
/// in Feliu et al., equations 1 to 3.
pub struct Stacks {
    threads: Vec<[f64; COMPONENTS]>,
    model: [[f64; 4]; COMPONENTS],
}

impl Stacks {
    pub fn new(threads: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let model = std::array::from_fn(|_| {
            let mut between = |low: f64, high: f64| low + (high - low) * random.unit();
            [between(0.0, 0.02), between(0.8, 1.2), between(0.05, 0.4), between(0.0, 1.0)]
        });
        let threads = (0..threads).map(|_| stack(&mut random)).collect();
        Self { threads, model }
    }

    /// Threads of few programs, each of which runs in many copies that differ by a little.
    pub fn copies(threads: usize, programs: usize, seed: u64) -> Self {
        let own = Self::new(programs, seed);
        let mut random = Random::new(!seed);
        let mut copy = |at: usize| {
            let raw = own.threads[at % programs].map(|x| x * (1.0 + 0.05 * random.unit()));
            let sum: f64 = raw.iter().sum();
            raw.map(|x| x / sum)
        };
        Self { threads: (0..threads).map(&mut copy).collect(), model: own.model }
    }

    /// The next quantum: noise on each component of each stack, and new stacks for a share of the
    /// threads.
    pub fn later(&mut self, noise: f64, new: f64, random: &mut Random) {
        for thread in &mut self.threads {
            if random.unit() < new {
                *thread = stack(random);
            }
            let raw = thread.map(|x| x * (1.0 + noise * (2.0 * random.unit() - 1.0)));
            let sum: f64 = raw.iter().sum();
            *thread = raw.map(|x| x / sum);
        }
    }

    /// Slowdown of each thread of a group.
    fn slowdowns<'a>(&'a self, group: &'a [usize]) -> impl Iterator<Item = f64> + 'a {
        let mut sums = [0.0; COMPONENTS];
        for &thread in group {
            for (sum, x) in sums.iter_mut().zip(&self.threads[thread]) {
                *sum += x;
            }
        }
        group.iter().map(move |&thread| {
            let parts = self.threads[thread].iter().zip(&sums).zip(&self.model);
            parts.map(|((x, sum), [a, b, c, d])| a + b * x + (c + d * x) * (sum - x)).sum()
        })
    }

    /// Sum of the slowdowns.
    pub fn slowdown(&self, group: &[usize]) -> f64 {
        self.slowdowns(group).sum()
    }

    /// The group's loss against full speed of each thread: least where STP is
    /// highest.
    pub fn loss(&self, group: &[usize]) -> f64 {
        self.slowdowns(group).map(|s| 1.0 - 1.0 / s).sum()
    }
}

fn stack(random: &mut Random) -> [f64; COMPONENTS] {
    // Few large components, many small ones.
    let raw: [f64; COMPONENTS] = std::array::from_fn(|_| {
        let x = random.unit();
        x * x * x + 0.01
    });
    let sum: f64 = raw.iter().sum();
    raw.map(|x| x / sum)
}
