//! Plans and tracks executed in virtual time and on threads of this process; the load driver; the calibration.

mod buckets;
mod calibration;
mod common;
mod following;
mod fuzz;
mod live;
mod load;
mod runs;
mod tracks;
mod writers;
