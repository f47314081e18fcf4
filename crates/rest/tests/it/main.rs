//! The surface as a page, and each API sent to a node.

mod documented;
mod surface;
