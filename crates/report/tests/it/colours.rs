//! Whoever does not tell some colours apart still tells the limits apart, and words stand out from their ground.

const CSS: &str = include_str!("../../src/page/page.css");
const COLOURS: [&str; 12] = [
    "latency", "link-rate", "loss", "throttle", "disk-read", "disk-write", "cpu", "slots",
    "memory", "proxy", "coordination", "neutral",
];
/// What the eye still tells apart side by side, as a distance in OKLab.
const LEAST: f64 = 0.02;

/// Sight without one kind of cone, on linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
const SIGHTS: [(&str, [[f64; 3]; 3]); 4] = [
    ("all cones", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protanopia",
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
    ),
    (
        "deuteranopia",
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
    ),
    (
        "tritanopia",
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ),
];

/// Linear RGB of `#rrggbb`.
fn linear(colour: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

fn product(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
}

/// Coordinates in OKLab (Ottosson 2020), in which distances are as large as they look.
fn oklab(rgb: [f64; 3]) -> [f64; 3] {
    let cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ];
    let axes = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ];
    product(axes, product(cones, rgb).map(f64::cbrt))
}

/// Linear RGB of a name: the first value is that on a light ground, the second that on a dark one.
fn colour(name: &str, theme: usize) -> [f64; 3] {
    let property = format!("--{name}: ");
    let found = CSS.split(property.as_str()).nth(theme + 1);
    linear(&found.unwrap_or_else(|| panic!("{name} has no colour"))[..7])
}

/// Of words on a ground, as WCAG 2 has it: 4.5 is readable for most.
fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let light = |[r, g, b]: [f64; 3]| 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    let (one, other) = (light(one), light(other));
    one.max(other) / one.min(other)
}

#[test]
fn words_are_readable_on_every_ground() {
    for theme in 0..2 {
        for (words, ground) in
            [("ink", "ground"), ("ink", "raised"), ("soft", "ground"), ("soft", "raised")]
        {
            let found = contrast(colour(words, theme), colour(ground, theme));
            assert!(found >= 4.5, "{words} on {ground}, theme {theme}: {found}");
        }
        for limit in COLOURS {
            let rule = CSS.split(&format!(".{limit} {{")).nth(1).unwrap();
            let words = rule.split("--on: var(--").nth(1).unwrap().split(')').next().unwrap();
            let found = contrast(colour(words, theme), colour(limit, theme));
            assert!(found >= 4.5, "words in {limit}, theme {theme}: {found}");
        }
    }
}

#[test]
fn every_two_limits_can_be_told_apart_by_everybody() {
    for theme in 0..2 {
        let value = |name: &str| colour(name, theme);
        for (at, one) in COLOURS.iter().enumerate() {
            for other in &COLOURS[..at] {
                for (sight, matrix) in SIGHTS {
                    let seen = |name| {
                        oklab(product(matrix, value(name)).map(|light: f64| light.clamp(0.0, 1.0)))
                    };
                    let (a, b) = (seen(one), seen(other));
                    let apart = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                    assert!(apart >= LEAST, "{one} and {other}, {sight}, theme {theme}: {apart}");
                }
            }
        }
    }
}
