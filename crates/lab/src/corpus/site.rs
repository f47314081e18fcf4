//! A web site whose log is written: pages, of which few are asked for by most.

use super::random::Random;
use super::weighted::Weighted;

/// What an answer sends.
pub(super) struct Page {
    pub(super) path: String,
    pub(super) bytes: u64,
}

/// Pages by how often they are asked for.
pub(super) struct Site {
    pages: Vec<Page>,
    by_rank: Weighted,
}

impl Site {
    /// So many pages; `page` makes the one of a rank. Zipf's law, flattened at its head by `shift`.
    pub(super) fn new(pages: usize, shift: f64, page: impl FnMut(usize) -> Page) -> Site {
        Site { pages: (0..pages).map(page).collect(), by_rank: Weighted::zipf(pages, shift) }
    }

    /// The page that somebody asks for next.
    pub(super) fn visited(&self, random: &mut Random) -> &Page {
        &self.pages[self.by_rank.draw(random)]
    }

    /// Any page, whether it is asked for often or not.
    pub(super) fn any(&self, random: &mut Random) -> &Page {
        random.pick(&self.pages)
    }
}
