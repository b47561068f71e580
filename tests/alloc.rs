//! To be written.
#[test] fn x() {}
