//! Durations as they stand on a command line.

use std::time::Duration;

/// The longest duration that is taken: a hundred years. Adding it to a clock
/// does not overflow.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Reads a duration: a number, whole or with a fraction, and `ms`, `s`, `m`,
/// `h` or `d`; seconds when nothing follows. For `#[argh(from_str_fn(…))]`.
pub fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok_or_else(|| "not a duration, such as 5, 0.5s, 2m or 250ms".to_owned())
        .and_then(|d| if d <= LONGEST { Ok(d) } else { Err("longer than 100 years".to_owned()) })
}

/// The duration, [`Duration::MAX`] when it is out of range; none when it is malformed.
fn parse_duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit_ns: u128 = match unit {
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    // All digits by now, so what does not parse is too large. Digits beyond
    // nanoseconds of a day's fraction say nothing.
    let fraction = &fraction[..fraction.len().min(15)];
    let part: u128 = fraction.parse().ok()?;
    let part_ns = part * unit_ns / 10u128.pow(fraction.len() as u32);
    let whole = whole.parse().unwrap_or(u64::MAX);
    let ns = u128::from(whole) * unit_ns + part_ns;
    let seconds = u64::try_from(ns / 1_000_000_000).unwrap_or(u64::MAX);
    Some(Duration::new(seconds, (ns % 1_000_000_000) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_units_of_the_contract() {
        let ms = Duration::from_millis;
        for (text, want) in [
            ("5", ms(5_000)),
            ("5s", ms(5_000)),
            ("2m", ms(120_000)),
            ("250ms", ms(250)),
            ("1h", ms(3_600_000)),
            ("1d", ms(86_400_000)),
            ("0", ms(0)),
            ("0.5s", ms(500)),
            ("1.5", ms(1_500)),
            ("0.25m", ms(15_000)),
            ("0.0000000019s", Duration::from_nanos(1)),
            ("36500d", LONGEST),
        ] {
            assert_eq!(duration(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn malformed_and_endless_durations_are_refused() {
        for text in [
            "", "s", "-5", "+5", " 5", "5 ", "5 s", ".5s", "5.", "1.2.3", "5sec", "5S", "1e3",
            "٥s", "5ms5", "0x5", "inf", "NaN", "5\0", "5s ",
        ] {
            assert!(duration(text).is_err_and(|e| e.starts_with("not a")), "{text:?}");
        }
        let nines = "9".repeat(500);
        for text in
            ["36501d", "36500.1d", "18446744073709551615d", &nines, &format!("{nines}.{nines}d")]
        {
            assert_eq!(duration(text), Err("longer than 100 years".to_owned()));
        }
    }
}
