//! Layout algebra: linear layouts over F2, encodings, conversions and swizzles.
