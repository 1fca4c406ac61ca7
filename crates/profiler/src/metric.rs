//! Numbers and texts that a program gives for a scope or a kernel.

use serde_json::Value as Json;

/// The value of a metric.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text, which cannot be added up.
    Text(String),
}

impl Value {
    /// For a file.
    pub fn json(&self) -> Json {
        match self {
            Value::Int(value) => Json::from(*value),
            Value::Float(value) => Json::from(*value),
            Value::Text(text) => Json::from(text.as_str()),
        }
    }

    /// Adds another value; a text takes the place of what was there. A sum too large for a whole number becomes a float.
    fn add(&mut self, other: Value) {
        let float = |value: &Value| match value {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            Value::Text(_) => None,
        };
        if let (Value::Int(a), Value::Int(b)) = (&*self, &other)
            && let Some(sum) = a.checked_add(*b)
        {
            *self = Value::Int(sum);
        } else if let (Some(a), Some(b)) = (float(self), float(&other)) {
            *self = Value::Float(a + b);
        } else {
            *self = other;
        }
    }
}

/// How a metric's values go together, which the end of its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Added up at each path, and what a path has counts for those above it, too: no ending, or `(inc)`.
    Inclusive,
    /// Added up at each path alone: `(exc)`.
    Exclusive,
    /// The last value holds: `(pty)`.
    Property,
}

/// A metric at one path.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// How values go together.
    pub kind: Kind,
    /// The value so far.
    pub value: Value,
}

impl Metric {
    /// A name without the ending that says its kind, and the kind.
    pub fn parse(name: &str) -> (String, Kind) {
        for (ending, kind) in
            [("(inc)", Kind::Inclusive), ("(exc)", Kind::Exclusive), ("(pty)", Kind::Property)]
        {
            if let Some(name) = name.trim_end().strip_suffix(ending) {
                return (name.trim_end().to_string(), kind);
            }
        }
        (name.to_string(), Kind::Inclusive)
    }

    /// Takes another value.
    pub fn update(&mut self, value: Value) {
        match self.kind {
            Kind::Property => self.value = value,
            Kind::Inclusive | Kind::Exclusive => self.value.add(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_says_the_kind() {
        assert_eq!(Metric::parse("flops"), ("flops".into(), Kind::Inclusive));
        assert_eq!(Metric::parse("cpu_time (ns)(exc)"), ("cpu_time (ns)".into(), Kind::Exclusive));
        assert_eq!(Metric::parse("shape (pty)"), ("shape".into(), Kind::Property));
        assert_eq!(Metric::parse("bytes (inc)"), ("bytes".into(), Kind::Inclusive));
        assert_eq!(Metric::parse("(exc) first"), ("(exc) first".into(), Kind::Inclusive));
    }

    #[test]
    fn values_add_up() {
        let mut metric = Metric { kind: Kind::Inclusive, value: Value::Int(i64::MAX - 1) };
        metric.update(Value::Int(1));
        assert_eq!(metric.value, Value::Int(i64::MAX));
        metric.update(Value::Int(1));
        assert_eq!(metric.value, Value::Float(9_223_372_036_854_775_808.0));
        metric.update(Value::Float(1e300));
        assert_eq!(metric.value, Value::Float(1e300));
        metric.update(Value::Text("now".into()));
        assert_eq!(metric.value, Value::Text("now".into()));
        let mut property = Metric { kind: Kind::Property, value: Value::Float(1.0) };
        property.update(Value::Float(1.0));
        assert_eq!(property.value, Value::Float(1.0));
    }
}
