//! Pixels of a picture, by resvg, with one font that this crate carries: no
//! font of the machine is used, so every machine makes the same bytes.

use super::PlotError;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Pixels of the PNG for each pixel of the SVG.
const SCALE: f32 = 2.0;

/// A PNG of a stand-alone SVG.
pub(crate) fn png(svg: &str) -> Result<Vec<u8>, PlotError> {
    let mut options = Options { font_family: "Noto Sans".to_owned(), ..Options::default() };
    let fonts = options.fontdb_mut();
    fonts.load_font_data(notosans::REGULAR_TTF.to_vec());
    fonts.load_font_data(notosans::BOLD_TTF.to_vec());
    fonts.set_sans_serif_family("Noto Sans");
    let tree = Tree::from_str(svg, &options).map_err(failed)?;
    let size = tree.size();
    let pixels = |length: f32| (length * SCALE).ceil() as u32;
    let mut map = Pixmap::new(pixels(size.width()), pixels(size.height()))
        .ok_or_else(|| failed("the picture has no size"))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut map.as_mut());
    map.encode_png().map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> PlotError {
    PlotError::Raster(error.to_string())
}
