use super::*;

fn call<const N: usize>(symbol: &str, args: [f64; N]) -> f64 {
    let function = of_symbol(symbol).expect("a function");
    let bytes = args.map(f64::to_ne_bytes);
    let args: Vec<&[u8]> = bytes.iter().map(|b| &b[..]).collect();
    let mut out = [0; 8];
    (function.elements)(&args, &mut out);
    f64::from_ne_bytes(out)
}

#[test]
fn symbols_differ_and_rows_of_a_name_stand_together() {
    let mut symbols = std::collections::HashSet::new();
    for f in all() {
        assert!(symbols.insert(f.symbol), "{}", f.symbol);
        assert!(f.symbol.starts_with("__nv_"));
        assert!(overloads(f.name).iter().any(|g| g.symbol == f.symbol));
        let types: Vec<_> = overloads(f.name).iter().filter(|g| g.params == f.params).collect();
        assert_eq!(types.len(), 1, "{} of one signature", f.name);
    }
    let names: std::collections::HashSet<_> = all().iter().map(|f| f.name).collect();
    assert_eq!(names.len(), 198);
    assert!(overloads("none").is_empty() && of_symbol("__nv_none").is_none());
}

#[test]
fn the_page_is_what_the_table_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/libdevice.md");
    if std::env::var_os("TILEWRIGHT_BLESS").is_some() {
        std::fs::write(path, markdown()).expect("written");
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), markdown(), "bless it");
}

#[test]
fn inverses_go_back() {
    for p in [1e-300, 1e-20, 1e-3, 0.2, 0.49, 0.5, 0.7, 0.999, 1.0, 1.2, 1.7] {
        let back = libm::erfc(call("__nv_erfcinv", [p]));
        assert!((back - p).abs() <= 1e-12 * p, "{p}: {back}");
    }
    for p in [-0.999_999, -0.6, -1e-10, 0.0, 1e-310, 0.3, 0.5, 0.500_001, 0.99] {
        let back = libm::erf(call("__nv_erfinv", [p]));
        assert!((back - p).abs() <= 1e-15 * p.abs(), "{p}: {back}");
    }
}

#[test]
fn directed_roundings_enclose_the_exact_result() {
    for (x, y) in [(1.0, 3.0), (1e300, 1e300), (5e-324, 5e-324), (-1.0, 1e-30), (0.1, 0.2)] {
        for op in ["add", "sub", "mul", "div"] {
            let [down, near, up, zero] =
                ["rd", "rn", "ru", "rz"].map(|r| call(&format!("__nv_d{op}_{r}"), [x, y]));
            assert!(down <= near && near <= up, "{op} {x} {y}: {down} {near} {up}");
            assert!(up == down || up == down.next_up(), "{op} {x} {y}: {down} {up}");
            assert_eq!(zero, if near < 0.0 { up } else { down });
        }
    }
    for x in [2.0, 4.0, 1e-323, 1e308, 0.1] {
        let [down, up] = ["rd", "ru"].map(|r| call(&format!("__nv_dsqrt_{r}"), [x]));
        assert!(up == down || up == down.next_up());
        assert_eq!(up == down, x == 4.0, "{x}");
    }
}
