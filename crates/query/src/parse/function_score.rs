//! `function_score` from JSON.

use super::options::Options;
use super::query::Reader;
use crate::error::{Result, ensure};
use crate::json::Node;
use crate::query::{FunctionScore, Query, ScoreFunction};
use crate::score::{ScoreKind, Shape};
use crate::value::Literal;

/// Reads what stands under the name of a function.
type Read = fn(&Node) -> Result<ScoreKind>;

/// The functions that there are, and what reads them.
const FUNCTIONS: [(&str, Read); 5] = [
    ("exp", |node| decay(node, Shape::Exp)),
    ("field_value_factor", field_value),
    ("gauss", |node| decay(node, Shape::Gauss)),
    ("linear", |node| decay(node, Shape::Linear)),
    ("random_score", random),
];
const OF_FUNCTION: &str =
    "filter weight exp field_value_factor gauss linear random_score script_score";

impl Reader {
    pub(super) fn function_score(
        &mut self,
        options: &Options<'_>,
        depth: usize,
    ) -> Result<FunctionScore> {
        let query = match options.get("query") {
            Some(query) => self.query(query, depth + 1)?,
            None => Query::match_all(),
        };
        let mut functions = Vec::new();
        for node in options.get("functions").map_or(&[][..], Node::items) {
            let options = node.options("function_score", OF_FUNCTION, 0)?;
            self.clauses.add(1)?;
            let filter =
                options.get("filter").map(|node| self.query(node, depth + 1)).transpose()?;
            let function = function(&options)?.ok_or_else(|| options.missing("a function"))?;
            functions.push(ScoreFunction { filter, ..function });
        }
        let own = function(options)?;
        let reason = "[function_score] has [functions] or one function beside [query], not both";
        ensure(own.is_none() || options.get("functions").is_none(), options.node.at, reason)?;
        functions.extend(own);
        const SCORE_MODES: [&str; 6] = ["multiply", "sum", "avg", "first", "max", "min"];
        const BOOST_MODES: [&str; 6] = ["multiply", "replace", "sum", "avg", "max", "min"];
        Ok(FunctionScore {
            query,
            functions,
            functions_by: options.named("score_mode", &SCORE_MODES)?,
            with_score_by: options.named("boost_mode", &BOOST_MODES)?,
            max_boost: options.read("max_boost", Node::float)?.unwrap_or(f32::MAX.into()),
            min_score: options.read("min_score", Node::float)?.map(|least| least as f32),
        })
    }
}

/// The one function among options, if there is any.
fn function(options: &Options<'_>) -> Result<Option<ScoreFunction>> {
    options.without(
        "script_score",
        "[script_score] is not supported by this engine; there are no scripts; index what the script computes, and \
         send [field_value_factor]",
    )?;
    let weight = options.read("weight", |node, name| {
        let weight = node.float(name)?;
        let reason = "[weight] cannot be negative for a filtering function";
        ensure(weight >= 0.0, node.at, reason).map(|()| weight)
    })?;
    let mut kind = weight.map(|_| ScoreKind::Constant);
    let mut named = None;
    for (name, read) in FUNCTIONS {
        let Some(node) = options.get(name) else { continue };
        let other = named.replace(name).unwrap_or_default();
        let reason = format_args!("[function_score] has [{other}] and [{name}] in one function");
        ensure(other.is_empty(), node.at, reason)?;
        kind = Some(read(node)?);
    }
    Ok(kind.map(|kind| ScoreFunction { filter: None, weight, kind }))
}

fn field_value(node: &Node) -> Result<ScoreKind> {
    const MODIFIERS: [&str; 10] =
        ["none", "log", "log1p", "log2p", "ln", "ln1p", "ln2p", "square", "sqrt", "reciprocal"];
    let options = node.options("field_value_factor", "field factor modifier missing", 0)?;
    Ok(ScoreKind::FieldValue {
        field: options.need("field")?.text("field")?,
        factor: options.read("factor", Node::float)?.unwrap_or(1.0),
        modifier: options.named("modifier", &MODIFIERS)?,
        missing: options.read("missing", Node::float)?,
    })
}

fn random(node: &Node) -> Result<ScoreKind> {
    let options = node.options("random_score", "seed field", 0)?;
    let seed = options.read("seed", |node, name| match node.integer(name) {
        Ok(seed) => Ok(seed),
        // Any text will do; what is equal is the same.
        Err(_) => Ok(node
            .text(name)?
            .bytes()
            .fold(7, |seed: i64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()))),
    })?;
    let field = options.read("field", Node::text)?.filter(|field| field != "_seq_no");
    Ok(ScoreKind::Random { seed, field })
}

fn decay(node: &Node, shape: Shape) -> Result<ScoreKind> {
    let outer = node.options("decay", "multi_value_mode", 1)?;
    let (field, node) = outer.field()?;
    let options = node.options(field, "origin scale offset decay", 0)?;
    let origin = options.read("origin", |node, name| match node.literal(name) {
        Ok(value) => Ok(value),
        Err(_) => {
            super::places::point(node, name).map(|(lat, lon)| Literal::Text(format!("{lat},{lon}")))
        }
    })?;
    let decay = options.read("decay", Node::float)?.unwrap_or(0.5);
    ensure(decay > 0.0 && decay < 1.0, node.at, "[decay] must be between 0 and 1")?;
    Ok(ScoreKind::Decay {
        shape,
        field: field.to_owned(),
        origin,
        scale: options.need("scale")?.literal("scale")?,
        offset: options.read("offset", Node::literal)?.unwrap_or(Literal::Integer(0)),
        decay,
        of_many: outer.named("multi_value_mode", &["min", "max", "avg", "sum"])?,
    })
}
